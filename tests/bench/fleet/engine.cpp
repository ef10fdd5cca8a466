#include "tests/bench/fleet/engine.h"

#include <algorithm>
#include <array>

namespace weir::bench::fleet {

namespace {

constexpr std::uint32_t most_passes = 4;     // core::scheduler::most_passes
constexpr std::uint32_t most_together = 32;  // decode steps of one event: the context hardly grows meanwhile

// What serve has on a device of its own (actors/open_model.cpp).
core::prompt_budget::targets usual_targets() {
  return {
      .rows = 2048, .while_decoding = {}, .alone = std::chrono::milliseconds(250), .share = 0.4, .slo = {}};
}

core::time_point point(nanos at) { return core::time_point(core::duration(at)); }

}  // namespace

engine::engine(const settings& s, const trace& t, std::vector<job>& jobs)
    : admission(s.batch, core::queue_settings()),
      settings_(s),
      trace_(t),
      jobs_(jobs),
      pool_(s.pages),
      budget_(usual_targets()) {
  admission.set_pace({s.batch, 0, 0, 0});
}

void engine::submit(std::uint32_t job, nanos now) {
  line_.push_back(job);
  if (next_ == no_step) {
    pace_.wake(point(now));
    return plan(now);
  }
  if (count_ > 1) {  // the job enters behind the step that is under way
    const auto done = static_cast<std::uint32_t>((now - began_) / step_ns_) + 1;
    count_ = std::min(count_, done);
    next_ = began_ + count_ * step_ns_;
  }
}

void engine::step(nanos now) {
  firsts_.clear();
  ended_.clear();
  busy_ += now - began_;
  core::step_report r;
  r.prefilling = prefilling_;
  r.prompt_tokens = prompt_rows_ + found_now_;
  found_now_ = 0;
  r.tokens = streams_ * count_;
  budget_.observe(streams_, prompt_rows_, core::duration(step_ns_));
  count_tokens(count_);
  finish_slices();
  r.tokens += static_cast<std::uint32_t>(firsts_.size());
  pace_.add(point(now), r);
  const auto running = static_cast<std::uint32_t>(prompts_.size() + decoding_.size());
  const auto places = line_.empty() || running == 0 ? settings_.batch : std::min(running, settings_.batch);
  admission.set_pace({places, pace_.prompt_tokens_per_s(), pace_.tokens_per_s(), 0});
  plan(now);
}

void engine::count_tokens(std::uint32_t steps) {
  steps_ += steps;
  context_ += std::uint64_t{streams_} * steps;
  while (!decoding_.empty() && decoding_.top().step <= steps_) {
    const auto index = decoding_.top().job;
    decoding_.pop();
    context_ -= jobs_[index].input + jobs_[index].output;
    end(index);
  }
}

void engine::end(std::uint32_t index) {
  auto& j = jobs_[index];
  for (; !j.pages.empty(); j.pages.pop_back()) pool_.release(j.pages.back());
  admission.job_done(j.output);
  ended_.push_back(index);
}

void engine::finish_slices() {
  for (const auto& s : slices_) {
    auto& j = jobs_[s.job];
    j.computed += s.rows;
    name_pages(j);
    if (j.computed < j.input) continue;
    std::erase(prompts_, s.job);
    admission.prompt_done(j.input);
    firsts_.push_back(s.job);
    if (j.output == 1) {
      end(s.job);
    } else {
      decoding_.push({steps_ + j.output - 1, s.job});
      context_ += j.input + 1;
    }
  }
  slices_.clear();
}

void engine::plan(nanos now) {
  admit();
  for (const auto index : prompts_) share(jobs_[index]);
  choose_slices();
  begin(now);
}

void engine::admit() {
  std::uint32_t passed = 0;
  for (auto at = line_.begin(); at != line_.end() && passed <= most_passes;) {
    if (prompts_.size() + decoding_.size() >= settings_.batch) return;
    auto& j = jobs_[*at];
    if (j.refused_at == releases() || !enter(j)) {
      j.refused_at = releases();
      ++passed, ++at;
      continue;
    }
    prompts_.push_back(*at);
    at = line_.erase(at);
  }
}

bool engine::enter(job& j) {
  const auto needed = core::pages_for(j.input + j.output);
  j.computed = j.named = j.found = 0;
  share(j);
  const auto missing = needed - static_cast<std::uint32_t>(j.pages.size());
  const auto spare = static_cast<std::uint32_t>(prompts_.size() + decoding_.size());
  if (missing + spare > pool_.available()) {
    const auto before = pool_.releases();
    for (; !j.pages.empty(); j.pages.pop_back()) pool_.release(j.pages.back());
    undone_ += pool_.releases() - before;
    found_now_ -= std::exchange(j.found, 0);
    return false;
  }
  for (std::uint32_t i = 0; i < missing; ++i) j.pages.push_back(pool_.take());
  j.rows_before = all_rows_;
  return true;
}

void engine::share(job& j) {
  std::array<core::token_id, core::page_tokens> ids;
  while (j.named * core::page_tokens == j.computed && (j.named + 1) * core::page_tokens < j.input &&
         trace_.repeats(j.request, j.named)) {
    trace_.read_ids(j.request, j.key, j.named, ids.data());
    const auto p = pool_.names().find(trace_.name_of(j.request, j.key, j.named), ids);
    if (p == core::no_page) return;
    pool_.share(p);
    if (j.named < j.pages.size()) {
      pool_.release(j.pages[j.named]);
      j.pages[j.named] = p;
    } else {
      j.pages.push_back(p);
    }
    ++j.named;
    j.computed = j.named * core::page_tokens;
    j.found += core::page_tokens;
    found_now_ += core::page_tokens;
  }
}

void engine::name_pages(job& j) {
  std::array<core::token_id, core::page_tokens> ids;
  for (; (j.named + 1) * core::page_tokens <= std::min(j.computed, j.input); ++j.named) {
    trace_.read_ids(j.request, j.key, j.named, ids.data());
    const auto name = trace_.name_of(j.request, j.key, j.named);
    const auto theirs = trace_.repeats(j.request, j.named) ? pool_.names().find(name, ids) : core::no_page;
    if (theirs != core::no_page) {
      pool_.share(theirs);
      pool_.release(j.pages[j.named]);
      j.pages[j.named] = theirs;
      continue;
    }
    const bool root = j.named == 0;
    pool_.name(j.pages[j.named], root ? core::no_page : j.pages[j.named - 1],
               root ? core::page_name{j.key.hi, j.key.lo} : trace_.name_of(j.request, j.key, j.named - 1),
               name, ids);
  }
}

// Whether another slice of this step computes the page that the job needs next.
bool engine::is_held(const job& j) const {
  if (j.named * core::page_tokens != j.computed || (j.named + 1) * core::page_tokens >= j.input) return false;
  if (!trace_.repeats(j.request, j.named)) return false;
  const auto name = trace_.name_of(j.request, j.key, j.named);
  return std::ranges::any_of(slices_, [&](const slice& s) {
    const auto& other = jobs_[s.job];
    return other.copy == j.copy && other.computed == j.computed && other.input > j.computed &&
           trace_.name_of(other.request, other.key, j.named) == name;
  });
}

void engine::choose_slices() {
  streams_ = static_cast<std::uint32_t>(decoding_.size());
  prompt_rows_ = 0;
  prefilling_ = static_cast<std::uint32_t>(prompts_.size());
  if (prompts_.empty()) return;
  std::ranges::sort(prompts_, {}, [&](std::uint32_t i) {
    const auto& j = jobs_[i];
    return std::pair(j.input - j.computed + j.rows_before, i);
  });
  demands_.clear();
  for (const auto i : prompts_) demands_.push_back({jobs_[i].input - jobs_[i].computed});
  const auto most = budget_.rows(streams_, demands_);
  for (const auto i : prompts_) {
    if (prompt_rows_ == most) break;
    const auto& j = jobs_[i];
    if (is_held(j)) continue;
    const auto rows = std::min(most - prompt_rows_, j.input - j.computed);
    slices_.push_back({i, rows});
    prompt_rows_ += rows;
  }
}

void engine::begin(nanos now) {
  began_ = now;
  if (streams_ == 0 && slices_.empty()) {
    next_ = no_step;
    return;
  }
  step_rows r{streams_, prompt_rows_, static_cast<double>(context_), 0};
  for (const auto& s : slices_) {
    const double before = jobs_[s.job].computed, rows = s.rows;
    r.prompt_context += rows * before + rows * rows / 2;
  }
  all_rows_ += prompt_rows_;
  step_ns_ = static_cast<nanos>(step_ms(r) * 1e6);
  count_ = 1;
  if (prompts_.empty())
    count_ = static_cast<std::uint32_t>(
        std::clamp<std::uint64_t>(decoding_.top().step - steps_, 1, most_together));
  next_ = began_ + count_ * step_ns_;
}

std::uint32_t engine::due_prompts() const {
  return static_cast<std::uint32_t>(line_.size() + prompts_.size());
}

std::uint64_t engine::due_prompt_tokens() const {
  std::uint64_t sum = 0;
  for (const auto i : line_) sum += jobs_[i].input;
  for (const auto i : prompts_) sum += jobs_[i].input - jobs_[i].computed;
  return sum;
}

}  // namespace weir::bench::fleet
