#include "net/ws/ws_session.h"

#include <algorithm>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/websocket/stream.hpp>

#include "net/access/handshake.h"
#include "net/sent_text.h"
#include "net/ws/ws_closing.h"
#include "net/ws/ws_conversation.h"
#include "net/ws/ws_socket.h"
#include "net/ws/ws_writer.h"

namespace weir::net {
namespace {

namespace asio = boost::asio;
namespace beast = boost::beast;
namespace http = beast::http;
namespace websocket = beast::websocket;
using boost::system::error_code;
using std::chrono::steady_clock;

using phase = ws_closing::phase;

// Until its key is checked, a client may send no message that is longer than a header.
ws_frame_watch incoming_watch(const server_limits& l) {
  constexpr double none_over = 0;
  return {l.header_bytes, rate_meter(l.frames_per_s, l.frame_burst, none_over, steady_clock::now())};
}

// Bytes that Beast may reserve at once beyond a whole message (its tcp_frame_size).
constexpr std::size_t read_ahead = 1536;

class session final : public std::enable_shared_from_this<session>, public ws_conversation::outside {
 public:
  session(std::shared_ptr<hub> h, asio::ip::tcp::socket socket, admission how)
      : at_(std::move(h)),
        hub_(*at_),
        counted_(hub_.server_ptr()),
        ws_(ws_transport(std::move(socket), incoming_watch(hub_.limits()), hub_.limits().drained_bytes())),
        closing_(hub_.limits(), steady_clock::now()),
        writer_(frames_, ws_.next_layer(), hub_),
        conversation_(hub_, frames_, *this, std::move(how), steady_clock::now()),
        pace_timer_(hub_.executor()) {}

  asio::awaitable<void> run(http::request<http::string_body> upgrade);

 private:
  asio::awaitable<void> read_frames();
  asio::awaitable<void> understand_long(std::string text);
  void write_next();
  void write_rest();
  void write_later();
  void prepare_socket();
  void end() noexcept;

  void write() override { write_next(); }
  std::function<void()> news() override;
  std::weak_ptr<outside> weak() override { return weak_from_this(); }
  void say(std::string frame) override;
  void close(close_code why) override;
  void allow_messages() override {
    let_in_ = true;
    ws_.next_layer().incoming().set_most_bytes(hub_.limits().message_bytes());
  }
  void wait_until(core::time_point due);
  void judge_reader(steady_clock::time_point now, steady_clock::time_point waits_since);
  void hang_up();

  void hear(hub::event e);
  void tick();
  void say_closing(std::string_view reason, std::chrono::milliseconds notice);

