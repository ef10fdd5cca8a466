#include <algorithm>
#include <cassert>
#include <string_view>
#include <utility>
#include <vector>

#include "core/engine_state.h"
#include "core/insist.h"
#include "core/sample/logprobs.h"
#include "core/schedule/prefix_reuse.h"

namespace weir::core {
namespace {

// A sink that had no room is offered its tokens again after this time, or in an earlier step.
constexpr duration offer_again = std::chrono::milliseconds(1);

// `position`: position of the token that the logits are for.
error bad_logits(std::uint32_t position) {
  return make_error(errc::internal, "the model gave logits that are not finite at position {}", position);
}

// A fault of what the job asks for, and not of the model.
error nothing_left(const sequence& s) {
  const sampling_params& asked = s.asked.sampling;
  std::vector<std::string_view> by;
  if (s.forbids_endings()) by.push_back("min_tokens, which forbids the stop ids");
  if (s.constrained()) by.push_back("its constraint");
  if (!asked.logit_bias.empty()) by.push_back("logit_bias");
  if (has_penalties(asked)) by.push_back("its penalties");
  auto e = make_error(errc::invalid_param, "the request leaves no token to draw at position {}: by {}",
                      s.length(), fmt::join(by, ", and "));
  if (s.forbids_endings()) e.param = "min_tokens";
  return e;
}

}  // namespace

engine::state::state(std::unique_ptr<model> m, token_table t, engine_config c, const clock& clk,
                     std::shared_ptr<grammar::mask_helpers> h)
    : device(std::move(m)),
      text(std::move(t)),
      config(c),
      time(clk),
      helpers(std::move(h)),
      tier(c.host_pages > 0 ? std::make_unique<host_tier>(*device, c.host_pages) : nullptr),
      pool(c.kv_pages, tier.get(), static_cast<std::uint32_t>(device->most_pages())),
      plan(c.max_batch,
           {.rows = c.prefill_rows,
            .while_decoding = c.step_target,
            .alone = c.lone_step_target,
            .share = c.prompt_share,
            .slo = c.slo},
           pool, *device) {
  assert(!(device->info().paced && device->info().runs_ahead));
  assert(config.kv_pages > 0 && config.max_batch > 0 && config.prefill_rows > 0);
  const std::uint64_t room = std::uint64_t{config.kv_pages} * page_tokens;
  longest = device->info().context;
  if (config.max_seq_len > 0) longest = std::min(longest, config.max_seq_len);
  longest = static_cast<std::uint32_t>(std::min<std::uint64_t>(longest, room));
  over.draws.reserve(config.max_batch);
  over.results.reserve(config.max_batch);
  late.reserve(config.max_batch);
}

engine::engine(std::unique_ptr<model> m, token_table text, engine_config config, const clock& time,
               std::shared_ptr<grammar::mask_helpers> helpers)
    : s_(std::make_unique<state>(std::move(m), std::move(text), config, time, std::move(helpers))) {}

engine::~engine() {
  if (idle()) return;
  insist([&] { stop(s_->fault.value_or(make_error(errc::unavailable, "the engine was stopped"))); });
}

void engine::stop(const error& why) {
  s_->fault = why;
  s_->under_way.reset();
  s_->end_all(why);
  for (auto& s : s_->finishing) {
    if (!s) continue;  // ended by a call that threw later
    std::optional<error> given = why;
    if (s->settle())
      s_->forget(*s);
    else
      s_->drop(std::move(s), finish_reason::error, std::move(given));
    s.reset();
  }
  s_->finishing.clear();
}

step_report engine::step() {
  if (s_->fault) return s_->faulted_step();
  const bool ahead = s_->config.run_ahead && s_->device->info().runs_ahead;
  return ahead ? s_->overlapped_step() : s_->plain_step();
}

void engine::set_company(duration turn) noexcept {
  s_->plan.set_company(turn);
  s_->device->set_company(turn > duration::zero());
}

step_report engine::state::plain_step() {
  begin();
  expire();
  const batch& work = schedule();
  const bool busy = !work.empty();
  if (auto step = launch(work)) sample(*std::move(step), work);
  deliver();
  report.took = report.device_time = time.now() - now;
  return close_step(busy);
}

step_report engine::state::faulted_step() {
  std::erase(finishing, nullptr);  // a stop() that threw has left some
  begin();
  expire();
  deliver();
  return close_step(false);
}

void engine::state::refuse(const job& j, error why) {
  ending how;
  how.reason = finish_reason::error;
  how.input_tokens = static_cast<std::uint32_t>(j.prompt.size());
  how.fault = std::move(why);
  ++totals.finished;
  j.sink->finish(how);
}

void engine::submit(job j) {
  assert(!j.prompt.empty() && j.max_tokens > 0 && j.sink && !s_->known.contains(j.id));
  if (auto why = s_->fault ? s_->fault : s_->refusal(j)) return s_->refuse(j, *std::move(why));
  const model_info& m = s_->device->info();
  auto s = std::make_unique<sequence>(std::move(j), m, s_->longest);
  if (!s->asked.spoken.empty())
    if (auto why = s->replay(s_->text, m.vocab_size)) return s_->refuse(s->asked, *std::move(why));
  if (const auto& by = s->asked.deadline) s_->earliest_deadline = std::min(s_->earliest_deadline, *by);
  const auto named = s_->known.emplace(s->asked.id, s.get()).first;
  try {
    s_->plan.add(std::move(s));
  } catch (...) {
    s_->known.erase(named);
    throw;
  }
}

std::optional<std::uint64_t> engine::sleep_bytes() const noexcept { return s_->device->sleep_bytes(); }

result<void> engine::sleep(const std::atomic<bool>* others_busy) {
  assert(idle() && !s_->fault);
  if (!sleep_bytes()) return s_->device->sleep(others_busy);  // its error: nothing is lost for it
  s_->pool.forget_cached();
  return s_->device->sleep(others_busy);
}

result<void> engine::wake(const std::atomic<bool>* others_busy) { return s_->device->wake(others_busy); }

bool engine::cancel(const job_id& id, finish_reason why) {
  const auto it = s_->known.find(id);
  if (it == s_->known.end()) return false;
  s_->drop(s_->take(*it->second), why);
  return true;
}

bool engine::pause(const job_id& id, time_point until) {
  const auto it = s_->known.find(id);
  if (it == s_->known.end() || it->second->ended()) return false;
  sequence& s = *it->second;
  const bool begins = s.phase() != sequence_phase::paused;
  s_->plan.pause(s, until);
  if (begins) s.asked.sink->paused(true);
  return true;
}

bool engine::resume(const job_id& id) {
  const auto it = s_->known.find(id);
  if (it == s_->known.end() || it->second->phase() != sequence_phase::paused) return false;
  s_->plan.resume(*it->second);
  it->second->asked.sink->paused(false);
  return true;
}

void engine::state::begin() { now = time.now(); }

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
  plan.waiting().each(look);
  for (const auto& s : plan.running()) look(*s);
  for (const auto& s : plan.resting()) look(*s);
  finishing.reserve(finishing.size() + late.size());
  for (const sequence* s : late) {
    finishing.push_back(plan.take(*s));
    close(*finishing.back(), finish_reason::timeout);
    finishing.back()->note_release(now);
  }
}

