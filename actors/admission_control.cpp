#include "actors/admission_control.h"

#include <algorithm>
#include <cmath>

#include "actors/overloaded.h"

namespace weir::actors {
namespace {

constexpr auto relaxed = std::memory_order_relaxed;
constexpr double newest_answer = 1.0 / 16;  // weight of the latest answer in the mean
constexpr double most_wait_s = 1e6;

double seconds(core::duration d) { return std::chrono::duration<double>(d).count(); }

core::duration of_seconds(double s) {
  return std::chrono::duration_cast<core::duration>(std::chrono::duration<double>(std::min(s, most_wait_s)));
}

}  // namespace

core::result<void> admission_control::admit(std::string_view model, std::uint32_t prompt_tokens,
                                             std::uint32_t choices) {
  const std::uint32_t most = batch_ + limits_.queue;
  if (choices > most)
    return core::bad_param("n", "n: {} has room for {} jobs in all, not for {}", model, most, choices);
  const auto tokens = prompt_tokens_.load(relaxed);
  if (tokens >= limits_.queue_tokens)
    return overloaded(wait_for_prompts(tokens - limits_.queue_tokens + 1),
                      fmt::format("prompts of {} tokens wait for {}, which takes no more from {} on", tokens,
                                  model, limits_.queue_tokens));
  if (auto soon = check_wait(model, {}); !soon) return soon;
  auto jobs = jobs_.load(relaxed);
  do {
    if (jobs > most - choices) return full(model, jobs, choices);
  } while (!jobs_.compare_exchange_weak(jobs, jobs + choices, relaxed));
  // Counted before the doors are looked at once more: whoever closes one and then finds no job unfinished has
  // seen the last of them.
  unfinished_.fetch_add(choices);
  if (auto why = closed()) {
    unfinished_.fetch_sub(choices);
    jobs_.fetch_sub(choices, relaxed);
    return *why;
  }
  if (prompt_tokens > 0) prompts_.fetch_add(1, relaxed);
  prompt_tokens_.fetch_add(prompt_tokens, relaxed);
  return {};
}

core::error admission_control::full(std::string_view model, std::uint32_t jobs, std::uint32_t choices) const {
  const double wait = wait_for(turns(choices));
  if (choices == 1)
    return overloaded(
        wait, fmt::format("{} has {} jobs running or waiting, and takes no more for now", model, jobs));
  return overloaded(
      wait, fmt::format("{} has {} jobs running or waiting, and no room for {} more", model, jobs, choices));
}

core::result<void> admission_control::check_wait(std::string_view model, core::duration before) const {
  if (auto why = closed()) return *why;
  const double wait = seconds(before) + seconds(predicted_wait()), most = seconds(limits_.queue_wait);
  if (wait <= most) return {};
  return overloaded(
      wait - most,
      fmt::format("{} would begin this in about {:.0f} s, and lets nobody wait longer than {:.0f} s", model,
                  wait, most));
}

void admission_control::close(door which, core::error why) {
  const std::lock_guard held(lock_);
  why_closed_[static_cast<std::size_t>(which)] = std::move(why);
}

void admission_control::reopen(door which) {
  const std::lock_guard held(lock_);
  why_closed_[static_cast<std::size_t>(which)].reset();
}

std::optional<core::error> admission_control::closed() const {
  const std::lock_guard held(lock_);
  for (const auto& why : why_closed_)
    if (why) return why;
  return std::nullopt;
}

std::uint32_t admission_control::waiting() const noexcept {
  return active() > batch_ ? turns(line(batch_)) : 0;
}

std::uint32_t admission_control::active() const noexcept {
  return jobs_.load(relaxed) + returned_.load(relaxed) + jobs_elsewhere_.load(relaxed);
}

std::uint32_t admission_control::returning() const noexcept {
  const auto returned = returned_.load(relaxed);
  return returned - std::min(returned, running_again_.load(relaxed));
}

std::uint32_t admission_control::line(std::uint32_t places) const noexcept {
  const auto jobs = active();
  return jobs - std::min(jobs, places + returning());
}

std::uint32_t admission_control::seats() const noexcept {
  const auto measured = places_.load(relaxed);
  return measured == 0 ? batch_ : std::min(measured, batch_);
}

core::duration admission_control::predicted_wait() const noexcept {
  return of_seconds(std::max(wait_for_prompts(prompt_tokens_.load(relaxed) + tokens_elsewhere_.load(relaxed)),
                             wait_for_place()));
}

core::place_load admission_control::load(std::uint64_t name, std::uint32_t known) const noexcept {
  return {.name = name,
          .jobs = active(),
          .seats = seats(),
          .wait = of_seconds(wait_for_place()),
          .prompt_tokens_per_s = prompt_tokens_per_s(),
          .prompts = prompts_.load(relaxed) + prompts_elsewhere_.load(relaxed),
          .prompt_tokens = prompt_tokens_.load(relaxed) + tokens_elsewhere_.load(relaxed),
          .known = known};
}

double admission_control::wait_for_prompts(std::uint64_t tokens) const noexcept {
  const double rate = prompt_rate_.load(relaxed);
  return rate > 0 ? static_cast<double>(tokens) / rate : 0;
}

double admission_control::wait_for_place() const noexcept {
  const auto places = places_.load(relaxed);
  if (places == 0 || active() < places) return 0;
  return wait_for(turns(line(places) + 1));
}

double admission_control::wait_for(std::uint32_t free_places) const noexcept {
  const double rate = rate_.load(relaxed);
  return rate > 0 ? free_places * answer_.load(relaxed) / rate : 0;
}

void admission_control::prompt_done(std::uint32_t prompt_tokens) noexcept {
  if (prompt_tokens > 0) prompts_.fetch_sub(1, relaxed);
  prompt_tokens_.fetch_sub(prompt_tokens, relaxed);
}

void admission_control::leave(standing was) noexcept {
  if (was == standing::counted) jobs_.fetch_sub(1, relaxed);
  if (was == standing::returned) returned_.fetch_sub(1, relaxed);
}

admission_control::standing admission_control::job_paused(standing was, bool now) noexcept {
  leave(was);
  if (!now) returned_.fetch_add(1, relaxed);
  return now ? standing::paused : standing::returned;
}

void admission_control::job_done(std::uint32_t output_tokens, standing was) noexcept {
  leave(was);
  unfinished_.fetch_sub(1);
  if (output_tokens == 0) return;  // the job never ran
  const double mean = answer_.load(relaxed);
  answer_.store(mean == 0 ? output_tokens : mean + newest_answer * (output_tokens - mean), relaxed);
}

void admission_control::set_pace(const pace& p) noexcept {
  places_.store(p.places, relaxed);
  prompt_rate_.store(p.prompt_tokens_per_s, relaxed);
  rate_.store(p.tokens_per_s, relaxed);
  const auto returned = returned_.load(relaxed);  // which the owner alone changes
  running_again_.store(returned - std::min(returned, p.returning), relaxed);
}

void admission_control::set_elsewhere(std::uint32_t jobs, std::uint32_t prompts,
                                      std::uint64_t prompt_tokens) noexcept {
  prompts_elsewhere_.store(prompts, relaxed);
  jobs_elsewhere_.store(jobs, relaxed);
  tokens_elsewhere_.store(prompt_tokens, relaxed);
}

}  // namespace weir::actors
