// engine.h — generates tokens for the jobs of one model on one device. A GPU owner has one engine for each
// model.
//
// A step admits, schedules, computes a forward, samples and delivers (engine.cpp). Where the model and the
// configuration allow it, the next step is begun while the device still runs the current one
// (engine_overlapped.cpp): the tokens are the same, and the device does not wait for the host.
//
// Thread safety: the owner's thread only, except for info(). The engine starts no thread, reads no clock but
// the one passed in, and calls out only through each job's token_sink.
//
// Prefix cache: full pages are named by their contents (core/cache/prefix_tree.h). A job reuses pages that
// running or finished jobs computed, and starts computing where they end. If several jobs need the same page
// computed in a step, one of them computes it.
//
// Scheduling (core/schedule/scheduler.h): jobs enter the batch by priority, API key and arrival, when the
// page pool has room for them. A sequence that finds no further page may be preempted for the sake of others:
// it keeps its tokens, gives its pages back and waits in front of the other jobs of its priority. Once
// admitted again it computes the lost rows, most of which the cache may still hold.
//
// Constraints (core/grammar): only tokens that a job's constraint allows are drawn. The mask of the next draw
// is made while the device computes. Where it is late, the job's row alone is left out of the draws, and the
// next step computes it again. A job whose text is whole, so that nothing can follow, ends with `stop`.
//
// Length: a sequence has at most as many tokens as the smallest of the model's context, max_seq_len and the
// page pool allows. Output that reaches this length ends with `length`, unless the job lets its older tokens
// leave the context (core/schedule/context_shift.h).
//
// Invariants:
//   1. Pages used + cached + free = total, and reference counts equal the page tables (check_integrity).
//   2. Every job given to submit() gets exactly one finish().
//   3. The next step() after cancel(id) starts without that sequence, and its pages are free before the
//      step's forward.
//   4. A job's tokens depend only on the model, its prompt, its parameters and its seed: not on other jobs,
//      and not on what the cache holds.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <type_traits>
#include <vector>

#include "core/cache/prefix_tree.h"
#include "core/clock.h"
#include "core/engine_measures.h"
#include "core/job.h"
#include "core/model/model.h"
#include "core/objective.h"
#include "core/schedule/shares.h"
#include "core/stop/token_table.h"

