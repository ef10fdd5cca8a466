// engine_state.h — members of an engine, and the parts of its step (engine.cpp, engine_overlapped.cpp).
//
// A sequence is in exactly one of four places: the scheduler's waiting line, its batch, its sequences that
// rest, or `finishing` (ended, without pages, its sink not done). Within a step, a sequence that has ended
// stays where it is until deliver(). `known` finds it in any of them.
//
// Thread safety: the owner's thread only.
#pragma once

#include <unordered_map>

#include "core/engine.h"
#include "core/schedule/in_flight.h"
#include "core/schedule/scheduler.h"

namespace weir::core {

struct engine::state {
  state(std::unique_ptr<model> m, token_table t, engine_config c, const clock& clk,
        std::shared_ptr<grammar::mask_helpers> helpers);

  // The plain loop: a step is scheduled, computed, sampled and delivered before the next one begins.
  step_report plain_step();
  // The overlapped loop: a step is begun while the device still runs the one before it. See
  // engine_overlapped.cpp.
  step_report overlapped_step();

  // --- Parts of both loops, in the order of a step ---

  // Reads the clock.
  void begin();
  // Closes waiting, running and paused jobs whose deadline has passed, with timeout.
  void expire();
  // Plans the step, and ends the waiting jobs that were found abandoned. The batch is empty if no row is due.
  const batch& schedule();
  // Begins the forward of `work`, which the plain loop also completes. nullopt: the batch is empty, or the
  // device failed and every job has ended.
  std::optional<in_flight> launch(const batch& work);
  // Fills step.draws with the draws of `work`, and `late` with the draws whose masks are not ready. Adds
  // forced tokens. There is no draw for a sequence that has ended, or whose forced tokens are not computed
  // yet.
  void list_draws(in_flight& step, const batch& work);
  // Adds the draw of one sequence.
  void list_draw(in_flight& step, sequence& s, std::uint32_t logits_row);
  // Adds the draws of `late` whose masks are ready by now; the others stay left out. `patient`: waits for
  // masks while the device computes; after that, if there is no other draw, waits for the first posted mask
  // at most mask_helpers::longest_wait.
  void list_late(in_flight& step, bool patient);
  // Lists the sequences of `work` that have rows to score for the logprobs of their prompts.
  void list_scored(const batch& work);
  // Scores the rows that list_scored() listed, except those of ended sequences. Waits for the forward.
  // Returns whether a sequence ended here, because its logits are not finite.
  bool score(const batch& work);
  // Scores the rows of one sequence. False: the sequence ended.
  bool score(sequence& s, const batch_slice& slice);
  // Adds the tokens in step.results to the sequences that await them, and closes those that a token ends.
  // `at`: when the tokens were sampled.
  void accept_draws(in_flight step, time_point at);
  // The same for one sequence.
  void accept_draw(sequence& s, const in_flight& step, time_point at);
  // Adds a token that was sampled at `at` to the constraint of `s`. False: the sequence ended or went back.
  bool follow(sequence& s, token_id id, time_point at);
  // Adds the forced tokens of a sequence. Returns whether a token may be drawn behind them. If not, ends the
  // sequence: with the reason of a forced token that ends it, with `stop` if its text is whole, or with the
  // fault of its constraint; or the sequence went back from a forced token. REQUIRES: the mask is ready.
  bool goes_on(sequence& s, time_point at);
  // Adds the forced tokens alone. False: one of them ended the sequence, or took it back.
  bool add_forced(sequence& s, time_point at);
  // Takes a sequence back whose last token completed a banned string, or ends it where it cannot go back.
  void go_back(sequence& s);
  // Asks helpers for the mask of `s`, or makes it where there are no helpers. Helpers without room are asked
  // again before the next draw of `s`.
  void make_mask(sequence& s);
  // Has helpers destroy the mask of a sequence that has ended, and with it perhaps its constraint.
  void discard_mask(sequence& s) noexcept;
  // Why a sequence ends at token `id`: s.how().reason, but `stop` for `length` if its constraint says that
  // the text is whole. nullopt: a helper has to find out, since it can take long. The sequence then stays,
  // with all its tokens, and goes_on() ends it.
  std::optional<finish_reason> reason_of(const sequence& s, token_id id) const;
  // Adds a token of `s` that was sampled or forced at `at` to the measures: the gap before the token or, if
  // it is the first, the times to it. To be called before s.accept().
  void measure(const sequence& s, time_point at) noexcept;
  // Lets the older tokens leave the full context of a sequence.
  void shift(sequence& s);
  // Offers sinks their decided tokens, moves ended sequences to `finishing`, and forgets those whose sinks
  // are done.
  void deliver();
  // Completes the totals and returns the report. `busy`: the next step has work at once, so wait_until stays
  // unset.
  step_report close_step(bool busy);

  // The plain loop: draws the tokens of the step and accepts them.
  void sample(in_flight step, const batch& work);

  // --- Parts of the overlapped loop, in place of sample() ---

