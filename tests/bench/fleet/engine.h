// engine.h — a worker's engine in virtual time: the real page pool with its prefix tree, the real prompt
// budget, admission and pace meter; the device is step_time.h.
//
// What it does as core/engine does: jobs enter the batch in their order while there are pages, and one in
// front that finds none lets four pass; of prompts with work the one with the fewest rows that came before it
// and that are left is served first; pages are named as slices are computed, and sequences take what is named
// by then. What it does not: a job has the pages of its whole answer from the beginning, so that nobody is
// preempted; the pages of answers get no name; pages that agree in their first tokens alone are not copied.
//
// Steps in which nothing but decoding goes on are one event, which a new job cuts short.
//
// Thread safety: one thread.
#pragma once

#include <cstdint>
#include <deque>
#include <queue>
#include <vector>

#include "actors/admission_control.h"
#include "actors/pace_meter.h"
#include "core/cache/page_pool.h"
#include "core/schedule/prompt_budget.h"
#include "tests/bench/fleet/step_time.h"
#include "tests/bench/fleet/trace.h"

namespace weir::bench::fleet {

using nanos = std::int64_t;

struct job {
  std::uint32_t request = 0;  // of the trace
  std::uint32_t copy = 0;
  copy_key key;
  std::uint32_t input = 0, output = 0;
  std::uint32_t gateway = 0, device = 0;
  std::uint8_t tries = 0;
  nanos came = 0, first = 0;  // when it came to the gateway, and its first token to the client
  std::uint32_t found = 0;    // prompt tokens that were in the cache
  // In the engine:
  std::uint32_t computed = 0, named = 0;  // rows, and pages with a name
  std::uint64_t rows_before = 0;          // prompt rows that the engine had computed when the job entered
  std::uint64_t refused_at = ~std::uint64_t{0};  // engine::releases() when it found no room
  std::vector<core::page_id> pages;
};

class engine {
 public:
  struct settings {
    std::uint32_t pages = h200_pages, batch = 64;
  };
  engine(const settings& s, const trace& t, std::vector<job>& jobs);
  engine(const engine&) = delete;
  engine& operator=(const engine&) = delete;

  // A job that was admitted comes.
  void submit(std::uint32_t job, nanos now);
  // The step that ends now. What it did is in firsts() and ended(), until the next call.
  void step(nanos now);
  // When the present steps end; no_step: there is no work.
  nanos next() const noexcept { return next_; }
  static constexpr nanos no_step = INT64_MAX;

  const std::vector<std::uint32_t>& firsts() const noexcept { return firsts_; }
  const std::vector<std::uint32_t>& ended() const noexcept { return ended_; }

  actors::admission_control admission;
  const core::page_pool& pool() const noexcept { return pool_; }
  // Prompt tokens of its jobs that are neither computed nor found yet.
  std::uint64_t due_prompt_tokens() const;
  std::uint32_t due_prompts() const;
  nanos busy() const noexcept { return busy_; }  // so far
  std::uint64_t computed_prompt_tokens() const noexcept { return all_rows_; }

 private:
  struct slice {
    std::uint32_t job = 0, rows = 0;
  };
  struct end_mark {
    std::uint64_t step = 0;  // of steps_
    std::uint32_t job = 0;
    bool operator>(const end_mark& o) const noexcept { return step != o.step ? step > o.step : job > o.job; }
  };
  // Changes where there may be room for a job that found none.
  std::uint64_t releases() const noexcept { return pool_.releases() - undone_; }
  void plan(nanos now);
  void admit();
  bool enter(job& j);
  // Takes the named pages that follow the job's own named pages.
  void share(job& j);
  void name_pages(job& j);
  void choose_slices();
  bool is_held(const job& j) const;
  void begin(nanos now);
  void finish_slices();
  void count_tokens(std::uint32_t steps);
  void end(std::uint32_t job);

  const settings settings_;
  const trace& trace_;
  std::vector<job>& jobs_;
  core::page_pool pool_;
  core::prompt_budget budget_;
  actors::pace_meter pace_;

  std::deque<std::uint32_t> line_;
  std::vector<std::uint32_t> prompts_;  // in the batch, with rows to compute
  std::priority_queue<end_mark, std::vector<end_mark>, std::greater<>> decoding_;
  std::vector<slice> slices_;  // of the step
  std::vector<core::prompt_demand> demands_;
  std::vector<std::uint32_t> firsts_, ended_;
  std::uint64_t context_ = 0;  // tokens of the sequences that decode
  std::uint64_t steps_ = 0, all_rows_ = 0;
  std::uint64_t found_now_ = 0;  // prompt tokens found since the last step
  std::uint64_t undone_ = 0;     // releases of jobs that found no room
  std::uint32_t prefilling_ = 0;
  // The steps under way: `count_` of them, each `step_ns_`, from `began_` on.
  nanos began_ = 0, step_ns_ = 0, next_ = no_step, busy_ = 0;
  std::uint32_t count_ = 0, streams_ = 0, prompt_rows_ = 0;
};

}  // namespace weir::bench::fleet
