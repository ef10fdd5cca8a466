#include "actors/job_stream.h"

#include <fmt/format.h>

#include <boost/asio/post.hpp>
#include <exception>

#include "actors/job_state.h"
#include "core/insist.h"

namespace weir::actors {
namespace {

namespace asio = boost::asio;
using core::finish_reason;

double ms(core::duration d) { return std::chrono::duration<double, std::milli>(d).count(); }

outcome outcome_of(const core::ending& e, core::time_point created) {
  outcome o;
  o.reason = e.reason;
  o.stop_string = e.stop_string;
  o.input_tokens = e.input_tokens;
  o.output_tokens = e.output_tokens;
  o.cached_tokens = e.cached_tokens;
  o.shifts = e.shifts;
  o.fault = e.fault;
  o.prompt_logprobs = e.prompt_logprobs;
  o.max_gap_ms = ms(e.max_gap);
  if (e.scheduled) o.queue_ms = ms(*e.scheduled - created);
  if (e.first_token) {
    o.ttft_ms = ms(*e.first_token - created);
    if (e.scheduled) o.prefill_ms = ms(*e.first_token - *e.scheduled);
    if (e.last_token) o.decode_ms = ms(*e.last_token - *e.first_token);
  }
  return o;
}

}  // namespace

const char* outcome::status() const noexcept {
  switch (reason) {
    case finish_reason::stop: return "completed";
    case finish_reason::cancel: return "cancelled";
    case finish_reason::error: return "failed";
    default: return "incomplete";
  }
}

// --- the owner's side

job_stream::state_block::state_block(core::job_id i, executor s, std::shared_ptr<const core::clock> t,
                                     end_hook h, std::optional<core::time_point> began)
    : waker(s, [](waker& w) { static_cast<state_block&>(w).read_news(); }),
      id(i),
      shard(std::move(s)),
      time(std::move(t)),
      created(began.value_or(time->now())),
      at_end(std::move(h)) {
  arm();
}

// Reports the end of a job whose stream could not be made. Nothing else has reported this end.
job_stream::state_block::~state_block() {
  now = phase::refused;
  outcome never_begun;
  never_begun.reason = finish_reason::error;
  tell_ended(never_begun);
}

std::size_t job_stream::state_block::write(std::span<const core::token> tokens) {
  std::size_t n = 0;
  while (n < tokens.size() && queue.try_enqueue(tokens[n])) ++n;
  return queued(n);
}

std::size_t job_stream::state_block::write_with_logprobs(std::span<const core::token> tokens,
                                                         std::span<const core::draw_logprobs> logprobs) {
  std::size_t n = 0;
  while (n < tokens.size() && queue_with_logprobs->try_enqueue({tokens[n], logprobs[n]})) ++n;
  return queued(n);
}

std::size_t job_stream::state_block::queued(std::size_t n) {
  pushed += static_cast<std::uint32_t>(n);
  if (const auto computed = std::exchange(prompt, nullptr)) computed->computed();
  if (n != 0 && out) out->add(*this);
  return n;
}

void job_stream::state_block::keep_logprobs(std::uint32_t top) { log.keep_logprobs(top); }

void job_stream::state_block::open_queue() {
  if (!log.has_logprobs()) return;
  queue_with_logprobs =
      std::make_unique<moodycamel::ReaderWriterQueue<token_with_logprobs>>(std::size_t{queue_items});
}

void job_stream::state_block::paused(bool now) noexcept {
  standing = taken_by->admission->job_paused(standing, now);
}

void job_stream::state_block::finish(const core::ending& how) {
  core::insist([&] { how_it_ended = how; });
  finished = true;
  prompt.reset();
  taken_by->admission->job_done(how.output_tokens, standing);
  pausable.reset();
  if (!out) return;
  note_release(how);
  out->add(*this);
}

void job_stream::state_block::note_release(const core::ending& how) noexcept {
  if (!how.released || (how.reason != finish_reason::cancel && how.reason != finish_reason::timeout)) return;
  const auto asked =
      std::min(cancelled_at.load(std::memory_order_relaxed), deadline.value_or(core::time_point::max()));
  if (asked != core::time_point::max()) out->released.add(*how.released - asked);
}

void job_stream::state_block::publish() noexcept {
  readable.store(std::uint64_t{pushed} << 1 | (finished ? 1 : 0), std::memory_order_release);
}

void outbox::add(job_stream::state_block& job) {
  if (job.has_news) return;
  core::insist([&] { news_.emplace_back(job.shared_from_this(), &job); });
  job.has_news = true;
}

void outbox::flush() {
  for (auto& job : news_) {
    job->has_news = false;
    job->publish();
    job->signal(wakes_);
  }
  news_.clear();
  wakes_.flush();
}

// --- the shard's side

void job_stream::state_block::read_news() {
  arm();
  if (now == phase::pending) return;  // admitted() is on its way, and reads them
  if (now == phase::done || now == phase::refused) {  // cancelled before the owner heard of it
    core::token t;
    while (queue.try_dequeue(t)) {
    }
    token_with_logprobs with;
    while (queue_with_logprobs && queue_with_logprobs->try_dequeue(with)) {
    }
    return;
  }
  take_news_or_end();
}

// If there is no memory for the news, the job ends here, and its owner is told to cancel it.
void job_stream::state_block::take_news_or_end() {
  try {
    take_news();
  } catch (const std::exception& e) {
    if (now != phase::running) throw;  // it had ended before: a reader threw
    place->port->cancel(id, finish_reason::error);
    outcome o;
    o.reason = finish_reason::error;
    o.output_tokens = log.size();
    core::insist([&] {
      o.fault = core::make_error(core::errc::internal, "the answer could not be kept: {}", e.what());
    });
    end(std::move(o));
  }
}

void job_stream::state_block::take_news() {
  const auto word = readable.load(std::memory_order_acquire);
  const auto count = static_cast<std::uint32_t>(word >> 1);
  const bool ended = word & 1;
  if (ended) text->limit(how_it_ended.shown_bytes);
  while (taken < count && take_token()) ++taken;
  if (log.size() > 0) count_output(taken, created + std::chrono::microseconds(log.at_us(log.size() - 1)));
  count_log();
  if (!ended) return changed();
  close_log();
  outcome o = outcome_of(how_it_ended, created);
  o.reasoning_tokens = log.reasoning_tokens();
  o.calls = log.whole_calls();
  o.parts = log.parts();
  end(std::move(o));
}

bool job_stream::state_block::take_token() {
  if (!queue_with_logprobs) {
    core::token t;
    if (!queue.try_dequeue(t)) return false;
    keep(t);
    return true;
  }
  token_with_logprobs t;
  if (!queue_with_logprobs->try_dequeue(t)) return false;
  log.append_logprobs(t.logprobs);
  keep(t.token);
  return true;
}

void job_stream::state_block::keep(const core::token& t) {
  bool whole = true;
  if (parts) {
    characters.clear();
    whole = text->push(t.id, characters);
    parts->take(log.size(), t.id, characters, log.text(), log.marks());
    whole = whole && parts->settled();
    name_calls();
  } else {
    whole = text->push(t.id, log.text());
  }
  log.append(t.id, std::chrono::duration_cast<std::chrono::microseconds>(t.at - created).count(), whole);
}

// A short id of the model's may come again in the same conversation.
void job_stream::state_block::name_calls() {
  constexpr std::size_t shortest_id = 9;
  auto& calls = log.marks().calls;
  for (; named_calls < calls.size(); ++named_calls)
    if (auto& call = calls[named_calls].id; call.size() < shortest_id)
      call = fmt::format("call_{}{:04x}", id.text().substr(0, 20), named_calls);
}

void job_stream::state_block::close_log() {
  if (parts) {
    characters.clear();
    text->flush(characters);
    const std::uint32_t last = std::max(log.size(), 1u) - 1;
    parts->end(last, characters, log.text(), log.marks());
    name_calls();
  } else {
    text->flush(log.text());
  }
  log.close();
}

// The output grows by a token at a time, and all shards share the account: many tokens are counted at once.
void job_stream::state_block::count_log() noexcept {
  constexpr std::uint64_t at_once = 64;
  const auto in_log = log.memory();
  const auto in_engine = (taken + at_once - 1) / at_once * at_once * engine_token_bytes;
  if (in_log == log_bytes && in_engine == engine_bytes) return;
  memory.force(memory.bytes() - log_bytes - engine_bytes + in_log + in_engine);
  log_bytes = in_log;
  engine_bytes = in_engine;
}

void job_stream::state_block::admitted(std::shared_ptr<const served_model> by,
                                       std::shared_ptr<const model_place> at, std::uint32_t position,
                                       std::shared_ptr<const std::string> prompt,
                                       std::shared_ptr<const constraint_warnings> unmet,
                                       std::shared_ptr<const core::answer_plan> how) {
  // the job has ended here meanwhile: the owner has to be told
  if (now != phase::pending) return at->port->cancel(id, wanted_end);
  now = phase::running;
  model = std::move(by);
  place = std::move(at);
  queue_position = position;
  prompt_text = std::move(prompt);
  warnings = std::move(unmet);
  text.emplace(model->tokenizer, skip_special, healed);
  if (how) {
    parts.emplace(std::move(how));
    log.keep_marks();
  }
  take_news_or_end();  // an executor may have run the first wake before this
}

void job_stream::state_block::waits(const std::string& of, std::uint32_t ahead) {
  if (now != phase::pending) return;
  awaited = of;
  queue_position = ahead;
  changed();
}

// A text task that finds the job abandoned refuses it, and may be quicker than the cancel.
void job_stream::state_block::refused(core::error e) {
  if (now != phase::pending || abandoned()) return;  // cancel_here() is on its way
  now = phase::refused;
  why_refused = std::move(e);
  outcome o;
  o.reason = finish_reason::error;
  tell_ended(o);
  changed();
}

// The registry keeps a job until it hears of its end.
void job_stream::state_block::tell_ended(const outcome& o) {
  const auto told = std::exchange(at_end, nullptr);
  if (!told) return;
  if (o.output_tokens > counted) count_output(o.output_tokens, time->now());
  for (const auto& a : accounts)
    if (a) a->ended();
  core::insist([&] { told(o, *this); });
}

void job_stream::state_block::count_output(std::uint32_t tokens, core::time_point at) noexcept {
  if (tokens <= counted) return;
  for (const auto& a : accounts)
    if (a) a->output(tokens - counted, at);
  counted = tokens;
}

void job_stream::state_block::cancel(finish_reason why) {
  auto never = core::time_point::max();
  if (!cancelled_at.compare_exchange_strong(never, time->now(), std::memory_order_relaxed)) return;
  cancelled.store(true, std::memory_order_release);
  auto self = std::static_pointer_cast<state_block>(shared_from_this());
  core::insist([&] { asio::post(shard, [s = self, why] { s->cancel_here(why); }); });
}

void job_stream::state_block::cancel_here(finish_reason why) {
  if (now == phase::pending) {
    wanted_end = why;
    outcome o;
    o.reason = why;
    end(std::move(o));
  } else if (now == phase::running) {
    place->port->cancel(id, why);
  }
}

void job_stream::state_block::pause(std::optional<core::time_point> until) {
  if (now != phase::running) return;
  pause_until.store(until.value_or(core::time_point::min()));
  if (pause_told.exchange(true)) return;  // the owner has not read the last message yet
  core::insist([&] { place->port->pause(std::static_pointer_cast<state_block>(shared_from_this())); });
}

void job_stream::state_block::end(outcome o) {
  now = phase::done;
  result = std::move(o);
  log.finish();
  if (result.prompt_logprobs) log_bytes += result.prompt_logprobs->capacity() * sizeof(core::scored_token);
  // What the engine had of the job is gone.
  if (model) memory.force(log_bytes + (prompt_text ? prompt_text->size() : 0));
  if (model) shared_memory.reset();
  tell_ended(result);
  changed();
}

// A reader that throws keeps the news from no other reader.
void job_stream::state_block::changed() {
  ++telling;
  std::exception_ptr failed;
  for (auto& r : readers) {
    if (r.gone) continue;
    try {
      r.tell();
    } catch (...) {
      failed = std::current_exception();
    }
  }
  if (--telling == 0) readers.remove_if([](const follower& r) { return r.gone; });
  if (failed) std::rethrow_exception(failed);
}

// --- the reader's side

job_stream::job_stream(std::shared_ptr<state_block> s) : s_(std::move(s)) {}

job_stream::~job_stream() {
  if (s_->now == phase::pending || s_->now == phase::running) cancel();
}

const core::job_id& job_stream::id() const noexcept { return s_->id; }

void job_stream::cancel(finish_reason why) { s_->cancel(why); }

job_stream::phase job_stream::state() const noexcept { return s_->now; }
const core::error& job_stream::refusal() const { return s_->why_refused; }
const outcome& job_stream::ended() const { return s_->result; }
std::uint32_t job_stream::queue_position() const noexcept { return s_->queue_position; }
const std::string& job_stream::awaited_model() const noexcept { return s_->awaited; }
std::uint32_t job_stream::prompt_tokens() const noexcept { return s_->model ? s_->prompt_tokens : 0; }
core::token_id job_stream::first_prompt_token() const noexcept { return s_->first_prompt_token; }
const token_log& job_stream::log() const noexcept { return s_->log; }
core::time_point job_stream::created() const noexcept { return s_->created; }

void job_stream::pause(core::time_point until) { s_->pause(until); }
void job_stream::resume() { s_->pause(std::nullopt); }

namespace {
const std::string none;
}

const std::string& job_stream::model() const noexcept { return s_->model ? s_->model->name : none; }
const std::string& job_stream::fingerprint() const noexcept {
  return s_->model ? s_->model->fingerprint : none;
}
std::span<const core::grammar::warning> job_stream::warnings() const noexcept {
  return s_->warnings ? std::span(*s_->warnings) : std::span<const core::grammar::warning>();
}
const std::string& job_stream::prompt_text() const noexcept {
  return s_->prompt_text ? *s_->prompt_text : none;
}

std::shared_ptr<const core::tokenizer> job_stream::tokenizer() const noexcept {
  return s_->model ? s_->model->tokenizer : nullptr;
}

void job_stream::text_of(std::uint32_t from, std::uint32_t to, std::string& out) const {
  out += s_->log.text_of(from, to);
}

std::uint64_t job_stream::follow(reader r) {
  s_->readers.push_back({s_->next_reader, std::move(r)});
  return s_->next_reader++;
}

void job_stream::leave(std::uint64_t handle) {
  for (auto& r : s_->readers)
    if (r.handle == handle) r.gone = true;
  if (s_->telling == 0) s_->readers.remove_if([](const auto& r) { return r.gone; });
}

}  // namespace weir::actors