  // The rest of a call of step() behind a step that computes only prompts: completes that step and begins
  // none. Such a step is long, so there is almost no host time to hide, and a cancel or a new job would
  // otherwise wait for two long steps.
  step_report land();
  // Waits for the tokens of the step under way, if there is one, and accepts them. Afterwards no step is
  // under way.
  void collect();
  // Begins the draws of the step under way that are listed and not begun. `patient`: waits for late masks as
  // list_late() says.
  void begin_draws(bool patient);

  // --- Ends of jobs ---

  // Error for a job whose prompt can never fit the pages or the context.
  std::optional<error> refusal(const job& j) const;
  // Takes an unfinished job out of the place where it is.
  std::unique_ptr<sequence> take(const sequence& s);
  // Ends a sequence by one of its tokens.
  void finish(sequence& s, finish_reason why);
  // Ends a sequence that has not ended: sequence::close(). Begins the listed draws first if one refers to it.
  void close(sequence& s, finish_reason why, std::optional<error> fault = {});
  // Counts whether a sequence that ended with `why` kept the objective.
  void compare(const sequence& s, finish_reason why) noexcept;
  // Ends a job now, whatever its sink has room for, and forgets it. An ended sequence keeps its tokens and
  // gets the new reason.
  void drop(std::unique_ptr<sequence> s, finish_reason why, std::optional<error> with = {});
  // Records the fault of the device, and ends every waiting, running and paused job with it. Under keep_jobs
  // they wait or rest from then on, without pages.
  void fail_all(const error& e);
  // Ends every waiting, running and paused job with `e`.
  void end_all(const error& e);
  // Ends every waiting and paused job that adopt() took, with the fault. REQUIRES: a fault; keep_jobs.
  void end_continued();
  // A step behind a fault: only what needs no device.
  step_report faulted_step();
  // Takes a job of another engine; see engine::adopt(). Where memory is short, it throws and leaves `s` as it
  // is.
  void adopt(std::unique_ptr<sequence>& s);
  // Ends a job that never was a sequence.
  void refuse(const job& j, error why);
  // Removes a finished job from `known` and counts it.
  void forget(sequence& s);

  // --- The size of the pool (engine_pool.cpp) ---

  // Why the pool cannot end at page `pages`, if it cannot.
  std::optional<error> refuses_end(std::int32_t pages) const;
  // Moves used pages that leave below the end, and makes the copies that wait for a step. Waits for the
  // device where there are any; returns whether it did.
  result<bool> move_used();
  // Evicts cached pages that leave, as many as a call may, and waits until the host tier has them. Returns
  // whether it waited.
  result<bool> evict_leaving();
  // Steps whose forward was begun, and those of them that the device is known to have computed.
  std::uint64_t launches = 0;
  std::uint64_t landed_launches() const { return launches - (under_way ? 1 : 0); }
  // The device is done with the pages that have left once so many launches are; no_launch: not all have left.
  static constexpr std::uint64_t no_launch = ~std::uint64_t{0};
  std::uint64_t left_behind = 0;
  std::uint32_t end_before = 0;  // of the pool, while not all pages above its end have left

  // Earliest time at which a step can do anything if no message comes; time_point{} if there is none.
  time_point next_event();

  std::unique_ptr<model> device;  // the model, which runs on the device
  token_table text;               // bytes of every token id, for stop strings
  engine_config config;
  const clock& time;
  std::shared_ptr<grammar::mask_helpers> helpers;  // null: masks are made on the owner's thread
  std::uint32_t longest = 0;                       // most tokens of one sequence, prompt and output together

  std::unique_ptr<host_tier> tier;  // null unless config.host_pages > 0
  page_pool pool;
  scheduler plan;
  std::vector<std::unique_ptr<sequence>> finishing;  // ended; their sinks have not taken the last tokens
  std::unordered_map<job_id, sequence*, job_id_hash> known;

  std::optional<in_flight> under_way;  // the step that the device runs; the overlapped loop alone has one
  in_flight over;                      // a step that is over, whose memory the next one takes
  // Filled by list_scored(): the jobs that have rows to score, each with the index of its slice.
  std::vector<std::pair<job_id, std::size_t>> to_score;
  // Filled by list_draws(): draws whose masks are late. They are left out unless list_late() adds them.
  struct late_draw {
    job_id id;
    std::uint32_t logits_row;
  };
  std::vector<late_draw> late;
  std::optional<sample_scratch> scratch;  // of score(); made when a job first needs it
  time_point landed{};                    // when the host last received the tokens of a step under way

  std::optional<error> fault;  // why the device failed; it stays set
  time_point now{};            // when the current step began
  // No later than the earliest deadline of a waiting, running or paused job. It may be the deadline of a job
  // that has ended.
  time_point earliest_deadline = time_point::max();
  engine_totals totals;
  std::uint64_t device_ns = 0;  // totals.device_us, in ns
  engine_measures measures;
  std::uint32_t bad_endings = 0;  // see engine::bad_endings()
  step_report report;             // of the current step, with the jobs that cancel() ended since the last one
};

}  // namespace weir::core
