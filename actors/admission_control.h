// admission_control.h — whether a model takes more jobs, from how many it has and how fast it completes them.
//
// A job is refused as overloaded, with a time after which to retry, in three cases:
//   1. More jobs would run or wait than the batch and `queue` allow together.
//   2. The prompts that are not computed yet have `queue_tokens` tokens or more.
//   3. Its predicted wait is longer than `queue_wait`.
//
// The predicted wait is the wait of its text (text_pool.h) plus the longer of two times, since prompts are
// computed while places become free:
//   - prompt tokens not computed / prompt tokens computed a second
//   - places that have to become free first * mean tokens of an answer / tokens sampled a second
//
// Places are the sequences that can run at once: the size of the batch, or the number that run while jobs
// wait beside a batch that is not full, because pages are short. While one is free, none has to become free.
// Else one does for the job itself, one for each job of the line, and one for each job that returns from a
// pause and has its turn before one of these. Rates are measured over the last half minute of work
// (pace_meter.h). What was not measured yet predicts no wait. The prediction ignores priorities, so jobs of a
// high priority wait less.
//
// A job that pauses leaves limit 1 for good: while it is paused it keeps nobody waiting, and once it returns
// it takes turns with the line (core/schedule/scheduler.h). How many jobs may do so is bounded by `pausable`.
//
// A prompt counts as not computed until the first token of one of its jobs is delivered, or all of them have
// ended. The choices of a request are admitted together or not at all. They share one prompt, which counts
// once.
//
// Thread safety: any thread, except the members marked as the owner's. Limit 1 is exact. Of jobs that come at
// the same moment, a few more than limits 2 and 3 allow may be admitted.
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdint>
#include <mutex>
#include <optional>
#include <string_view>
#include <utility>

#include "actors/pausable_jobs.h"
#include "core/clock.h"
#include "core/config.h"
#include "core/error.h"
#include "core/fleet/pick.h"

namespace weir::actors {

class admission_control {
 public:
  // Speed of the model as its owner measures it. 0: not known yet.
  struct pace {
    std::uint32_t places = 0;
    double prompt_tokens_per_s = 0, tokens_per_s = 0;
    std::uint32_t returning = 0;  // jobs whose pause is over and that wait for a place
  };

  // How admission counts a job.
  enum class standing : std::uint8_t {
    counted,  // it was never paused: limit 1 counts it
    paused,
    returned  // its pause is over: it runs, or waits in turn with the line
  };

  // `batch`: jobs that run at once. `limits`: bounds of the jobs that wait.
  admission_control(std::uint32_t batch, const core::queue_settings& limits)
      : pausable(batch + limits.queue, pausable_share * (batch + limits.queue)),
        batch_(batch),
        limits_(limits) {}

  // The jobs that may pause: of each key as many as the batch and `queue` allow together, of all keys
  // pausable_share times as many.
  pausable_jobs pausable;
  static constexpr std::uint32_t pausable_share = 4;
  // Most jobs that are admitted and not done.
  static constexpr std::uint64_t most_jobs(std::uint32_t batch, std::uint32_t queue) {
    return (1 + std::uint64_t{pausable_share}) * (batch + queue);
  }

  // Admits the choices of a request, or returns an error: overloaded, or bad_param for more choices than the
  // limits ever allow. `model`: its name, for messages. Once admitted, job_done() must follow for each
  // choice, and prompt_done() once for their prompt.
  core::result<void> admit(std::string_view model, std::uint32_t prompt_tokens, std::uint32_t choices = 1);

  // Who closes the admission: its owner, while the device is down, and the model registry, while the model
  // drains. It is open again once both have reopened it.
  enum class door : std::uint8_t { device, drain };
  // From close() to reopen(), admit() and check_wait() return `why`.
  void close(door which, core::error why);
  void reopen(door which);
  std::optional<core::error> closed() const;
  // Jobs that were admitted and are not done, paused or not. Once it is 0 after a close(), it stays 0 until
  // the admission is open again.
  std::uint32_t unfinished() const noexcept { return unfinished_.load(); }

  // Limit 3 for a job whose text has to wait for `before` first: overloaded, or success. Admits nothing.
  core::result<void> check_wait(std::string_view model, core::duration before) const;

