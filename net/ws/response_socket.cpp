#include "net/ws/response_socket.h"

#include <algorithm>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/websocket/stream.hpp>
#include <deque>

#include "net/called_back.h"
#include "net/http/kept_answer.h"
#include "net/http/response_encoder.h"
#include "net/protocol/body_parts.h"
#include "net/random_hex.h"
#include "net/request_record.h"
#include "net/response_intake.h"
#include "net/response_terms.h"
#include "net/resumed_job.h"
#include "net/sent_text.h"
#include "net/submit.h"
#include "net/wake.h"
#include "net/ws/response_frames.h"
#include "net/ws/ws_closing.h"
#include "net/ws/ws_socket.h"

namespace weir::net {
namespace {

namespace asio = boost::asio;
namespace beast = boost::beast;
namespace http = beast::http;
namespace websocket = beast::websocket;
using boost::system::error_code;
using std::chrono::steady_clock;
using phase = actors::job_stream::phase;

// Bytes that Beast may reserve at once beyond a whole message (its tcp_frame_size).
constexpr std::size_t read_ahead = 1536;

ws_frame_watch incoming_watch(const server_limits& l) {
  constexpr double none_over = 0;
  return {l.body_bytes, rate_meter(l.frames_per_s, l.frame_burst, none_over, steady_clock::now())};
}

class session final : public std::enable_shared_from_this<session> {
 public:
  session(std::shared_ptr<hub> h, asio::ip::tcp::socket socket, admission how)
      : at_(std::move(h)),
        hub_(*at_),
        counted_(hub_.server_ptr()),
        how_(std::move(how)),
        ws_(ws_transport(std::move(socket), incoming_watch(hub_.limits()), hub_.limits().drained_bytes())),
        closing_(hub_.limits(), steady_clock::now()),
        rate_(hub_.limits().messages_per_s, hub_.limits().message_burst, hub_.limits().message_abuse,
              steady_clock::now()),
        news_(std::make_shared<wake>(hub_.executor())),
        remembered_(hub_.server().service.memory()) {}

  asio::awaitable<void> run(http::request<http::string_body> upgrade);

 private:
  struct message {
    std::string text;
    bool is_text = true;
  };

  void prepare_socket();
  void end() noexcept;
  void hear(hub::event e);
  void tick();
  void close(close_code why);
  void hang_up();

  asio::awaitable<void> read_messages();
  void take(message m);
  // Counts what the connection holds beside its last response. False: there is not that much left.
  bool hold() { return how_.memory.resize(connection_bytes + buffered_ + waiting_bytes_ + earlier_.size()); }

  asio::awaitable<void> answer_all();
  asio::awaitable<void> answer(message m);
  asio::awaitable<void> answer_within(std::shared_ptr<sent_text<read_response>> read);
  asio::awaitable<void> prepare_only(terms_ptr terms);
  asio::awaitable<void> run_job(actors::request asked, terms_ptr terms, bool outlives);
  asio::awaitable<void> stream(const std::shared_ptr<actors::job_stream>& job, const terms_ptr& terms);
  asio::awaitable<void> send_events();
  asio::awaitable<void> send_frames();
  asio::awaitable<void> refuse(reply no);
  void remember(const core::job_id& id, const std::string& items, std::string output);
  bool client_gone() const noexcept { return read_ended_ || !closing_.listens(); }