const batch& engine::state::schedule() {
  const batch& work = plan.plan(now);
  for (const sequence* s : plan.resumed()) s->asked.sink->paused(false);
  const scheduler::changes& did = plan.latest();
  report.entered += did.entered;
  report.prefilling += did.prefilling;
  report.prompt_tokens += did.prompt_tokens;
  totals.preemptions += did.preemptions;
  for (auto& s : plan.abandoned()) drop(std::move(s), finish_reason::cancel);
  plan.abandoned().clear();
  return work;
}

std::optional<in_flight> engine::state::launch(const batch& work) {
  if (work.empty()) return {};
  in_flight step = in_flight::of(work, plan.last_load(), time.now(), std::move(over));
  if (auto done = device->forward(work); !done) {
    report.rows = step.rows;
    report.sequences = step.sequences;
    fail_all(done.error());
    return {};
  }
  ++launches;
  return step;
}

void engine::state::sample(in_flight step, const batch& work) {
  report.rows = step.rows;
  report.sequences = step.sequences;
  list_scored(work);
  score(work);
  plan.computed(time.now());  // before list_draws(), which may take tokens back
  list_draws(step, work);
  list_late(step, true);
  step.results.assign(step.draws.size(), {});
  if (!step.draws.empty()) {
    if (auto done = device->sample(step.draws, step.results); !done) return fail_all(done.error());
  }
  const time_point at = time.now();
  plan.observe(step.load, at - now, at - now);
  accept_draws(std::move(step), at);
}

