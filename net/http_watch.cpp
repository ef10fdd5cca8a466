// Watches whether the client of a completion is still connected. A read is pending while the job runs. A FIN
// or a reset ends the job, even if bytes of another request come before it. Such bytes stay in the buffer as
// the beginning of the next request. If they fill the buffer, the connection is closed.
//
// A FIN is reported by one read only; another read would wait for the whole keep-alive time. A FIN that
// arrives while the last read is being cancelled is therefore remembered, and the connection ends after the
// answer.
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