  std::shared_ptr<hub> at_;
  hub& hub_;
  counted_coroutine counted_;
  ws_stream ws_;
  bool let_in_ = false;  // the client is authenticated; beside closing_, since each tick reads both
  bool writes_later_ = false;
  ws_closing closing_;
  ws_writer writer_;
  ws_frames frames_;
  ws_conversation conversation_;
  error_code last_read_;                                // how the last read ended
  asio::steady_timer pace_timer_;                       // for tokens that a lane's pace holds back
  core::time_point awaited_ = core::time_point::max();  // when pace_timer_ ends; max(): it does not run
};

// ---- life

void session::prepare_socket() {
  ws_setup how;
  how.message_bytes = hub_.limits().message_bytes();
  how.request_id = conversation_.how().request_id;
  if (conversation_.how().subprotocol) how.subprotocol = subprotocol;
  how.refused = [self = weak_from_this()](close_code why) {
    if (const auto alive = self.lock()) alive->close(why);
  };
  set_up(ws_, hub_.limits(), std::move(how));
}

asio::awaitable<void> session::run(http::request<http::string_body> upgrade) {
  prepare_socket();
  error_code ec;
  co_await ws_.async_accept(upgrade, asio::redirect_error(asio::use_awaitable, ec));
  if (ec) co_return;
  upgrade = {};
  const hub::subscription told(hub_, [this](hub::event e) { hear(e); });
  hub_.server().sessions.fetch_add(1, std::memory_order_relaxed);
  struct presence {  // calls end() even if the coroutine does not run to its own end
    session& of;
    ~presence() { of.end(); }
  } const present{*this};
  const admission& how = conversation_.how();
  if (how.caller.crowded()) {
    close(close_code::overloaded);
  } else if (how.wrong_key) {
    close(close_code::bad_key);
  } else if (how.authenticated) {
    conversation_.welcome();
  }
  hear(hub::event::keys_changed);  // events that came before the subscription
  if (hub_.server().draining) hear(hub::event::drain);
  if (hub_.server().stopping) hear(hub::event::close);
  for (bool again = true; again;) {
    again = false;
    try {
      co_await read_frames();
    } catch (...) {  // out of memory, most likely: this session is over, the others are not
      hub_.server().seen.note("a WebSocket's reading", std::current_exception());
      again = closing_.listens();
      close(close_code::our_fault);
    }
  }
}

asio::awaitable<void> session::read_frames() {
  beast::flat_buffer buffer(hub_.limits().message_bytes() + read_ahead);
  for (;;) {
    co_await ws_.async_read_some(buffer, 0, asio::redirect_error(asio::use_awaitable, last_read_));
    if (last_read_) co_return;
    if (!conversation_.hold(connection_bytes + buffer.capacity())) close(close_code::overloaded);
    if (closing_.listens() && !ws_.is_message_done()) continue;
    if (closing_.listens()) {
      const auto data = buffer.cdata();
      const std::string_view text(static_cast<const char*>(data.data()), data.size());
      if (ws_.got_text() && is_long(text)) {
        co_await understand_long(std::string(text));
      } else {
        conversation_.understand(text, ws_.got_text(), steady_clock::now());
      }
    }
    buffer.clear();
    if (buffer.capacity() > 16 * 1024) buffer.shrink_to_fit();
  }
}

// Messages keep their order: the next one is read when this one has been acted on.
asio::awaitable<void> session::understand_long(std::string text) {
  using heard = ws_conversation::heard;
  const server_limits& l = hub_.limits();
  const auto parse = [bytes = l.frame_bytes, depth = l.json_depth,
                      values = l.json_values](std::string_view message) -> core::result<heard> {
    heard out = ws_conversation::parse(message, bytes, {depth, values});
    if (auto* create = out ? std::get_if<ws::response_create>(&*out) : nullptr)
      create->request.bytes = actors::input_bytes(create->request);
    return out;
  };
  actors::service& service = hub_.server().service;
  text_sender from{conversation_.how().from.who.key};
  auto of = co_await read_sent<heard>(service, std::move(from), hub_.executor(), std::move(text), parse);
  auto& said = *of->said;
  if (closing_.listens()) {
    if (said) {
      conversation_.act(*said, steady_clock::now());
    } else {
      conversation_.say_unread(said.error());
    }
  }
  done_with(service, std::move(of));
}

void session::end() noexcept {
  closing_.hang_up();
  hub_.server().sessions.fetch_sub(1, std::memory_order_relaxed);
  core::contained(hub_.server().seen, "a WebSocket's end", [this] {
    hub_.counts().closed.add(reason_it_ended(closing_, ws_, last_read_));
    pace_timer_.cancel();
  });
  frames_.drop_lanes();  // what happens to their jobs: net/kept_jobs.h
  hang_up();
}

// Called wherever there may be something to write, most often for a job's news. The frame is then written at
// once, without another pass through the executor.
void session::write_next() {
  if (!ws_.is_open()) closing_.peer_ends();
  if (!closing_.writes()) return;
  auto how = ws_writer::outcome::busy;
  try {
    how = writer_.write(closing_.at() == phase::open);
    if (how == ws_writer::outcome::full) write_rest();
    if (how == ws_writer::outcome::enough) write_later();
    if (how == ws_writer::outcome::said_all)
      if (const auto due = writer_.next_due()) wait_until(*due);
  } catch (...) {  // out of memory, most likely: this session is over, the others are not
    hub_.server().seen.note("a WebSocket's writing", std::current_exception());
    return hang_up();
  }
  if (frames_.lanes().empty()) closing_.no_lane_left();
  if (how != ws_writer::outcome::said_all) return;
  if (const auto code = closing_.all_written()) ws_.next_layer().say_last(static_cast<std::uint16_t>(*code));
}

void session::write_later() {
  if (std::exchange(writes_later_, true)) return;
  asio::post(hub_.executor(), [self = shared_from_this()] {
    self->writes_later_ = false;
    self->write_next();
  });
}

void session::write_rest() {
  writer_.send_rest([self = shared_from_this()](const error_code& ec) {
    if (ec) return self->hang_up();  // the pending read ends with it
    self->write_next();
  });
}

std::function<void()> session::news() {
  return [self = weak_from_this()] {
    if (auto alive = self.lock()) alive->write_next();
  };
}

// Writes again when a token is due that a lane's pace holds back.
void session::wait_until(core::time_point due) {
  if (due >= awaited_) return;
  awaited_ = due;
  pace_timer_.expires_after(due - hub_.server().service.now());
  pace_timer_.async_wait([self = weak_from_this()](const error_code& ec) {
    const auto alive = self.lock();
    if (ec || !alive) return;
    alive->awaited_ = core::time_point::max();
    alive->write_next();
  });
}

void session::hang_up() {
  closing_.hang_up();
  ws_.next_layer().close();
}

// ---- what is said

void session::say(std::string frame) {
  if (closing_.at() != phase::open) return;
  frames_.say(std::move(frame));
  write_next();
}

void session::close(close_code why) {
  if (closing_.close(why)) write_next();
}

// ---- as time passes

void session::hear(hub::event e) {
  switch (e) {
    case hub::event::tick:
      return tick();
    case hub::event::drain:
      if (closing_.drain()) say_closing("shutdown", hub_.server().options.drain);
      if (frames_.lanes().empty() && closing_.no_lane_left()) write_next();
      return;
    case hub::event::close:
      close(close_code::going_away);
      hang_up();
      return;
    case hub::event::keys_changed:
      if (!conversation_.key_removed()) return;
      close(close_code::bad_key);
      return frames_.drop_lanes();  // their jobs are left now, however long the client takes to end
  }
}

void session::say_closing(std::string_view reason, std::chrono::milliseconds notice) {
  std::string frame;
  ws::append_closing(frame, reason, notice.count());
  say(std::move(frame));
}

void session::tick() {
  const auto now = steady_clock::now();
  if (!ws_.is_open()) closing_.peer_ends();
  switch (closing_.tick(now, let_in_, writer_.waits_since())) {
    case ws_closing::todo::nothing:
      break;
    case ws_closing::todo::announce:
      say_closing("max_age", hub_.limits().closing_notice);
      break;
    case ws_closing::todo::write:
      write_next();
      break;
    case ws_closing::todo::hang_up:
      hang_up();
      break;
  }
  if (closing_.at() == phase::open && writer_.waits_since()) judge_reader(now, *writer_.waits_since());
}

void session::judge_reader(steady_clock::time_point now, steady_clock::time_point waits_since) {
  const std::size_t waiting = frames_.backlog();
  hub_.count_lag(now - waits_since, waiting);
  if (!closing_.too_slow(now, waits_since, waiting)) return;
  drop_unsent(ws_);
  hang_up();
}

}  // namespace

void serve_websocket(std::shared_ptr<hub> h, beast::tcp_stream stream,
                     http::request<http::string_body> upgrade, admission how) {
  stream.expires_never();
  const auto executor = h->executor();
  auto s = std::make_shared<session>(std::move(h), stream.release_socket(), std::move(how));
  auto run = [s, upgrade = std::move(upgrade)]() mutable { return s->run(std::move(upgrade)); };
  asio::co_spawn(executor, std::move(run), asio::detached);
}

}  // namespace weir::net