void engine::state::list_draws(in_flight& step, const batch& work) {
  late.clear();
  const auto chosen = plan.sequences();
  for (std::size_t i = 0; i < chosen.size(); ++i) {
    sequence& s = *chosen[i];
    if (work.slices[i].logits_row < 0 || s.pages.size() == 0) continue;  // it ended, or its context shifted
    const std::uint32_t end = work.slices[i].position + work.slices[i].rows;
    if (s.draws_again() && end != s.length()) continue;  // the row of a token that was taken back
    const auto row = static_cast<std::uint32_t>(work.slices[i].logits_row);
    if (s.constrained()) {
      grammar::job_mask& mask = s.mask();
      if (!mask.begun()) mask.begin(s.asked.spoken);
      if (mask.needs_helper()) make_mask(s);
      s.set_mask_late(!mask.ready());
      if (s.mask_late()) late.push_back({s.asked.id, row});
      if (s.mask_late() || !goes_on(s, time.now())) continue;
    }
    // otherwise tokens were forced, and are computed first
    if (s.pages.size() > 0 && end == s.length()) list_draw(step, s, row);
  }
}

void engine::state::list_draw(in_flight& step, sequence& s, std::uint32_t logits_row) {
  s.await_draw(static_cast<std::uint32_t>(step.draws.size()));
  // field by field in its place: copying what was just written stalls the processor
  draw& d = step.draws.emplace_back();
  d.from = &s.chooser();
  d.logits_row = logits_row;
  d.position = s.next_position();
  d.seed = s.chooser().params().seed;
  d.prompt_tokens = s.prompt_tokens();
  d.top_logprobs = s.top_logprobs();
  d.allowed = s.allowed();
}

void engine::state::list_scored(const batch& work) {
  to_score.clear();
  if (work.scored == 0) return;
  const auto chosen = plan.sequences();
  for (std::size_t i = 0; i < chosen.size(); ++i)
    if (work.slices[i].scored > 0) to_score.emplace_back(chosen[i]->asked.id, i);
}

bool engine::state::score(const batch& work) {
  bool ended = false;
  for (const auto& [id, slice] : to_score) {
    if (fault) return true;
    const auto found = known.find(id);
    if (found == known.end() || found->second->ended()) continue;
    if (!score(*found->second, work.slices[slice])) ended = true;
  }
  return ended;
}

bool engine::state::score(sequence& s, const batch_slice& slice) {
  if (!scratch) scratch.emplace(device->info().vocab_size);
  for (std::uint32_t row = 0; row < slice.scored; ++row) {
    const std::uint32_t position = slice.position + slice.first_scored + row + 1;
    const std::span<const float> logits = device->logits(slice.scored_logits + row);
    scored_token told;
    if (!score_token(logits, s.token_at(position), *s.asked.prompt_logprobs, *scratch, told)) {
      begin_draws(false);
      if (fault) return false;  // the device failed, which says nothing of this job
      close(s, finish_reason::error, bad_logits(position));
      ++bad_endings;
      return false;
    }
    s.add_scored(told);
  }
  return true;
}

