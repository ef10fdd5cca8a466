// Watches whether the client of a completion is still connected. A read is pending while its body is parsed
// and its job runs. A reset ends both, even if bytes of another request come before it. Such bytes stay in
// the buffer as the beginning of the next request. If they fill the buffer, the connection is closed.
//
// A FIN says that the client has left, or that it has said all and waits for its answer. Only a write tells
// the two apart: the system of a client that has left answers with a reset. So the client is sent something
// at once, and then every second, for as long as it waits: a client may read what was sent and leave then.
// Before the answer this is «100 Continue», of which every client of HTTP/1.1 has to skip any number; a
// stream of events sends its events, and comments. A client whose system acknowledges nothing for three
// seconds has left. To HTTP/1.0 nothing may be sent before the answer, so there a FIN ends the job.
#include <boost/asio/ip/tcp.hpp>

#include "net/http/http_session.h"
#include "net/tcp_state.h"

namespace weir::net {

namespace asio = boost::asio;
using boost::system::error_code;

namespace {

constexpr std::chrono::milliseconds between_probes{1000};
constexpr std::size_t unheard_probes = 3;  // after so many a client has left

}  // namespace

void http_session::watch_peer() {
  const std::size_t room = buffer_.max_size() - buffer_.size();
  if (room == 0) {
    state_.client_left();
    return note_end();
  }
  stream_.socket().async_read_some(
      buffer_.prepare(room),
      [self = shared_from_this()](error_code ec, std::size_t bytes) { self->watched(ec, bytes); });
  state_.watch();
}

void http_session::watched(error_code ec, std::size_t bytes) {
  using enum http_state::watch_read;
  buffer_.commit(bytes);
  const bool all = ec == asio::error::eof && form_.version >= 11;
  const auto how = !ec                                    ? bytes_came
                   : all                                  ? said_all
                   : ec == asio::error::operation_aborted ? cancelled
                                                          : failed;
  if (all) say_end_again();
  if (state_.watch_read_ended(how)) {
    const auto go_on = [&] { all ? begin_probing() : watch_peer(); };
    if (core::contained(hub_.server().seen, "watching a client", go_on)) return;
    state_.client_left();
  }
  note_end();
}

// The read of the watch has ended, or there is none.
void http_session::note_end() {
  if (left_ && state_.at() == http_state::phase::client_gone) left_->store(true, std::memory_order_relaxed);
  news_->notify();
}

// Asio reports a FIN to one read alone, and a later one may wait for what never comes: the next watch, or the
// read of a request that was cut off. Closing the receiving side reports it again.
void http_session::say_end_again() {
  if (buffer_.size() == 0) state_.end_after_answer();
  error_code ignored;
  stream_.socket().shutdown(asio::ip::tcp::socket::shutdown_receive, ignored);
}

void http_session::begin_probing() {
  sender_.speak_every(between_probes);
  watch_for_reset();
  if (events_began_ || probe()) return;
  state_.client_left();
  note_end();
}

void http_session::watch_for_reset() {
  stream_.socket().async_wait(asio::socket_base::wait_error, [self = shared_from_this()](error_code ec) {
    using enum http_state::watch_read;
    self->state_.watch_read_ended(ec == asio::error::operation_aborted ? cancelled : failed);
    self->note_end();
  });
  state_.watch();
}

// Does not wait: the send buffer has nothing but earlier probes.
bool http_session::probe() {
  probe_at_ = std::chrono::steady_clock::now() + between_probes;
  auto& socket = stream_.socket();
  if (unacknowledged_bytes(socket.native_handle()) >= unheard_probes * continue_line.size()) return false;
  error_code ec;
  socket.non_blocking(true, ec);
  const std::size_t sent = ec ? 0 : socket.write_some(asio::buffer(continue_line), ec);
  return !ec && sent == continue_line.size();
}

asio::awaitable<void> http_session::stop_watching() {
  error_code ignored;
  probe_at_.reset();
  if (state_.end_watch()) stream_.socket().cancel(ignored);
  while (state_.at() == http_state::phase::last_watch) co_await news_->wait();
}

}  // namespace weir::net