namespace weir::core {

namespace grammar {
class mask_helpers;  // core/grammar/masks/job_mask.h
}

struct engine_config {
  std::uint32_t max_batch = 0;       // most sequences in the batch; >= 1
  std::uint32_t kv_pages = 0;        // pages of page_tokens each that the model has already allocated; >= 1
  std::uint32_t host_pages = 0;      // pages of the host tier (core/cache/host_tier.h); 0: no host tier
  std::uint32_t max_seq_len = 0;     // most tokens of a sequence; 0: the model's context
  std::uint32_t prefill_rows = 512;  // most prompt rows in one step
  duration step_target{};            // longest step while sequences decode; zero: no bound in time
  duration lone_step_target{};       // longest step while none decodes, which a cancel waits for; zero: none
  // A fault of the device ends no job: they wait for evacuate() or stop(), and deadlines and cancels end
  // them.
  bool keep_jobs = false;
  bool run_ahead = true;  // overlap steps where the model can (model_info::runs_ahead)
  // Time that prompts may add to a step, as a share of a step of decoding alone; 0: no such bound.
  double prompt_share = 0;
  // Decides the prompt rows of steps beside decoding sequences, where it is set, in place of prompt_share
  // (core/schedule/prompt_budget.h).
  objective slo;
};

enum class sequence_state { queued, prefilling, decoding, paused, finished };
const char* name(sequence_state s) noexcept;

// One job of an engine, as list() shows it.
struct sequence_view {
  job_id id;
  sequence_state state = sequence_state::queued;
  // output_tokens: sampled so far; cached_tokens: of the prompt, found in the cache; pages: in its table now.
  std::uint32_t prompt_tokens = 0, output_tokens = 0, cached_tokens = 0, pages = 0, preemptions = 0;
  int priority = 0;
  time_point created{};
};

// What one step did, for telemetry. In the overlapped loop a call of step() begins one step and completes the
// one before it. There `rows`, `sequences`, `tokens`, `took`, `device_time` and `waited` belong to the
// completed step (rows is 0 where there was none), and all other members to the begun step or to the call.
struct step_report {
  // rows, sequences: in the forward. tokens: sampled. finished: jobs that ended, with those that cancel()
  // ended since the last step. entered: sequences admitted to the batch.
  std::uint32_t rows = 0, sequences = 0, tokens = 0, finished = 0, entered = 0;
  // Sequences, when the step was over. waiting: for a place in the batch. returning: those of them whose
  // pause is over.
  std::uint32_t running = 0, waiting = 0, returning = 0;
  std::uint32_t prefilling = 0;     // sequences with a prompt to compute, when the step began
  std::uint64_t prompt_tokens = 0;  // prompt rows computed, and prompt tokens found in the cache
  // Plain loop: from the beginning of the step until it was delivered. Overlapped loop: until its tokens
  // came, from its beginning or from the end of the step before it, whichever was later.
  duration took{};
  // How long the device computed: measured where set_company() asks for it and the model can tell, else as
  // `took`.
  duration device_time{};
  // Overlapped loop: the kind of the step that was begun and is under way.
  step_kind under_way = step_kind::none;
  duration waited{};  // overlapped loop: how long the host waited for the device
  // No step can do anything before this time, unless a message comes: the next due() of a paced model, the
  // next deadline, the end of a pause, or the next offer to a full sink. Time zero: step again at once if the
  // engine is not idle.
  time_point wait_until{};
};

// What an engine has counted since it was made.
struct engine_totals {
  std::uint64_t finished = 0;     // jobs
  std::uint64_t restored = 0;     // pages copied back from the host tier
  std::uint64_t steps = 0;        // steps that computed rows
  std::uint64_t tokens = 0;       // sampled
  std::uint64_t preemptions = 0;  // of running and paused sequences
  std::uint64_t shifts = 0;       // times that tokens left a full context (job::shifts)
  // Prompt tokens of the jobs whose first token was sampled; jobs with job::spoken are left out.
  std::uint64_t prompt_tokens = 0;
  std::uint64_t prefix_hits = 0;    // of these jobs: those that found part of their prompt in the cache
  std::uint64_t cached_tokens = 0;  // prompt tokens that these jobs found in the cache
  std::uint64_t continued = 0;      // jobs that adopt() took from another engine
  std::uint64_t late_masks = 0;     // draws that were left out because their mask was late
  std::uint64_t went_back = 0;      // times that a sequence went back from a banned string
  std::uint64_t taken_back = 0;     // of `tokens`: taken back by that
  std::uint64_t forced_tokens = 0;  // of `tokens`: not drawn, because a constraint allowed nothing else
  std::uint64_t moved_pages = 0;    // used pages that were moved because the pool gave way
  std::uint64_t left_pages = 0;     // cached pages that left because of it
  std::uint64_t device_us = 0;      // sum of step_report::device_time, in us
  // Jobs that ended by stop, length, repetition or timeout, by what they kept of engine_config::slo: its
  // ttft, its tpot, or both (slo_met). A job without a token kept neither, and one with job::spoken is left
  // out. 0 without an objective.
  std::uint64_t ttft_met = 0, ttft_missed = 0, tpot_met = 0, tpot_missed = 0, slo_met = 0, slo_missed = 0;
};

// The state of an engine, for telemetry.
struct engine_counts : engine_totals {
  // Jobs by state. `finishing`: ended jobs whose sinks have not taken the last tokens; they have no pages.
  // `paused`: by pause(), wherever they were. `queued` includes those whose pause is over and that wait for a
  // place.
  std::uint32_t queued = 0, prefilling = 0, decoding = 0, paused = 0, finishing = 0;
  // Pages on the device. total = free + cached + used.
  std::uint32_t pages_total = 0, pages_free = 0, pages_cached = 0, pages_used = 0;
  std::uint32_t host_total = 0, host_used = 0;  // pages of the host tier
  std::uint64_t queued_tokens = 0;  // prompt and output so far, of the queued jobs that were not paused
  // Prompt rows that the budget allowed in the latest step with both prompt rows and decoding sequences. 0
  // without an objective.
  std::uint32_t prompt_share = 0;