void engine::state::accept_draws(in_flight step, time_point at) {
  const auto running = plan.running();
  for (std::size_t i = 0; i < running.size(); ++i) {
    fetch_ahead(running, i);
    if (running[i]->awaits()) accept_draw(*running[i], step, at);
  }
  for (const auto& s : plan.resting())
    if (s->awaits()) accept_draw(*s, step, at);
  over = std::move(step);
}

void engine::state::accept_draw(sequence& s, const in_flight& step, time_point at) {
  const std::uint32_t number = s.take_draw();
  const drawn& got = step.results[number];
  if (got.fault) {
    close(s, finish_reason::error, bad_logits(s.length()));
    ++bad_endings;
    return;
  }
  if (got.nothing_left && s.chooser().attempt() > 0) return finish(s, finish_reason::banned);
  if (got.nothing_left) return close(s, finish_reason::error, nothing_left(s));
  ++report.tokens;
  measure(s, at);
  s.chooser().learn(got.surprise);
  const auto* logprobs = s.top_logprobs() < 0 ? nullptr : &device->logprobs_of(number);
  switch (s.accept({got.id, at}, text, logprobs)) {
    case sequence::accepted::goes_on:
      break;
    case sequence::accepted::banned:
      return go_back(s);
    case sequence::accepted::last: {
      const auto why = s.constrained() ? reason_of(s, got.id) : s.how().reason;
      return why ? finish(s, *why) : void(follow(s, got.id, at));
    }
  }
  if (s.is_full()) shift(s);
  if (s.constrained() && !follow(s, got.id, at)) return;
  if (s.fills_page()) name_pages(s, pool);
}

void engine::state::go_back(sequence& s) {
  const auto place = s.place_to_try_again(text);
  if (!place) {
    s.end_before_banned(text);
    return finish(s, finish_reason::banned);
  }
  ++totals.went_back;
  totals.taken_back += s.output().size() - *place;
  s.go_back(*place, text, pool);
  if (!s.constrained()) return;
  s.set_mask_late(false);
  if (!s.mask().go_back(s.output())) make_mask(s);
}

void engine::state::measure(const sequence& s, time_point at) noexcept {
  if (s.samples()) return measures.gap.add(at - s.last_at());
  if (!s.asked.spoken.empty()) return;
  measures.ttft.add(at - s.asked.created);
  measures.queue.add(*s.scheduled - s.asked.created);
  measures.prefill.add(at - *s.scheduled);
  totals.prompt_tokens += s.prompt_tokens();
  totals.cached_tokens += s.cached();
  if (s.cached() > 0) ++totals.prefix_hits;
}

void engine::state::deliver() {
  plan.sweep([&](std::unique_ptr<sequence>& s) {
    if (s->ended()) {
      finishing.push_back(std::move(s));
    } else {
      s->offer();
    }
  });
  plan.each_preempted([](sequence& s) { s.offer(); });
  std::erase_if(finishing, [&](auto& s) {
    if (!s->settle()) return false;
    forget(*s);
    return true;
  });
}

step_report engine::state::close_step(bool busy) {
  if (report.rows > 0) {
    ++totals.steps;
    device_ns += static_cast<std::uint64_t>(report.device_time.count());
    totals.device_us = device_ns / 1000;
    measures.step_time.add(report.took);
    measures.step_tokens.add(report.rows);
  }
  totals.tokens += report.tokens;
  report.running = static_cast<std::uint32_t>(plan.running().size());
  report.returning = plan.returning();
  report.waiting = static_cast<std::uint32_t>(plan.waiting().size()) + report.returning;
  if (!busy) report.wait_until = next_event();
  return std::exchange(report, {});
}

time_point engine::state::next_event() {
  time_point next = std::min(plan.next_due(), earliest_deadline);
  next = std::min(next, plan.next_resume());
  const auto waits = [](const auto& s) { return s->tail_waits(); };
  bool full = std::ranges::any_of(plan.running(), waits) || std::ranges::any_of(plan.resting(), waits);
  plan.each_preempted([&](const sequence& s) { full = full || s.tail_waits(); });
  if (full || !finishing.empty()) next = std::min(next, now + offer_again);
  return next == time_point::max() ? time_point{} : next;
}

