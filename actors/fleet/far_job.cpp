#include "actors/fleet/far_job.h"

#include <utility>

namespace weir::actors::fleet {

namespace wire = core::fleet;

namespace {

// Times of an ending that came in a frame count from the job's creation.
core::ending from_creation(core::ending e, core::time_point created) {
  for (auto* at : {&e.scheduled, &e.first_token, &e.last_token, &e.released})
    if (*at) *at = created + (*at)->time_since_epoch();
  return e;
}

}  // namespace

wire::job_order far_job::order(const std::string& gateway) const {
  wire::job_order o;
  o.attempt = attempt;
  o.gateway = gateway;
  o.slot = slot;
  o.model = where->model;
  o.engine = where->engine;
  o.may_pause = may_pause;
  o.arithmetic = received.empty() ? 0 : began_on;
  o.job = job;
  o.job.spoken = received;
  if (has_output() && !received.empty()) o.job.spoken.pop_back();
  if (end->resume) o.resume = *end->resume;
  o.user = end->user;
  o.answer = end->answer;
  o.stay = end->stay;
  return o;
}

void far_job::begin_with_received(core::time_point at) {
  for (const core::token_id id : received) waiting_.push_back({.id = id, .at = at});
}

far_job::news far_job::take(const wire::job_news& n, const wire::token_frame& f) {
  if (how) return news::nothing;
  const auto have = static_cast<std::uint32_t>(received.size());
  if (n.from > have) return news::gap;
  const std::uint32_t end = n.from + (n.end - n.begin);
  if (end < have) return news::nothing;
  const std::uint32_t fresh = scores.ending ? n.end : n.begin + (have - n.from);
  for (std::uint32_t i = fresh; i < n.end; ++i) {
    core::token t = f.tokens[i];
    t.at = created() + t.at.time_since_epoch();
    received.push_back(t.id);
    waiting_.push_back(t);
    if (job.top_logprobs)
      waiting_logprobs_.push_back(f.with_logprobs ? f.logprobs[i] : core::draw_logprobs());
  }
  if (!n.ended) return fresh < n.end ? news::fresh : news::nothing;
  if (!scores.ending) scores.ending = from_creation(n.how, created());
  if (job.prompt_logprobs && !scores.whole && !cancelled) return news::unscored;
  take_ending();
  return news::fresh;
}

void far_job::take_ending() {
  how = std::exchange(scores.ending, std::nullopt);
  how->prompt_logprobs = scores.tokens;
}

bool far_job::take(wire::score_part p) {
  if (!scores.tokens) scores.tokens = std::make_shared<std::vector<core::scored_token>>();
  auto& have = *scores.tokens;
  const bool fits = p.job == name() && p.at == have.size() && p.of < job.prompt.size();
  if (!fits || (p.tokens.empty() && p.at != p.of)) return false;
  for (auto& t : p.tokens) {
    have.push_back(t);
    have.back().drawn.id = job.prompt[have.size()];
  }
  scores.whole = have.size() == p.of;
  return true;
}

bool far_job::write() {
  const std::span<const core::token> left = std::span(waiting_).subspan(written_);
  if (!left.empty()) {
    written_ += job.top_logprobs
                    ? end->write_with_logprobs(left, std::span(waiting_logprobs_).subspan(written_))
                    : end->write(left);
  }
  if (waits()) return false;
  waiting_.clear();
  waiting_logprobs_.clear();
  written_ = 0;
  return true;
}

core::ending far_job::ending(core::finish_reason why) const {
  core::ending e;
  e.reason = why;
  e.input_tokens = static_cast<std::uint32_t>(job.prompt.size());
  e.output_tokens = static_cast<std::uint32_t>(received.size());
  return e;
}

}  // namespace weir::actors::fleet