  // Calls visit(object, key, member) for every member: the object of /v1/stats that the count stands in (""
  // is the outermost), its key there, and a pointer to the member. A count with an empty key is not
  // published.
  template <class Visit>
  static void each(Visit&& visit) {
    using c = engine_counts;
    visit("jobs", "queued", &c::queued);
    visit("jobs", "prefilling", &c::prefilling);
    visit("jobs", "decoding", &c::decoding);
    visit("jobs", "paused", &c::paused);
    visit("jobs", "", &c::finishing);
    visit("jobs", "", &c::finished);  // served_model::ended is published instead
    visit("pages", "total", &c::pages_total);
    visit("pages", "free", &c::pages_free);
    visit("pages", "cached", &c::pages_cached);
    visit("pages", "used", &c::pages_used);
    visit("pages", "moved", &c::moved_pages);
    visit("pages", "left", &c::left_pages);
    visit("host_pages", "total", &c::host_total);
    visit("host_pages", "used", &c::host_used);
    visit("host_pages", "restored", &c::restored);
    visit("", "queued_tokens", &c::queued_tokens);
    visit("", "preemptions", &c::preemptions);
    visit("", "context_shifts", &c::shifts);
    visit("", "continued", &c::continued);
    visit("", "steps", &c::steps);
    visit("", "tokens", &c::tokens);
    visit("", "device_us", &c::device_us);
    visit("", "prompt_tokens", &c::prompt_tokens);
    visit("prefix", "hits", &c::prefix_hits);
    visit("prefix", "tokens", &c::cached_tokens);
    visit("masks", "late", &c::late_masks);
    visit("masks", "forced", &c::forced_tokens);
    visit("banned", "times", &c::went_back);
    visit("banned", "tokens", &c::taken_back);
    visit("slo", "prompt_rows", &c::prompt_share);
    visit("slo", "ttft_met", &c::ttft_met);
    visit("slo", "ttft_missed", &c::ttft_missed);
    visit("slo", "tpot_met", &c::tpot_met);
    visit("slo", "tpot_missed", &c::tpot_missed);
    visit("slo", "met", &c::slo_met);
    visit("slo", "missed", &c::slo_missed);
  }

  // Adds the counts of another engine.
  engine_counts& operator+=(const engine_counts& o) noexcept {
    each([&](const char*, const char*, auto member) { this->*member += o.*member; });
    return *this;
  }
};

// Adds the totals of another engine.
inline engine_totals& operator+=(engine_totals& all, const engine_totals& more) noexcept {
  engine_counts::each([&](const char*, const char*, auto member) {
    if constexpr (std::is_same_v<decltype(member), std::uint64_t engine_totals::*>)
      all.*member += more.*member;
  });
  return all;
}

class sequence;  // core/schedule/sequence.h

// Unfinished jobs on their way from an engine whose device failed to the one that replaces it. They have no
// pages; everything else that they were stays with them, so that their tokens go on as if nothing had
// happened.
//
// Thread safety: the owner's thread only. The destructor ends the jobs that are left with errc::unavailable.
class stranded_jobs {
 public:
  stranded_jobs() noexcept;
  stranded_jobs(stranded_jobs&&) noexcept;
  stranded_jobs& operator=(stranded_jobs&&) noexcept;
  ~stranded_jobs();