std::unique_ptr<sequence> engine::state::take(const sequence& s) {
  if (auto found = plan.take(s)) return found;
  const auto it = std::ranges::find(finishing, &s, &std::unique_ptr<sequence>::get);
  assert(it != finishing.end());
  auto taken = std::move(*it);
  finishing.erase(it);
  return taken;
}

void engine::state::finish(sequence& s, finish_reason why) {
  close(s, why);
  bad_endings = 0;
}

void engine::state::shift(sequence& s) {
  s.shift(pool);
  ++totals.shifts;
}

void engine::state::close(sequence& s, finish_reason why, std::optional<error> with) {
  if (s.awaits()) begin_draws(false);
  s.close(why, pool, std::move(with));
  if (config.slo.set()) compare(s, why);
}

void engine::state::compare(const sequence& s, finish_reason why) noexcept {
  if (why == finish_reason::cancel || why == finish_reason::error || !s.asked.spoken.empty()) return;
  bool first = false, rest = false;
  if (s.sampled() > 0) {
    const time_point from = *s.how().first_token;
    first = from - s.asked.created <= config.slo.ttft;
    rest = s.last_at() - from <= config.slo.tpot * (s.sampled() - 1);
  }
  ++(first ? totals.ttft_met : totals.ttft_missed);
  ++(rest ? totals.tpot_met : totals.tpot_missed);
  ++(first && rest ? totals.slo_met : totals.slo_missed);
}

void engine::state::drop(std::unique_ptr<sequence> s, finish_reason why, std::optional<error> with) {
  if (s->ended()) {
    s->change_ending(why, std::move(with));
  } else {
    close(*s, why, std::move(with));
  }
  s->note_release(time.now());
  s->settle_now();
  forget(*s);
}

void engine::state::forget(sequence& s) {
  ++report.finished;
  ++totals.finished;
  known.erase(s.asked.id);
  discard_mask(s);
}

void engine::state::fail_all(const error& e) {
  fault = e;
  under_way.reset();
  if (config.keep_jobs) return plan.strand();
  end_all(e);
}

void engine::state::end_all(const error& e) {
  while (!plan.waiting().empty()) {
    std::optional<error> why = e;  // copied before the job is in nobody's hands
    drop(plan.take_waiting(), finish_reason::error, std::move(why));
  }
  plan.sweep([&](std::unique_ptr<sequence>& s) {
    if (!s->ended()) close(*s, finish_reason::error, e);
    finishing.push_back(std::move(s));
  });
}

std::optional<error> engine::state::refusal(const job& j) const {
  const std::size_t prompt = j.prompt.size();
  if (prompt < longest) return std::nullopt;
  const std::uint64_t room = std::uint64_t{config.kv_pages} * page_tokens;
  if (prompt >= room) {
    return make_error(
        errc::does_not_fit,
        "prompt is too long: {} tokens > {} maximum; the prompt has {} tokens and needs {} pages "
        "of {} with its first output; there are {}, so that the maximum context length is {} tokens",
        prompt, room - 1, prompt, pages_for(prompt + 1), page_tokens, config.kv_pages, room);
  }
  return make_error(
      errc::prompt_too_long,
      "prompt is too long: {} tokens > {} maximum; the maximum context length is {} tokens, one "
      "of them for the answer",
      prompt, longest - 1, longest);
}

void engine::fail(const error& why) {
  if (!s_->fault) s_->fail_all(why);
}

bool engine::idle() const noexcept { return s_->known.empty() && !s_->under_way; }
const std::optional<error>& engine::fault() const noexcept { return s_->fault; }
std::uint32_t engine::bad_endings() const noexcept { return s_->bad_endings; }
const model_info& engine::info() const noexcept { return s_->device->info(); }

}  // namespace weir::core