  std::shared_ptr<hub> at_;
  hub& hub_;
  counted_coroutine counted_;
  admission how_;
  ws_stream ws_;
  ws_closing closing_;
  rate_meter rate_;
  std::shared_ptr<wake> news_;  // of messages, of the job under way, of time
  std::deque<message> waiting_;
  std::size_t waiting_bytes_ = 0, buffered_ = 0;  // of waiting_; of the buffer that is read into
  bool read_ended_ = false, is_old_ = false;
  error_code last_read_;                                 // how the last read ended
  std::optional<steady_clock::time_point> waits_since_;  // for the kernel, with a piece of frames_
  std::string out_, frames_;  // events, and the same as frames; kept, so that they need not grow again
  std::string earlier_;       // items of the conversation before the response under way, without brackets
  stored_ptr last_;           // the last response, with its whole conversation as its items
  core::memory_hold remembered_;
};

// ---- life

void session::prepare_socket() {
  ws_setup how;
  how.message_bytes = hub_.limits().body_bytes;
  how.request_id = how_.request_id;
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
  if (how_.caller.crowded()) close(close_code::overloaded);
  hear(hub::event::keys_changed);  // events that came before the subscription
  if (hub_.server().draining) hear(hub::event::drain);
  if (hub_.server().stopping) hear(hub::event::close);
  auto reading = [self = shared_from_this()] { return self->read_messages(); };
  asio::co_spawn(hub_.executor(), std::move(reading), asio::detached);
  try {
    co_await answer_all();
  } catch (...) {  // out of memory, most likely: this session is over, the others are not
    hub_.server().seen.note("a WebSocket of responses", std::current_exception());
    close(close_code::our_fault);
  }
  waiting_.clear();
  if (const auto code = closing_.all_written()) ws_.next_layer().say_last(static_cast<std::uint16_t>(*code));
  while (!read_ended_) co_await news_->wait();  // the client has to end the connection, or tick() does
}

void session::end() noexcept {
  closing_.hang_up();
  hub_.server().sessions.fetch_sub(1, std::memory_order_relaxed);
  core::contained(hub_.server().seen, "a WebSocket's end",
                  [this] { hub_.counts().closed.add(reason_it_ended(closing_, ws_, last_read_)); });
  hang_up();
}

void session::hang_up() {
  closing_.hang_up();
  ws_.next_layer().close();
}

void session::close(close_code why) {
  if (closing_.close(why)) news_->notify();
}

void session::hear(hub::event e) {
  switch (e) {
    case hub::event::tick:
      return tick();
    case hub::event::drain:
      closing_.drain();
      return news_->notify();
    case hub::event::close:
      close(close_code::going_away);
      return hang_up();
    case hub::event::keys_changed:
      if (how_.from.removed()) close(close_code::bad_key);
      return;
  }
}

void session::tick() {
  const auto now = steady_clock::now();
  if (!ws_.is_open()) closing_.peer_ends();
  switch (closing_.tick(now, true, waits_since_)) {
    case ws_closing::todo::nothing:
      break;
    case ws_closing::todo::announce:
      is_old_ = true;
      [[fallthrough]];
    case ws_closing::todo::write:
      news_->notify();
      break;
    case ws_closing::todo::hang_up:
      hang_up();
      break;
  }
  if (closing_.at() != ws_closing::phase::open || !waits_since_) return;
  hub_.count_lag(now - *waits_since_, frames_.size());
  constexpr std::size_t pieces_alone = 0;  // what waits is one piece of events
  if (!closing_.too_slow(now, *waits_since_, pieces_alone)) return;
  drop_unsent(ws_);
  hang_up();
}

// ---- what comes in

asio::awaitable<void> session::read_messages() {
  try {
    beast::flat_buffer buffer(hub_.limits().body_bytes + read_ahead);
    for (;;) {
      co_await ws_.async_read_some(buffer, 0, asio::redirect_error(asio::use_awaitable, last_read_));
      if (last_read_) break;
      buffered_ = buffer.capacity();
      if (!hold()) close(close_code::overloaded);
      if (closing_.listens() && !ws_.is_message_done()) continue;
      if (closing_.listens()) {
        const auto data = buffer.cdata();
        take({std::string(static_cast<const char*>(data.data()), data.size()), ws_.got_text()});
      }
      buffer.clear();
      if (buffer.capacity() > 16 * 1024) buffer.shrink_to_fit();
    }
  } catch (...) {  // out of memory, most likely
    hub_.server().seen.note("a WebSocket's reading", std::current_exception());
    close(close_code::our_fault);
    hang_up();
  }
  read_ended_ = true;
  news_->notify();
}

// What waits has at most as many bytes as one message may have.
void session::take(message m) {
  const auto verdict = rate_.spend(steady_clock::now());
  const bool too_many = waiting_.size() >= most_waiting ||
                        (!waiting_.empty() && waiting_bytes_ + m.text.size() > hub_.limits().body_bytes);
  if (verdict != rate_meter::verdict::fine || too_many) return close(close_code::too_many_messages);
  waiting_bytes_ += m.text.size();
  if (!hold()) return close(close_code::overloaded);
  waiting_.push_back(std::move(m));
  news_->notify();
}

// ---- answers

asio::awaitable<void> session::answer_all() {
  while (!client_gone()) {
    if (!waiting_.empty() && !is_old_ && !hub_.server().draining) {
      message m = std::move(waiting_.front());
      waiting_.pop_front();
      waiting_bytes_ -= m.text.size();
      co_await answer(std::move(m));
      continue;
    }
    if (closing_.no_lane_left()) break;
    if (is_old_) {
      reply no = error_reply(400, "websocket_connection_limit_reached",
                             "this connection has reached its greatest age: open another one");
      co_await refuse(std::move(no));
      close(close_code::too_old);
      break;
    }
    co_await news_->wait();
  }
}

asio::awaitable<void> session::answer(message m) {
  if (!m.is_text) {
    reply no = error_reply(400, "bad_message", "only text frames are understood");
    co_return co_await refuse(std::move(no));
  }
  const auto& l = hub_.limits();
  body_bounds most;
  most.values = l.json_values;
  most.strict = l.strict_fields;
  most.of_socket = true;
  const auto parse = [most](std::string_view text) { return read_response_body(text, most); };
  text_sender from{how_.from.who.key};
  auto read = co_await read_sent<read_response>(hub_.server().service, std::move(from), hub_.executor(),
                                                std::move(m.text), parse);
  co_await answer_within(read);
  done_with(hub_.server().service, std::move(read));
}

asio::awaitable<void> session::answer_within(std::shared_ptr<sent_text<read_response>> read) {
  actors::service& service = hub_.server().service;
  std::optional<core::error> no;
  if (!*read->said) {
    no = read->said->error();
  } else if ((*read->said)->goes_on()) {
    std::shared_ptr<read_response> of(read, &**read->said);
    const auto made = co_await bring_history(hub_, how_.from.who, std::move(of), last_);
    if (!made) no = made.error();
  }
  if (client_gone()) co_return;
  if (no) {
    reply refused = response_refusal(*no);
    co_return co_await refuse(std::move(refused));
  }
  read_response& asked = **read->said;
  earlier_ = std::move(asked.earlier_items);
  if (!hold()) co_return close(close_code::overloaded);
  auto terms = terms_of(asked, how_.from.who, service.memory());
  if (!terms) {
    reply refused = error_reply(terms.error());
    co_return co_await refuse(std::move(refused));
  }
  if (!asked.generate) co_return co_await prepare_only(std::move(*terms));
  actors::request request = std::move(asked.request);
  read->memory.force(0);
  co_await run_job(std::move(request), std::move(*terms), asked.outlives);
}

// A response without an answer: what goes on with it has its items in front.
asio::awaitable<void> session::prepare_only(terms_ptr terms) {
  admitted_job job;
  job.id = *core::job_id::parse(random_hex());
  responses::event_writer events(terms->head_of(job));
  out_.clear();
  events.open(out_);
  events.end_prepared(out_, terms->created_s);
  auto kept = std::make_shared<stored_response>();
  kept->id = job.id;
  kept->owner = terms->owner;
  kept->previous = terms->previous;
  kept->items = terms->items;
  kept->object = responses::prepared_object(terms->head_of(job), terms->created_s, &kept->output_at);
  remember(job.id, terms->items, "[]");
  if (terms->stored)
    hub_.server().responses->tell([kept = stored_ptr(std::move(kept))](response_store& s) { s.keep(kept); });
  co_await send_events();
}

asio::awaitable<void> session::run_job(actors::request asked, terms_ptr terms, bool outlives) {
  asked.witness = begin_record(hub_.server_ptr(), how_.from, "/v1/responses", how_.request_id);
  auto wake_up = [news = std::weak_ptr(news_)] {
    if (auto alive = news.lock()) alive->notify();
  };
  responses_encoder encoder;
  encoder.terms = terms;
  if (outlives) make_resumable(hub_, asked, encoder);
  auto begun =
      submit_as(hub_.server().service, how_.from, std::move(asked), 1, hub_.executor(), std::move(wake_up));
  if (!begun) {
    reply no = error_reply(begun.error());
    co_return co_await refuse(std::move(no));
  }
  const auto job = std::move(begun->front());
  begun->clear();
  if (terms->stored) keep_when_ended(hub_.server().responses, terms, job);
  kept_jobs::follower kept;
  if (outlives) {
    kept_job one;
    one.stream = job;
    one.owner = how_.from.who;
    one.answer = kept_answer_of(terms, job->id());
    one.ending_is_kept = true;
    kept = hub_.jobs().keep(std::move(one));
  }
  while (job->state() == phase::pending && !client_gone()) co_await news_->wait();
  if (client_gone()) co_return;
  if (job->state() == phase::refused) {
    reply no = error_reply(job->refusal());
    co_return co_await refuse(std::move(no));
  }
  if (job->state() == phase::done && job->ended().fault) {
    reply no = error_reply(*job->ended().fault);
    co_return co_await refuse(std::move(no));
  }
  co_await stream(job, terms);
  if (client_gone() || job->state() != phase::done || job->model().empty()) co_return;
  responses::output_place at;
  const std::string object = terms->object_of(*job, &at);
  remember(job->id(), terms->items, object.substr(at.begin, at.size));
}

// The other work of the shard runs between two pieces.
asio::awaitable<void> session::stream(const std::shared_ptr<actors::job_stream>& job,
                                      const terms_ptr& terms) {
  constexpr std::uint32_t most_tokens = 256;
  response_events events(terms, admitted_job::of(*job), -1);
  out_.clear();
  events.open(out_, 0, {});
  for (std::uint32_t shown = 0; !client_gone();) {
    const auto& log = job->log();
    const std::uint32_t published = log.whole(),
                        to = log.whole_part(shown, std::min(log.piece_end(shown, body_parts::piece_bytes),
                                                            shown + most_tokens));
    const bool last = to == published && job->state() == phase::done;
    if (to > shown) events.piece(out_, log, shown, to);
    if (last) events.end(out_, std::span(&job->ended(), 1));
    const bool any = to > shown;
    shown = to;
    if (!out_.empty()) co_await send_events();
    if (any) hub_.counts().sampled_to_sent.add(hub_.server().service.now() - job->sampled_at(shown - 1));
    if (last) co_return;
    if (to == published) {
      co_await news_->wait();
    } else {
      co_await asio::post(hub_.executor(), asio::use_awaitable);
    }
  }
}

// Sends out_, and empties it.
asio::awaitable<void> session::send_events() {
  frames_.clear();
  append_event_frames(frames_, out_);
  out_.clear();
  co_await send_frames();
}

asio::awaitable<void> session::refuse(reply no) {
  hub_.counts().rejected.add(no.code);
  frames_.clear();
  append_error_frame(frames_, no);
  co_await send_frames();
}

asio::awaitable<void> session::send_frames() {
  if (!closing_.writes()) co_return;
  const std::string_view rest = ws_.next_layer().try_write(frames_);
  if (rest.empty()) co_return;
  waits_since_ = steady_clock::now();
  auto begin = [&](auto done) { ws_.next_layer().write(rest, [done](const error_code& ec) { done(!ec); }); };
  const bool sent = co_await called_back<bool>(begin);
  waits_since_.reset();
  if (!sent) hang_up();
}

// `items`, `output`: JSON of arrays.
void session::remember(const core::job_id& id, const std::string& items, std::string output) {
  const std::string_view own = std::string_view(items).substr(1, items.size() - 2);
  auto r = std::make_shared<stored_response>();
  r->id = id;
  r->owner = how_.from.who;
  r->items = '[';
  r->items += std::exchange(earlier_, {});
  if (r->items.size() > 1 && !own.empty()) r->items += ',';
  r->items += own;
  r->items += ']';
  r->object = std::move(output);
  r->output_at = {0, r->object.size()};
  last_ = nullptr;
  if (remembered_.resize(r->memory()))
    last_ = std::move(r);
  else
    remembered_.force(0);
}

}  // namespace

void serve_responses(std::shared_ptr<hub> h, beast::tcp_stream stream,
                     http::request<http::string_body> upgrade, admission how) {
  stream.expires_never();
  const auto executor = h->executor();
  auto s = std::make_shared<session>(std::move(h), stream.release_socket(), std::move(how));
  auto run = [s, upgrade = std::move(upgrade)]() mutable { return s->run(std::move(upgrade)); };
  asio::co_spawn(executor, std::move(run), asio::detached);
}

}  // namespace weir::net