  std::size_t size() const noexcept;
  // Ends every job at once with `why`; a job that had ended keeps its own reason if its sink has room for its
  // last tokens.
  void end(const error& why);

 private:
  friend class engine;
  std::vector<std::unique_ptr<sequence>> all_;  // in scheduling order, then those that rest, then ended ones
};

class engine {
 public:
  // `text`: the bytes of the model's tokens. `time` must outlive the engine. `helpers` make masks of
  // constraints that take long; null: the engine makes them itself. REQUIRES: the model has allocated
  // config.kv_pages pages, and config.host_pages host pages.
  engine(std::unique_ptr<model> m, token_table text, engine_config config, const clock& time,
         std::shared_ptr<grammar::mask_helpers> helpers = {});
  // Ends every remaining job with `error`, carrying fault() if there is one and else errc::unavailable.
  ~engine();

  // Takes a job. The queue is unbounded here, since the caller bounds it. A job that cannot be served is
  // finished inside the call with reason `error`: does_not_fit or prompt_too_long where its prompt can never
  // fit the pages or the context, fault() once the device has failed, invalid_param where job::spoken cannot
  // have been delivered: it has as many tokens as the job may write, an id outside the vocabulary, a stop id,
  // or a token that ends the job; or where the job has mirostat_mode. A constraint says later, where the
  // first mask is made, that it does not write the spoken tokens; the job then ends with invalid_param, too.
  //
  // A job with spoken tokens waits as a preempted one does. Its ending counts them as output_tokens, and has
  // the time of its first new token as first_token; its times are in no measure of first tokens. The call
  // adds each spoken token to the sampler and to what watches the output.
  //
  // Throws std::bad_alloc where host memory is short; the engine is then unchanged. REQUIRES: no unfinished
  // job has its id.
  void submit(job j);

  // Ends a job with `why` inside the call and frees its pages; tokens that its sink has no room for are
  // dropped. Returns false if no unfinished job has this id. May discover that the device failed: check
  // fault() afterwards.
  bool cancel(const job_id& id, finish_reason why = finish_reason::cancel);

  // Pauses a job, for instance while its reader is slow: from the next step() on it computes no rows. Its
  // sampled tokens are still offered, as is the token of a draw in flight. It keeps its pages, but takes no
  // place in the batch, and is preempted before all running sequences. A job that is not in the batch does
  // not enter it. The job goes on by itself in the first step at or after `until`; a second call changes the
  // time. Returns false if no job has this id, or it only has tokens to deliver. Throws std::bad_alloc where
  // host memory is short; nothing has changed then.
  bool pause(const job_id& id, time_point until);
  // Ends the pause of a job: from the next step on it returns where the batch has a place, in turn with the
  // waiting jobs of its priority. Returns false if the job is not paused.
  bool resume(const job_id& id);

  // No job is unfinished, and no step is under way on the device.
  bool idle() const noexcept;

  // Tells the engine whether other engines have work on the device: their longest wait for a step with prompt
  // rows, which bounds such steps; zero: none has work. To be called between steps.
  void set_company(duration turn) noexcept;

  // Makes one step. A failure of the device sets fault() and ends all jobs, but those of an engine with
  // keep_jobs; from then on steps only deliver tokens and end jobs whose deadline has passed.
  step_report step();

  // Tells the engine that the device failed, with the same effect as if a step had found it. No effect if
  // fault() is already set.
  void fail(const error& why);

  // Ends every job at once with `why`, as fail(); tokens that a sink has no room for are dropped. Afterwards
  // the engine is idle and calls no sink any more, so that it may be destroyed on another thread.
  void stop(const error& why);

