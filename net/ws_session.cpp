#include "net/ws_session.h"

#include <algorithm>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/websocket/stream.hpp>

#include "net/handshake.h"
#include "net/random_hex.h"
#include "net/rate.h"
#include "net/ws_closing.h"
#include "net/ws_writer.h"

namespace weir::net {
namespace {

namespace asio = boost::asio;
namespace beast = boost::beast;
namespace http = beast::http;
namespace websocket = beast::websocket;
using boost::system::error_code;
using std::chrono::steady_clock;

using phase = ws_closing::phase;

// Before its key is checked a client has nothing to say that is longer than a header.
ws_frame_watch incoming_watch(const server_limits& l) {
  constexpr double none_over = 0;
  return {l.header_bytes, rate_meter(l.frames_per_s, l.frame_burst, none_over, steady_clock::now())};
}

// What Beast may reserve at once beside a whole message (its tcp_frame_size).
constexpr std::size_t read_ahead = 1536;

class session : public std::enable_shared_from_this<session> {
 public:
  session(std::shared_ptr<hub> h, asio::ip::tcp::socket socket, admission how)
      : at_(std::move(h)),
        hub_(*at_),
        counted_(hub_.server_ptr()),
        ws_(ws_transport(std::move(socket), incoming_watch(hub_.limits()), hub_.limits().drained_bytes())),
        writer_(ws_.next_layer(), hub_.server()),
        how_(std::move(how)),
        rate_(hub_.limits().messages_per_s, hub_.limits().message_burst, hub_.limits().message_abuse,
              steady_clock::now()),
        closing_(hub_.limits(), steady_clock::now()),
        pace_timer_(hub_.executor()) {}

  asio::awaitable<void> run(http::request<http::string_body> upgrade);

 private:
  asio::awaitable<void> read_frames();
  void write_next();
  void write_rest();
  void prepare_socket();
  void end() noexcept;

  void understand(std::string_view frame);
  void on(ws::protocol_error& e) { say_error(std::move(e)); }
  void on(ws::session_auth& m);
  void on(ws::response_create& m);
  void on(ws::response_resume& m);
  void on(ws::response_ack& m);
  void on(ws::response_cancel& m);
  void on(ws::ping& m);
  void on(ws::pong&) {}
  bool judge_token(const std::string& lane, actors::request& r);
  bool has_place_for(const std::string& lane);
  ws::lane* find_lane(const std::string& id);
  std::function<void()> news();
  void wait_until(core::time_point due);

  void welcome();
  void say(std::string frame);
  void say_error(ws::protocol_error e);
  void close(close_code why);
  void judge_reader(steady_clock::time_point now, steady_clock::time_point waits_since);
  void hang_up();

  void hear(hub::event e);
  void tick();
  void say_closing(std::string_view reason, std::chrono::milliseconds notice);
  std::uint16_t reason_it_ended() const;

