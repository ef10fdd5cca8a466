// way_in.h — the door of a model: how many jobs it has taken, how fast it works them off, and whether it
// takes one more.
//
// A job is refused (overloaded, with the time after which it may come again) where
//   1. more jobs would run or wait than may: the batch and the queue together;
//   2. the prompts that are not computed yet hold `queue_tokens` tokens or more;
//   3. its turn would come later than `queue_wait`, as far as can be told. The predicted wait is what its
//   text has to wait
//      before (text_pool.h), and the longer of
//
//        prompt tokens that are not computed / prompt tokens computed a second                        and
//        (jobs - places + 1) * tokens of an answer / tokens sampled a second,  where jobs >= places,
//
//      since prompts are computed and places become free at the same time. There are as many places as the
//      batch has, or, while jobs wait beside a batch that is not full (they lack pages), as many as jobs run.
//      Rates are those of the last half minute of work, an answer is as long as the last ones were; what was
//      not measured yet predicts nothing. Jobs of a high priority wait less than that.
//
// A prompt counts as not computed until its job's first token is delivered, or it ends without one. The
// choices of one request are let in together or not at all, and their prompt counts once: they share what is
// computed of it.
//
// Thread safety: any thread; the last group of members is the owner's. Of jobs that come at the same moment
// one more may get in than 2. and 3. allow, 1. is exact.
#pragma once

#include <atomic>
#include <cstdint>
#include <limits>
#include <string_view>
#include <utility>

#include "core/clock.h"
#include "core/error.h"

namespace weir::actors {

class way_in {
 public:
  struct limits {
    std::uint32_t batch = 64, queue = 256;                                          // jobs
    std::uint64_t queue_tokens = std::numeric_limits<std::uint64_t>::max();
    core::duration queue_wait = core::duration::max();
  };
  // As the owner measures it. 0: not known yet.
  struct pace {
    std::uint32_t places = 0;
    double prompt_tokens_per_s = 0, tokens_per_s = 0;
  };

  explicit way_in(limits l) : limits_(l) {}

  // Lets the choices of a request in, or refuses all. Of each that was let in the owner says job_done() once,
  // and of their prompt prompt_done() before the last.
  core::result<void> admit(std::string_view model, std::uint32_t prompt_tokens, std::uint32_t choices = 1);

  // Refuses whoever would wait too long here after having waited `before`.
  core::result<void> judge_wait(std::string_view model, core::duration before) const;

  std::uint32_t waiting() const noexcept;  // jobs beyond the batch
  core::duration predicted_wait() const noexcept;

  // --- the owner's
  void prompt_done(std::uint32_t prompt_tokens) noexcept;
  void job_done(std::uint32_t output_tokens) noexcept;
  void set_pace(const pace& p) noexcept;

 private:
  core::error full(std::string_view model, std::uint32_t jobs, std::uint32_t choices) const;
  double wait_for_place(std::uint32_t jobs) const noexcept;  // s
  double wait_for_prompts(std::uint64_t tokens) const noexcept;

  const limits limits_;
  std::atomic<std::uint32_t> jobs_{0};
  std::atomic<std::uint64_t> prompt_tokens_{0};  // of prompts that are not computed
  std::atomic<std::uint32_t> places_{0};
  std::atomic<double> prompt_rate_{0}, rate_{0}, answer_{0};  // answer_: tokens of one, a running mean
};

// A prompt at its model's door, held by the jobs that begin with it: it counts as not computed until one of
// them has a token, or none of them is left. Used by one thread at a time: who lets the jobs in, then their
// owner.
class waiting_prompt {
 public:
  // `door` outlives it.
  explicit waiting_prompt(way_in& door) noexcept : door_(door) {}
  ~waiting_prompt() { computed(); }
  waiting_prompt(const waiting_prompt&) = delete;
  waiting_prompt& operator=(const waiting_prompt&) = delete;
  void counts(std::uint32_t tokens) noexcept { tokens_ = tokens; }  // the door has let them in
  void computed() noexcept {
    if (const auto n = std::exchange(tokens_, 0)) door_.prompt_done(n);
  }

 private:
  way_in& door_;
  std::uint32_t tokens_ = 0;
};

}  // namespace weir::actors
