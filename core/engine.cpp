#include <algorithm>
#include <cassert>
#include <tuple>
#include <utility>

#include "core/engine_state.h"
#include "core/schedule/prefix_reuse.h"

namespace weir::core {
namespace {

// A sink that had no room is offered its tokens again after this long, where no step comes sooner.
constexpr duration offer_again = std::chrono::milliseconds(1);

// Jobs without room that admit() looks behind for one that has it.
constexpr std::size_t most_blocked = 16;

using sequences = std::vector<std::unique_ptr<sequence>>;

// The first pass over the sequences after a wait finds few of their lines in the caches: it asks for them in
// time.
void fetch_ahead(const sequences& all, std::size_t i) {
  constexpr std::size_t lines = 16, ends = 8;  // sequences ahead
  if (i + lines < all.size()) all[i + lines]->fetch();
  if (i + ends < all.size()) all[i + ends]->fetch_ends();
}

std::unique_ptr<sequence> take(sequences& from, const sequence& s) {
  const auto it = std::find_if(from.begin(), from.end(), [&](const auto& p) { return p.get() == &s; });
  if (it == from.end()) return nullptr;
  auto taken = std::move(*it);
  from.erase(it);
  return taken;
}

}  // namespace

engine::state::state(std::unique_ptr<model> m, std::shared_ptr<const tokenizer> t, engine_config c,
                     const clock& clk)
    : device(std::move(m)),
      text(*t),
      config(c),
      time(clk),
      tier(c.host_pages > 0 ? std::make_unique<host_tier>(*device, c.host_pages) : nullptr),
      pool(c.kv_pages, tier.get()),
      plan(c.max_batch, {c.prefill_rows, c.step_target, c.lone_step_target, c.prompt_share}) {
  assert(!(device->info().paced && device->info().runs_ahead));
  assert(config.kv_pages > 0 && config.max_batch > 0 && config.prefill_rows > 0);
  const std::uint64_t room = std::uint64_t{config.kv_pages} * page_tokens;
  longest = device->info().context;
  if (config.max_seq_len > 0) longest = std::min(longest, config.max_seq_len);
  longest = static_cast<std::uint32_t>(std::min<std::uint64_t>(longest, room));
  draws.reserve(config.max_batch);
  results.reserve(config.max_batch);
  running.reserve(config.max_batch);
  prompts.reserve(config.max_batch);
  computing.reserve(config.max_batch);
  blocked.reserve(most_blocked);
}

engine::engine(std::unique_ptr<model> m, std::shared_ptr<const tokenizer> t, engine_config config,
               const clock& time)
    : s_(std::make_unique<state>(std::move(m), std::move(t), config, time)) {}

engine::~engine() {
  const error stopped = s_->fault.value_or(make_error(errc::unavailable, "the engine was stopped"));
  s_->fail_all(stopped);
  for (auto& s : s_->finishing) {
    if (!s->settle()) s_->drop(std::move(s), finish_reason::error, stopped);
  }
}

step_report engine::step() {
  const bool ahead = s_->config.run_ahead && s_->device->info().runs_ahead;
  return ahead ? s_->overlapped_step() : s_->plain_step();
}

step_report engine::state::plain_step() {
  begin();
  expire();
  grow();
  admit();
  const batch& work = schedule();
  if (!work.empty()) {
    forward(work);
    sample(work);
  }
  deliver();
  report.took = time.now() - now;
  return close_step(!work.empty());
}

void engine::submit(job j) {
  assert(!j.prompt.empty() && j.max_tokens > 0 && j.sink && !s_->known.contains(j.id));
  if (auto why = s_->fault ? s_->fault : s_->refusal(j)) {
    ending how;
    how.reason = finish_reason::error;
    how.input_tokens = static_cast<std::uint32_t>(j.prompt.size());
    how.fault = std::move(why);
    ++s_->totals.finished;
    j.sink->finish(how);
    return;
  }
  if (j.deadline) s_->earliest_deadline = std::min(s_->earliest_deadline, *j.deadline);
  auto s = std::make_unique<sequence>(std::move(j), s_->device->info(), s_->longest);
  const auto named = s_->known.emplace(s->asked.id, s.get()).first;
  try {
    s_->waiting.add(std::move(s));
  } catch (...) {
    s_->known.erase(named);
    throw;
  }
}

bool engine::cancel(const job_id& id, finish_reason why) {
  s_->begin_draws();  // its own may be among them
  const auto it = s_->known.find(id);
  if (it == s_->known.end()) return false;
  const sequence& s = *it->second;
  auto found = s_->waiting.take(s);
  if (!found) found = take(s_->running, s);
  if (!found) found = take(s_->finishing, s);
  s_->drop(std::move(found), why);
  return true;
}

void engine::state::begin() {
  now = time.now();
}

void engine::state::expire() {
  if (now < earliest_deadline) return;
  earliest_deadline = time_point::max();
  std::vector<const sequence*> late;
  const auto look = [&](const sequence& s) {
    if (!s.asked.deadline) return;
    if (*s.asked.deadline <= now) {
      late.push_back(&s);
    } else {
      earliest_deadline = std::min(earliest_deadline, *s.asked.deadline);
    }
  };
  waiting.each(look);
  for (const auto& s : running) look(*s);
  for (const sequence* s : late) {
    auto found = waiting.take(*s);
    if (!found) found = take(running, *s);
    found->close(finish_reason::timeout, pool);
    found->how.released = now;
    finishing.push_back(std::move(found));
  }
}

// Every running sequence gets the page of the row that it computes next. Where none is left, the youngest of
// the lowest priority gives its own back.
void engine::state::grow() {
  const auto keeps_longer = [](const auto& a, const auto& b) {
    return std::tuple(a->preempted, a->asked.priority, b->arrival) >
           std::tuple(b->preempted, b->asked.priority, a->arrival);
  };
  const std::uint64_t before = totals.preemptions;
  prompts.clear();
  for (std::size_t i = 0; i < running.size(); ++i) {
    fetch_ahead(running, i);
    const auto& s = running[i];
    if (!s->decoding()) prompts.push_back(s.get());
    while (!s->preempted && !s->pages.grow(pool, s->expected())) {
      (*std::ranges::max_element(running, keeps_longer))->preempt(pool);
      ++totals.preemptions;
    }
  }
  if (totals.preemptions == before) return;
  std::erase_if(prompts, [](const sequence* s) { return s->preempted; });
  std::erase_if(running, [&](auto& s) {
    if (s->preempted) waiting.add_preempted(std::move(s));
    return s == nullptr;
  });
}

engine::state::outlook engine::state::look() const {
  return {pool.releases(), waiting.arrivals(), running.size()};
}

void engine::state::admit() {
  if (waiting.empty() || look() == seen) return;
  blocked.clear();
  const auto passed_often = [](const sequence* s) { return s->passed >= most_passes; };
  for (auto at = waiting.begin(); at != waiting.end() && running.size() < config.max_batch;) {
    sequence& s = *at->second;
    if (s.asked.sink->abandoned()) {
      drop(waiting.take(at), finish_reason::cancel);
    } else if (enter(s)) {
      for (sequence* b : blocked) ++b->passed;
      running.push_back(waiting.take(at));
      s.enter(admissions++, now, device->info().vocab_size);
      s.prompt_turn = plan.prompt_rows();
      prompts.push_back(&s);
      ++report.entered;
    } else {
      blocked.push_back(&s);
      ++at;
    }
    if (blocked.size() == most_blocked || std::ranges::any_of(blocked, passed_often)) break;
  }
  seen = look();
}

// Takes the pages that the sequence needs, those first that are computed already.
bool engine::state::enter(sequence& s) {
  const std::uint32_t cached = s.cached;
  share_pages(s, pool, plan.copies().empty());
  if (take_pages(s, pool, static_cast<std::uint32_t>(running.size()), plan.copies())) {
    report.prompt_tokens += s.cached - cached;
    return true;
  }
  s.give_back(pool);
  s.cached = cached;
  return false;
}

// Of those that would compute the same page in this step the first does; the others find it computed in a
// later one.
void engine::state::share() {
  computing.clear();
  for (sequence* s : prompts) {
    s->held = false;
    if (s->decoding()) continue;
    ++report.prefilling;
    const std::uint32_t cached = s->cached;
    const auto next = share_pages(*s, pool, plan.copies().empty());
    report.prompt_tokens += s->cached - cached;
    if (!next) continue;
    s->held = std::find(computing.begin(), computing.end(), *next) != computing.end();
    if (!s->held) computing.push_back(*next);
  }
}

const batch& engine::state::schedule() {
  share();
  const std::uint64_t rows = plan.prompt_rows();
  const batch& work = plan.plan(running, *device, now);
  report.prompt_tokens += plan.prompt_rows() - rows;
  return work;
}

void engine::state::forward(const batch& work) {
  report.rows = static_cast<std::uint32_t>(work.tokens.size());
  report.sequences = static_cast<std::uint32_t>(work.slices.size());
  if (auto done = device->forward(work); !done) fail_all(done.error());
}

void engine::state::sample(const batch& work) {
  if (fault) return;
  ask(work);
  results.assign(draws.size(), {});
  if (!draws.empty()) {
    if (auto done = device->sample(draws, results); !done) return fail_all(done.error());
  }
  const time_point at = time.now();
  plan.observe(plan.last_load(), at - now);
  settle_rows(at);
  judge(at);
}

// The plan's rows are computed before anything that comes later; pages that they fill get their names.
void engine::state::settle_rows(time_point at) {
  plan.computed(at, [&](sequence& s) {
    if (s.fills_page()) name_pages(s, pool);
  });
}

// A draw for each row of logits, unless its sequence has ended meanwhile.
void engine::state::ask(const batch& work) {
  draws.clear();
  const auto chosen = plan.sequences();
  for (std::size_t i = 0; i < chosen.size(); ++i) {
    sequence& s = *chosen[i];
    if (work.slices[i].logits_row < 0 || s.ended) continue;
    s.draw_at = static_cast<std::int32_t>(draws.size());
    // field by field in its place: copying what was just written stalls the processor
    draw& d = draws.emplace_back();
    d.from = &*s.chooser;
    d.logits_row = static_cast<std::uint32_t>(work.slices[i].logits_row);
    d.position = s.length();
    d.seed = s.chooser->params().seed;
    d.prompt_tokens = s.prompt_tokens();
  }
}

// What was drawn, for those that still await it.
void engine::state::judge(time_point at) {
  for (std::size_t i = 0; i < running.size(); ++i) {
    fetch_ahead(running, i);
    const auto& s = running[i];
    if (!s->awaits()) continue;
    const drawn& got = results[static_cast<std::size_t>(std::exchange(s->draw_at, -1))];
    if (got.fault) {
      s->close(finish_reason::error, pool,
               make_error(errc::internal, "the model gave logits that are not finite at position {}",
                          s->length()));
      ++bad_endings;
      continue;
    }
    ++report.tokens;
    if (!s->accept({got.id, at}, text)) {
      s->close(s->how.reason, pool);
      bad_endings = 0;
    } else if (s->fills_page()) {
      name_pages(*s, pool);
    }
  }
}

void engine::state::deliver() {
  std::erase_if(running, [&](auto& s) {
    if (!s->ended) return s->offer(), false;
    finishing.push_back(std::move(s));
    return true;
  });
  waiting.each_preempted([](sequence& s) { s.offer(); });
  std::erase_if(finishing, [&](auto& s) {
    if (!s->settle()) return false;
    forget(*s);
    return true;
  });
}

// `busy`: there is something to do at once.
step_report engine::state::close_step(bool busy) {
  if (report.rows > 0) ++totals.steps;
  totals.tokens += report.tokens;
  report.running = static_cast<std::uint32_t>(running.size());
  report.waiting = static_cast<std::uint32_t>(waiting.size());
  if (!busy) report.wait_until = next_event();
  return std::exchange(report, {});
}

// When a step could next do anything, if no message comes.
time_point engine::state::next_event() {
  time_point next = std::min(plan.next_due(), earliest_deadline);
  bool full = std::ranges::any_of(running, [](const auto& s) { return s->tail_waits(); });
  waiting.each_preempted([&](const sequence& s) { full = full || s.tail_waits(); });
  if (full || !finishing.empty()) next = std::min(next, now + offer_again);
  return next == time_point::max() ? time_point{} : next;
}

// Ends a job here and now, and is done with it.
void engine::state::drop(std::unique_ptr<sequence> s, finish_reason why, std::optional<error> with) {
  if (s->ended) {
    s->how.reason = why;
    s->how.fault = std::move(with);
  } else {
    s->close(why, pool, std::move(with));
  }
  s->how.released = time.now();
  s->settle_now();
  forget(*s);
}

void engine::state::forget(const sequence& s) {
  ++report.finished;
  ++totals.finished;
  totals.cached_tokens += s.cached;
  if (s.cached > 0) ++totals.prefix_hits;
  known.erase(s.asked.id);
}

// The device is gone: every job that still needs it ends with `e`, and those that come later will too.
void engine::state::fail_all(const error& e) {
  fault = e;
  while (!waiting.empty()) drop(waiting.take_front(), finish_reason::error, e);
  for (auto& s : running) {
    s->close(finish_reason::error, pool, e);
    finishing.push_back(std::move(s));
  }
  running.clear();
  under_way = next = {};
}

std::optional<error> engine::state::refusal(const job& j) const {
  const std::size_t prompt = j.prompt.size();
  if (prompt < longest) return std::nullopt;
  const std::uint64_t room = std::uint64_t{config.kv_pages} * page_tokens;
  if (prompt >= room) {
    return make_error(errc::does_not_fit,
                      "the prompt has {} tokens and needs {} pages of {} with its first output; there are {}",
                      prompt, pages_for(prompt + 1), page_tokens, config.kv_pages);
  }
  return make_error(errc::prompt_too_long, "the prompt has {} tokens; prompt and output together may have {}",
                    prompt, longest);
}

void engine::fail(const error& why) {
  if (!s_->fault) s_->fail_all(why);
}

bool engine::idle() const noexcept { return s_->known.empty() && !s_->under_way.up; }
const std::optional<error>& engine::fault() const noexcept { return s_->fault; }
std::uint32_t engine::bad_endings() const noexcept { return s_->bad_endings; }
const model_info& engine::info() const noexcept { return s_->device->info(); }

}  // namespace weir::core
