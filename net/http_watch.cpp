// Whether the client of a completion is still there. A read is pending while the job runs: a FIN or a reset
// ends the job, even behind the bytes of a next request. Those bytes stay in the buffer and are that
// request's beginning; a client that sends more ahead than the buffer holds is hung up on.
//
// A FIN is read once: the system wakes nobody for it again, and another read would wait for the keep-alive
// time. A FIN that comes while the last read is being cancelled therefore counts, and the connection ends
// after the answer.
#include <boost/asio/ip/tcp.hpp>

#include "net/http_session.h"

namespace weir::net {

namespace asio = boost::asio;
using boost::system::error_code;

void http_session::watch_peer() {
  const std::size_t room = buffer_.max_size() - buffer_.size();
  if (room == 0) {
    peer_gone_ = true;
    return news_->notify();
  }
  watching_ = true;
  stream_.socket().async_read_some(
      buffer_.prepare(room),
      [self = shared_from_this()](error_code ec, std::size_t bytes) { self->watched(ec, bytes); });
}

void http_session::watched(error_code ec, std::size_t bytes) {
  watching_ = false;
  buffer_.commit(bytes);
  if (stop_watching_ && (!ec || ec == asio::error::operation_aborted)) return news_->notify();
  if (!ec && core::contained(hub_.server().seen, "watching a client", [this] { watch_peer(); })) return;
  peer_gone_ = true;
  news_->notify();
}

asio::awaitable<void> http_session::stop_watching() {
  error_code ignored;
  stop_watching_ = true;
  if (watching_) stream_.socket().cancel(ignored);
  while (watching_) co_await news_->wait();
  stop_watching_ = false;
}

}  // namespace weir::net