  std::shared_ptr<hub> at_;
  hub& hub_;
  counted_coroutine counted_;
  websocket::stream<ws_transport, false> ws_;
  ws_writer writer_;
  admission how_;
  rate_meter rate_;
  ws_closing closing_;
  error_code last_read_;  // how the last read ended
  asio::steady_timer pace_timer_;  // for tokens that a lane's pace holds back
  core::time_point awaited_ = core::time_point::max();  // when pace_timer_ ends; max(): it does not run
};

// ---- life

void session::prepare_socket() {
  ws_.set_option(websocket::stream_base::timeout{hub_.limits().handshake, hub_.limits().silent, true});
  ws_.set_option(websocket::stream_base::decorator(
      [id = how_.request_id, ours = how_.subprotocol](websocket::response_type& r) {
        r.set(http::field::server, "weir");
        r.set("x-request-id", id);
        if (ours) r.set(http::field::sec_websocket_protocol, subprotocol);
      }));
  // a second wall: the watch of the transport refuses sooner
  ws_.read_message_max(hub_.limits().frame_bytes);
  ws_.next_layer().on_refusal([self = weak_from_this()](ws_frame_watch::verdict why) {
    const auto alive = self.lock();
    if (!alive) return;
    const bool too_big = why == ws_frame_watch::verdict::too_big;
    alive->close(too_big ? close_code::too_big : close_code::too_many_messages);
  });
}

asio::awaitable<void> session::run(http::request<http::string_body> upgrade) {
  prepare_socket();
  error_code ec;
  co_await ws_.async_accept(upgrade, asio::redirect_error(asio::use_awaitable, ec));
  if (ec) co_return;
  upgrade = {};
  const hub::subscription told(hub_, [this](hub::event e) { hear(e); });
  hub_.server().sessions.fetch_add(1, std::memory_order_relaxed);
  struct presence {  // its end comes even where the coroutine is not run to its own
    session& of;
    ~presence() { of.end(); }
  } const present{*this};
  if (how_.caller.crowded()) {
    close(close_code::overloaded);
  } else if (how_.wrong_key) {
    close(close_code::bad_key);
  } else if (how_.authenticated) {
    welcome();
  }
  if (hub_.server().draining) hear(hub::event::drain);  // it was said before we could hear it
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
  beast::flat_buffer buffer(hub_.limits().frame_bytes + read_ahead);
  for (;;) {
    co_await ws_.async_read_some(buffer, 0, asio::redirect_error(asio::use_awaitable, last_read_));
    if (last_read_) co_return;
    if (!how_.memory.resize(connection_bytes + buffer.capacity())) close(close_code::overloaded);
    if (closing_.listens() && !ws_.is_message_done()) continue;
    if (closing_.listens()) {
      const auto data = buffer.cdata();
      understand({static_cast<const char*>(data.data()), data.size()});
    }
    buffer.clear();
    if (buffer.capacity() > 16 * 1024) buffer.shrink_to_fit();
  }
}

void session::end() noexcept {
  closing_.hang_up();
  hub_.server().sessions.fetch_sub(1, std::memory_order_relaxed);
  core::contained(hub_.server().seen, "a WebSocket's end", [this] {
    hub_.server().count_close(reason_it_ended());
    pace_timer_.cancel();
  });
  writer_.drop_lanes();  // what happens to their jobs: net/kept_jobs.h
  hang_up();
}

// Called wherever there may be something to write, most often by a job's news: then the frame leaves while
// the job is at hand, without another pass through the executor.
void session::write_next() {
  if (!ws_.is_open()) closing_.peer_ends();
  if (!closing_.writes()) return;
  auto how = ws_writer::outcome::busy;
  try {
    how = writer_.write(closing_.at() == phase::open);
    if (how == ws_writer::outcome::full) write_rest();
  } catch (...) {  // out of memory, most likely: this session is over, the others are not
    hub_.server().seen.note("a WebSocket's writing", std::current_exception());
    return hang_up();
  }
  if (writer_.lanes().empty()) closing_.no_lane_left();
  if (how != ws_writer::outcome::said_all) return;
  if (const auto due = writer_.next_due()) wait_until(*due);
  if (const auto code = closing_.all_written()) ws_.next_layer().say_last(static_cast<std::uint16_t>(*code));
}

void session::write_rest() {
  writer_.send_rest([self = shared_from_this()](const error_code& ec) {
    if (ec) return self->hang_up();  // the pending read ends with it
    self->write_next();
  });
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

// ---- what clients say

void session::understand(std::string_view frame) {
  if (!ws_.got_text())
    return say_error({{}, "bad_message", "only text frames are understood", {}, {}, false});
  auto message = ws::parse(frame, {hub_.limits().json_depth, hub_.limits().json_values});
  const bool free_of_charge =
      std::holds_alternative<ws::pong>(message) || std::holds_alternative<ws::response_ack>(message);
  const auto verdict = free_of_charge ? rate_meter::verdict::fine : rate_.spend(steady_clock::now());
  if (verdict == rate_meter::verdict::abuse) return close(close_code::too_many_messages);
  if (!how_.authenticated && !std::holds_alternative<ws::session_auth>(message))
    return close(close_code::bad_key);
  // A cancel only ever makes less work: it is never refused.
  if (verdict == rate_meter::verdict::too_fast && !std::holds_alternative<ws::response_cancel>(message)) {
    const auto* create = std::get_if<ws::response_create>(&message);
    const auto* resume = std::get_if<ws::response_resume>(&message);
    return say_error({create ? create->id : resume ? resume->id : std::string(),
                      "rate_limited",
                      "too many messages in a second",
                      {},
                      rate_.wait().count(),
                      false});
  }
  std::visit([this](auto& m) { on(m); }, message);
}

void session::on(ws::session_auth& m) {
  auto from = hub_.server().bearers.judge(m.token, unix_ms());
  if (!from) return close(close_code::bad_key);
  if (!from->allows_origin(how_.origin)) return close(close_code::forbidden);
  how_.from = std::move(*from);
  if (!std::exchange(how_.authenticated, true)) welcome();
}

// Whether a lane with this id can be opened. If not, the client has been told.
bool session::has_place_for(const std::string& lane) {
  if (find_lane(lane)) {
    say_error({lane, "duplicate_id", "a response with this id is still running", "id", {}, false});
    return false;
  }
  if (writer_.lanes().size() < hub_.limits().jobs) return true;
  say_error({lane,
             "too_many_jobs",
             fmt::format("a socket has at most {} responses at a time", hub_.limits().jobs),
             {},
             {},
             false});
  return false;
}

ws::lane* session::find_lane(const std::string& id) {
  for (const auto& l : writer_.lanes())
    if (l->id() == id) return l.get();
  return nullptr;
}

void session::on(ws::response_create& m) {
  if (!has_place_for(m.id)) return;
  auto request = std::move(m.request);
  request.who = how_.from.who;
  if (!judge_token(m.id, request)) return;
  kept_job job;
  job.owner = request.who;
  job.as_created = m.how.over({});
  job.metadata = std::move(m.metadata);
  job.cancel_when_left = m.cancel_on_disconnect;
  job.pause_on_lag = m.pause_on_lag;
  job.stream = hub_.server().service.submit(std::move(request), hub_.executor(), news());
  auto follower = hub_.jobs().keep(std::move(job));
  writer_.open_lane(std::make_unique<ws::lane>(std::move(m), std::move(follower)));
}

void session::on(ws::response_resume& m) {
  if (!has_place_for(m.id)) return;
  const auto id = core::job_id::parse(m.response_id);
  if (!id) {
    return say_error({m.id, no_such_job.code, std::string(no_such_job.message),
                      std::string(no_such_job.param), {}, false});
  }
  auto job = followed_job::open(hub_, *id, how_.from.who, m.after, m.how, news());
  writer_.open_lane(std::make_unique<ws::lane>(std::move(m), std::move(job)));
}

void session::on(ws::response_ack& m) {
  ws::lane* const of = find_lane(m.id);
  if (!of) {
    if (!writer_.is_over(m.id)) say_error({m.id, "not_found", "there is no such response", "id", {}, false});
    return;
  }
  if (of->ack(m.seq)) return write_next();
  say_error({m.id, "invalid_cursor", "seq: so many tokens were not sent", "seq", {}, false});
}

// What calls a session when there is something to write.
std::function<void()> session::news() {
  return [self = weak_from_this()] {
    if (auto alive = self.lock()) alive->write_next();
  };
}

// Whether the client's token, if it has one, lets it make this job. If not, the client has been told.
bool session::judge_token(const std::string& lane, actors::request& r) {
  const auto& token = how_.from.token;
  if (!token) return true;
  if (how_.from.expired(unix_ms())) {
    say_error(
        {lane, "token_expired", "the token has expired: send session.auth with a new one", {}, {}, false});
    return false;
  }
  if (r.model.empty()) r.model = token->model;
  if (!how_.from.allows_model(r.model)) {
    close(close_code::forbidden);
    return false;
  }
  r.until_ended = hub_.server().token_jobs.take(r.who, token->max_jobs);
  if (r.until_ended) return true;
  say_error({lane,
             "too_many_jobs",
             fmt::format("this token allows {} responses at a time", token->max_jobs),
             {},
             {},
             false});
  return false;
}

void session::on(ws::response_cancel& m) {
  for (const auto& l : writer_.lanes()) {
    if (l->id() == m.id || l->response_id() == m.response_id) return l->cancel();
  }
  const auto unknown = [](std::string id) {
    return ws::protocol_error{std::move(id), "not_found", "there is no such response", {}, {}, false};
  };
  if (!m.id.empty()) {
    if (!writer_.is_over(m.id)) say_error(unknown(m.id));
    return;
  }
  // It may be a job whose own socket is gone.
  const auto id = core::job_id::parse(m.response_id);
  if (!id) return say_error(unknown({}));
  hub_.server().service.cancel_job(how_.from.who, *id, hub_.executor(),
                                   [self = weak_from_this(), unknown](auto found) {
                                     auto alive = self.lock();
                                     if (alive && !found) alive->say_error(unknown({}));
                                   });
}

void session::on(ws::ping& m) {
  std::string frame;
  ws::append_pong(frame, m.ts);
  say(std::move(frame));
}

// ---- what the server says

void session::welcome() {
  ws_.next_layer().incoming().set_most_bytes(hub_.limits().frame_bytes);
  ws::limits l;
  const server_limits& have = hub_.limits();
  std::vector<std::string> names;
  for (const auto& m : hub_.server().service.models()) {
    if (!how_.from.allows_model(m.name)) continue;
    names.push_back(m.name);
    l.max_tokens = std::max<std::uint64_t>(l.max_tokens, m.context);
  }
  l.max_jobs = have.jobs;
  if (const auto& token = how_.from.token; token && token->max_jobs != 0)
    l.max_jobs = std::min<std::uint64_t>(l.max_jobs, token->max_jobs);
  l.max_frame = have.frame_bytes;
  l.detach_grace_ms = static_cast<std::uint64_t>(have.detach_grace.count());
  l.retain_ms = static_cast<std::uint64_t>(have.retain.count());
  l.max_age_ms = static_cast<std::uint64_t>(have.max_age.count());
  std::string frame;
  ws::append_session_created(frame, random_hex(), "weir", names, l);
  say(std::move(frame));
}

void session::say(std::string frame) {
  if (closing_.at() != phase::open) return;
  writer_.say(std::move(frame));
  write_next();
}

void session::say_error(ws::protocol_error e) {
  std::string frame;
  ws::append_error(frame, e);
  say(std::move(frame));
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
      if (writer_.lanes().empty() && closing_.no_lane_left()) write_next();
      return;
    case hub::event::close:
      close(close_code::going_away);
      hang_up();
      return;
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
  switch (closing_.tick(now, how_.authenticated, writer_.waits_since())) {
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
  const std::size_t waiting = writer_.backlog();
  hub_.count_lag(now - waits_since, waiting);
  if (!closing_.too_slow(now, waits_since, waiting)) return;
  error_code ignored;
  // what the kernel still holds is dropped
  ws_.next_layer().get_socket().set_option(asio::socket_base::linger(true, 0), ignored);
  hang_up();
}

// The server's reason where it has one, else how the last read ended.
std::uint16_t session::reason_it_ended() const {
  const auto number = [](close_code c) { return static_cast<std::uint16_t>(c); };
  const error_code& ec = last_read_;
  if (closing_.code()) return number(*closing_.code());
  if (ec == websocket::error::closed)
    return ws_.reason().code ? ws_.reason().code : number(close_code::no_status);
  if (ec == websocket::error::bad_frame_payload) return number(close_code::bad_payload);
  if (ec == websocket::condition::protocol_violation) return number(close_code::protocol_fault);
  return number(close_code::abnormal);
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