  // Takes every unfinished job out, for adopt(). A job is continued once: those that adopt() gave this engine
  // end with fault(). Afterwards the engine is idle. Throws std::bad_alloc where host memory is short; the
  // engine then has all jobs that have not ended. REQUIRES: fault() is set; engine_config::keep_jobs.
  stranded_jobs evacuate();
  // Takes the jobs that evacuate() took out of an engine of the same model and the same mask_helpers. They
  // keep their priority, their order, their pauses and their deadlines, and stand before later ones. A job
  // whose tokens no longer fit the pages or the context ends with does_not_fit. Throws std::bad_alloc where
  // host memory is short; `jobs` then has those that were not taken.
  void adopt(stranded_jobs& jobs);

  // Sleep (model::sleep): an engine without jobs gives back the device's memory of weights and pages. Any
  // thread, while no other uses the engine.
  //
  // Bytes of host memory that sleep() takes; nullopt: the model cannot sleep.
  std::optional<std::uint64_t> sleep_bytes() const noexcept;
  // Cached pages go to the host tier, as far as it has room, and the others are lost; where the sleep fails,
  // too. Errors: as model::sleep(). REQUIRES: idle(); it is awake; no fault()
  result<void> sleep(const std::atomic<bool>* others_busy = nullptr);
  // Prompts find what the host tier has from then on. Errors: as model::wake(). REQUIRES: it sleeps
  result<void> wake(const std::atomic<bool>* others_busy = nullptr);

  // The pool of pages gives way and grows (model::set_pages), without an effect on any token. The owner's
  // thread, between steps.
  //
  // Lets go of the pages `pages` and above, so that model::set_pages(pages) may be called: nobody takes them
  // from now on. Used ones are moved below by copies on the device, for which the call waits; cached ones
  // leave, to the host tier where there is one, at most `most_saved_at_once` bytes a call. Returns true when
  // no step under way uses a page above; false: to be called again after the next step, or at once where no
  // step is under way. Errors, with the numbers: busy where more than `pages` pages are used; does_not_fit
  // where the longest sequence needs more, or there never were so many; fault(). Nothing has changed then,
  // but what an earlier call let go of is taken back.
  result<bool> let_go_of_pages(std::int32_t pages);
  static constexpr std::uint64_t most_saved_at_once = 256u << 20;
  // set_pages() has taken memory for so many: the pool may use them. Called after set_pages() failed with the
  // old count, it takes back what let_go_of_pages() let go. REQUIRES: the model has memory for them.
  void use_pages(std::int32_t pages);
  // Those of the model (core/model/model.h), on the threads that it says.
  std::int32_t pages() const noexcept;
  std::int32_t most_pages() const noexcept;
  std::int32_t page_step() const noexcept;
  result<void> set_pages(std::int32_t pages);

  // Why the device failed. Once set it stays set: all jobs of that moment end with it, unless they are kept,
  // and so does every job that is submitted later. Only a new engine helps.
  const std::optional<error>& fault() const noexcept;

  // Number of jobs that ended because their logits were not finite, since the last job that ended by one of
  // its tokens (stop, length, repetition or banned). Cancels, timeouts and other errors neither count nor
  // reset the number.
  std::uint32_t bad_endings() const noexcept;

  // Any thread.
  const model_info& info() const noexcept;
  engine_counts counts() const noexcept;
  const engine_measures& measures() const noexcept;
  // Replaces `out` with a view of every unfinished job.
  void list(std::vector<sequence_view>& out) const;

  // The landmarks of its prefix cache (core/cache/prefix_tree.h), and how often one came or went.
  std::span<const prefix_tree::landmark> landmarks() const noexcept;
  std::uint64_t landmark_changes() const noexcept;

  // Checks the invariants; returns an empty string, or a description of the first violation. It looks at
  // every page of the pool and every name in the prefix tree.
  std::string check_integrity() const;
  // The part of it that takes no time, for engines without jobs: that no page is used. REQUIRES: idle()
  std::string check_idle() const;

 private:
  struct state;
  std::unique_ptr<state> s_;
};

}  // namespace weir::core
