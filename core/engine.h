// engine.h — the generator inside a GPU owner: one model on one device, and every sequence that uses it.
//
// A step reads like its name says: admit, schedule, forward, sample, deliver (engine.cpp). Where the model
// can, and unless the configuration says otherwise, the next step is begun before the device is done with
// this one (engine_overlapped.cpp): the tokens are the same, and the device never waits for the host.
//
// Thread safety: everything on the owner's thread. The engine starts no thread, reads no clock but the one
// passed in, and calls out only through each job's token_sink.
//
// Full pages are named by what they hold (core/cache/prefix_tree.h): a job takes those that were computed
// before, by a job that runs or by one that is gone, and starts where they end. Jobs that would compute the
// same page in the same step do so once.
//
// A job enters when there are pages for all its tokens, and one more for every running sequence; from then on
// it takes a page as it grows. When there is none left, the youngest sequence of the lowest priority is
// preempted: it keeps its tokens, gives its pages back and waits in front of the line, until the same rule
// lets it enter again and compute what it lost (most of which the cache may still hold). The oldest of the
// highest priority is never preempted, so somebody always gets on. A sequence is at most as long as the
// smallest of the model's context, max_seq_len and the page pool; output that reaches it ends with length.
//
// Jobs enter in the order of schedule/waiting_line.h. One that finds no room lets smaller ones pass, but no
// more than `most_passes` of them.
//
// Invariants:
//   1. Pages used + cached + free = total; reference counts equal the page tables (check_integrity).
//   2. Every job given to submit() gets exactly one finish(), whatever happens.
//   3. After cancel(id), the next step() starts without that sequence, and its pages are free before the
//      step's forward.
//   4. A job's tokens depend on the model, its prompt, parameters and seed alone, whatever runs beside it and
//      whatever the cache holds.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/clock.h"
#include "core/job.h"
#include "core/model/model.h"
#include "core/text/tokenizer.h"

namespace weir::core {

struct engine_config {
  std::uint32_t max_batch = 64;      // sequences that run at once
  std::uint32_t kv_pages = 0;        // of page_tokens each; the model has already allocated them; >= 1
  std::uint32_t host_pages = 0;      // in host memory, for those that the device has no room for; 0: none
  std::uint32_t max_seq_len = 0;     // 0: the model's context
  std::uint32_t prefill_rows = 512;  // most prompt rows in one step
  duration step_target{};            // longest step while others decode; zero: unbounded (rows bound it)
  duration lone_step_target{};       // the same while nothing decodes: how long a cancel may wait
  bool run_ahead = true;             // where the model can: a step is begun while the one before it runs
  double prompt_share = 0;           // of a step of decoding alone, that prompts may add to it; 0: unbounded
};

inline constexpr std::uint32_t most_passes = 4;

enum class sequence_state { queued, prefilling, decoding, finished };
const char* name(sequence_state s) noexcept;

struct sequence_view {
  job_id id;
  sequence_state state = sequence_state::queued;
  std::uint32_t prompt_tokens = 0, output_tokens = 0, cached_tokens = 0, pages = 0, preemptions = 0;
  int priority = 0;
  time_point created{};
};

// What one step did, for telemetry. Where a step is begun ahead, rows, sequences, tokens and took are those
// of the step that came to its end meanwhile (none: rows is 0), and the rest is of the one that was begun.
struct step_report {
  std::uint32_t rows = 0, sequences = 0, tokens = 0, finished = 0, entered = 0;
  std::uint32_t running = 0, waiting = 0;  // when it was over
  std::uint32_t prefilling = 0;            // sequences whose prompts were not done when it began
  std::uint64_t prompt_tokens = 0;         // that it computed, or found computed
  duration took{};    // from the end of the step before it, where it began no later
  duration waited{};  // of that the host waited for the device
  // Nothing can happen before then, unless a message comes: the next due() of a paced model, the next
  // deadline, the next offer to a full sink. In the past (as here): step again at once, if the engine is not
  // idle.
  time_point wait_until{};
};

struct engine_counts {
  std::uint64_t queued_tokens = 0;
  std::uint32_t queued = 0, prefilling = 0, decoding = 0;
  std::uint32_t finishing = 0;  // ended and without pages, but their sinks have not taken the last tokens
  std::uint32_t pages_total = 0, pages_free = 0, pages_cached = 0, pages_used = 0;
  std::uint32_t host_total = 0, host_used = 0;  // pages of the host tier
  // Since the engine was made:
  std::uint64_t steps = 0, tokens = 0, finished = 0;
  // jobs that found part of their prompt; how much they found
  std::uint64_t prefix_hits = 0, cached_tokens = 0;
  std::uint64_t preemptions = 0;
  std::uint64_t restored = 0;  // pages that came back from the host tier

  // Of several engines together.
  engine_counts& operator+=(const engine_counts& o) noexcept;
};

class engine {
 public:
  engine(std::unique_ptr<model> m, std::shared_ptr<const tokenizer> t, engine_config config,
         const clock& time);
  ~engine();  // ends what is left with error: the fault, where there is one

  // Takes a job; the queue has no bound here (admission is decided before). A job that can never fit the
  // pages or the context is finished with a fault that carries the numbers. REQUIRES: no unfinished job has
  // its id.
  void submit(job j);

  // Idempotent; false if the engine does not know the job (or has finished it). Frees its pages at once and
  // finishes it with `why`, now: tokens that its sink has no room for are dropped.
  bool cancel(const job_id& id, finish_reason why = finish_reason::cancel);

  // Nothing queued, running, under way on the device, or still waiting for room in a sink.
  bool idle() const noexcept;

  step_report step();

  // Somebody else found that the device is gone: what a step does that finds it.
  void fail(const error& why);

  // Why the device failed, once it has: the jobs of that moment ended with it, and so does every job
  // submitted since. Only a new engine helps.
  const std::optional<error>& fault() const noexcept;

  // Jobs that ended in logits that are not finite since one last came to its own end (stop, length,
  // repetition). Those that were cancelled, late, or met another fault say nothing of the model.
  std::uint32_t bad_endings() const noexcept;

  const model_info& info() const noexcept;
  engine_counts counts() const noexcept;
  void list(std::vector<sequence_view>& out) const;

  // Empty where the invariants hold, else what does not.
  std::string check_integrity() const;

 private:
  struct state;
  std::unique_ptr<state> s_;
};

}  // namespace weir::core
