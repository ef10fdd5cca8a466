// Watches whether the client of a completion is still connected. A read is pending while the job runs. A FIN
// or a reset ends the job, even if bytes of another request come before it. Such bytes stay in the buffer as
// the beginning of the next request. If they fill the buffer, the connection is closed.
//
// A FIN is reported by one read only; another read would wait for the whole keep-alive time. A FIN that
// arrives while the last read is being cancelled is therefore remembered, and the connection ends after the
// answer.
#include <boost/asio/ip/tcp.hpp>

#include "net/http/http_session.h"

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
