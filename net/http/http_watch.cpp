// Watches whether the client of a completion is still connected. A read is pending while the job runs. A FIN
// or a reset ends the job, even if bytes of another request come before it. Such bytes stay in the buffer as
// the beginning of the next request. If they fill the buffer, the connection is closed.
//
// A FIN says that the client has left, or that it has said all and waits for its answer. Where nothing of the
// answer is written yet, the client is asked: it is sent «100 Continue», which every client of HTTP/1.1 has
// to skip. The system of a client that has left answers with a reset.
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

void http_session::watch_for_reset() {
  stream_.socket().async_wait(asio::socket_base::wait_error, [self = shared_from_this()](error_code ec) {
    using enum http_state::watch_read;
    self->state_.watch_read_ended(ec == asio::error::operation_aborted ? cancelled : failed);
    self->news_->notify();
  });
  state_.watch();
}

void http_session::watched(error_code ec, std::size_t bytes) {
  using enum http_state::watch_read;
  buffer_.commit(bytes);
  const bool asked = ec == asio::error::eof && answers_whole_ && form_.version >= 11 && ask_whether_there();
  const auto how = !ec                                    ? bytes_came
                   : asked                                ? said_all
                   : ec == asio::error::operation_aborted ? cancelled
                                                          : failed;
  if (state_.watch_read_ended(how)) {
    const auto go_on = [&] { asked ? watch_for_reset() : watch_peer(); };
    if (core::contained(hub_.server().seen, "watching a client", go_on)) return;
    state_.client_left();
  }
  news_->notify();
}

// Does not wait: nothing is in the send buffer.
bool http_session::ask_whether_there() {
  error_code ec;
  stream_.socket().non_blocking(true, ec);
  const std::size_t sent = ec ? 0 : stream_.socket().write_some(asio::buffer(continue_line), ec);
  return !ec && sent == continue_line.size();
}

asio::awaitable<void> http_session::stop_watching() {
  error_code ignored;
  if (state_.end_watch()) stream_.socket().cancel(ignored);
  while (state_.at() == http_state::phase::last_watch) co_await news_->wait();
}

}  // namespace weir::net