  std::uint32_t active() const noexcept;  // jobs that run or wait
  std::uint32_t seats() const noexcept;  // jobs that can run at once
  std::uint32_t batch() const noexcept { return batch_; }
  const core::queue_settings& limits() const noexcept { return limits_; }
  // Prompts that are not computed yet and were admitted here, and their tokens.
  std::uint32_t prompts() const noexcept { return prompts_.load(std::memory_order_relaxed); }
  std::uint64_t prompt_tokens() const noexcept { return prompt_tokens_.load(std::memory_order_relaxed); }
  double tokens_per_s() const noexcept { return rate_.load(std::memory_order_relaxed); }  // 0: not known yet
  // Prompt tokens computed a second; 0: not known yet.
  double prompt_tokens_per_s() const noexcept { return prompt_rate_.load(std::memory_order_relaxed); }
  // How many places of the batch have to become free until the last waiting job has one. 0: no job waits.
  std::uint32_t waiting() const noexcept;
  // What core::pick() asks of the place. `known`: see there.
  core::place_load load(std::uint64_t name, std::uint32_t known) const noexcept;
  // The wait of a job that is admitted now, without the wait of its text.
  core::duration predicted_wait() const noexcept;

  // --- Accounting: called by the owner, or by the text task for an admitted job that was not submitted ---

  // A prompt of `prompt_tokens` tokens is computed, or no job needs it any more.
  void prompt_done(std::uint32_t prompt_tokens) noexcept;
  // A job ended. `output_tokens`: length of its answer; 0 does not enter the mean.
  void job_done(std::uint32_t output_tokens, standing was = standing::counted) noexcept;
  // Counts a job whose pause begins (`now`) or is over. `was`: the job's standing until then. Returns the
  // job's new standing. Owner's thread only.
  standing job_paused(standing was, bool now) noexcept;
  // Owner's thread only.
  void set_pace(const pace& p) noexcept;
  // Where the engine is in another process: jobs that it has beside those that were admitted here, and of
  // prompts not computed yet how many, and their tokens. active() and the predicted wait count it; limit 1
  // does not, since the other process has the last word.
  void set_elsewhere(std::uint32_t jobs, std::uint32_t prompts, std::uint64_t prompt_tokens) noexcept;

 private:
  core::error full(std::string_view model, std::uint32_t jobs, std::uint32_t choices) const;
  void leave(standing was) noexcept;
  std::uint32_t returning() const noexcept;  // of active(): those that wait for a place after a pause
  // Jobs that wait in the line while `places` run.
  std::uint32_t line(std::uint32_t places) const noexcept;
  // Places that become free until the `nth` job of the line has one, since those that return take turns with
  // the line.
  std::uint32_t turns(std::uint32_t nth) const noexcept { return nth + std::min(returning(), nth); }
  // All in seconds.
  double wait_for(std::uint32_t free_places) const noexcept;
  double wait_for_place() const noexcept;
  double wait_for_prompts(std::uint64_t tokens) const noexcept;

  const std::uint32_t batch_;
  const core::queue_settings limits_;
  mutable std::mutex lock_;  // of why_closed_, which is read once a request
  std::array<std::optional<core::error>, 2> why_closed_;  // by door
  std::atomic<std::uint32_t> unfinished_{0};
  std::atomic<std::uint32_t> jobs_{0};           // admitted, not done and never paused
  std::atomic<std::uint32_t> returned_{0};       // not done, and their pause is over
  std::atomic<std::uint32_t> running_again_{0};  // of these: in the batch, when the latest step was over
  std::atomic<std::uint32_t> prompts_{0};        // not computed yet
  std::atomic<std::uint64_t> prompt_tokens_{0};  // of these
  std::atomic<std::uint32_t> jobs_elsewhere_{0}, prompts_elsewhere_{0};
  std::atomic<std::uint64_t> tokens_elsewhere_{0};  // tokens
  std::atomic<std::uint32_t> places_{0};
  std::atomic<double> prompt_rate_{0}, rate_{0}, answer_{0};  // answer_: mean tokens of an answer
};

// The accounting of one prompt, shared by the jobs that begin with it. The prompt counts as not computed
// until computed() is called, or until the last of its jobs lets go of this object.
//
// Thread safety: one thread at a time: the text task that admits the jobs, then their owner.
class waiting_prompt {
 public:
  waiting_prompt() = default;
  ~waiting_prompt() { computed(); }
  waiting_prompt(const waiting_prompt&) = delete;
  waiting_prompt& operator=(const waiting_prompt&) = delete;
  // The prompt was admitted by `by`, which must outlive it, with `tokens` tokens.
  void counts(admission_control& by, std::uint32_t tokens) noexcept { admission_ = &by, tokens_ = tokens; }
  // The first token was delivered. Only the first call has an effect.
  void computed() noexcept {
    if (const auto n = std::exchange(tokens_, 0)) admission_->prompt_done(n);
  }

 private:
  admission_control* admission_ = nullptr;  // set where tokens_ is not 0
  std::uint32_t tokens_ = 0;
};

}  // namespace weir::actors
