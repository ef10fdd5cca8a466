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
    state_.client_left();
    return news_->notify();
  }
  stream_.socket().async_read_some(
      buffer_.prepare(room),
      [self = shared_from_this()](error_code ec, std::size_t bytes) { self->watched(ec, bytes); });
  state_.watch();
}

void http_session::watched(error_code ec, std::size_t bytes) {
  using enum http_state::watch_read;
  buffer_.commit(bytes);
  if (state_.watch_read_ended(!ec ? bytes_came : ec == asio::error::operation_aborted ? cancelled : failed)) {
    if (core::contained(hub_.server().seen, "watching a client", [this] { watch_peer(); })) return;
    state_.client_left();
  }
  news_->notify();
}

asio::awaitable<void> http_session::stop_watching() {
  error_code ignored;
  if (state_.end_watch()) stream_.socket().cancel(ignored);
  while (state_.at() == http_state::phase::last_watch) co_await news_->wait();
}

}  // namespace weir::net
