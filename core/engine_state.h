// engine_state.h — members of an engine, and the parts of its step (engine.cpp, engine_overlapped.cpp).
//
// A sequence is in exactly one of four places: the scheduler's waiting line, its batch, its paused
// sequences, or `finishing` (ended, without pages, its sink not done). Within a step, a sequence that has
// ended stays where it is until deliver(). `known` finds it in any of them.
//
// Thread safety: the owner's thread only.
#pragma once

#include <unordered_map>

#include "core/engine.h"
#include "core/schedule/in_flight.h"
#include "core/schedule/scheduler.h"

namespace weir::core {

struct engine::state {
  state(std::unique_ptr<model> m, std::shared_ptr<const tokenizer> t, engine_config c, const clock& clk,
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
  // Begins the forward of `work`, which the plain loop also completes. Nothing where the batch is empty, or
  // where the device failed: then every job has ended.
  std::optional<in_flight> launch(const batch& work);
  // Fills step.draws with one draw for each row of logits of `work` whose sequence has not ended, and `late`
  // with those whose masks are not ready.
  void list_draws(in_flight& step, const batch& work);
  // Adds the draw of one sequence.
  void list_draw(in_flight& step, sequence& s, std::uint32_t logits_row);
  // Adds the draws of `late` whose masks are ready by now; the others stay left out. `patient`: it waits
  // for masks as long as the device computes, and for the first one where there is no other draw.
  void list_late(in_flight& step, bool patient);
  // Lists the sequences of `work` that have rows to score for the logprobs of their prompts.
  void list_scored(const batch& work);
  // Scores those rows, which waits for the forward, unless their sequences are gone meanwhile. Returns
  // whether one of them ended, because its logits are not finite.
  bool score(const batch& work);
  // The same for one sequence; false: it ended.
  bool score(sequence& s, const batch_slice& slice);
  // Adds the tokens in step.results to the sequences that await them, and closes those that a token ends.
  // `at`: when the tokens were sampled.
  void judge(in_flight step, time_point at);
  // The same for one sequence.
  void judge(sequence& s, const in_flight& step, time_point at);
  // Goes on in the constraint of `s` behind a token that was sampled at `at`. False: it ended.
  bool follow(sequence& s, token_id id, time_point at);
  // Adds the tokens that the constraint of a sequence forces, whose mask is ready, and says whether a token
  // may be drawn behind them. If not, the sequence is ended: with `stop` where its text is whole, with the
  // reason of a forced token that ends it, else with the fault of its constraint.
  bool goes_on(sequence& s, time_point at);
  // Adds the forced tokens alone. False: a forced token ends the sequence. The reason is in s.how, and the
  // caller closes the sequence.
  bool add_forced(sequence& s, time_point at);
  // Asks helpers for the mask of `s`, or makes it where there are no helpers. Helpers without room are asked
  // again before the next draw of `s`.
  void make_mask(sequence& s);
  // Why a sequence ended at a token that it accepted: `stop` where its constraint says that it is whole.
  finish_reason reason_of(sequence& s, token_id id);
  // Counts a token of `s` that was sampled or forced at `at`, before s.accept(): its gap, or the times of the
  // first.
  void measure(const sequence& s, time_point at) noexcept;
  // Offers sinks their decided tokens, moves ended sequences to `finishing`, and forgets those whose sinks
  // are done.
  void deliver();
  // Completes the totals and returns the report. `busy`: the next step has work at once, so wait_until stays
  // unset.
  step_report close_step(bool busy);

  // The plain loop: draws the tokens of the step and judges them.
  void sample(in_flight step, const batch& work);

  // --- Parts of the overlapped loop, in place of sample() ---

  // A whole step behind one that computes prompts alone: waits for that one and begins nothing. Such a step
  // is long and needs no host time to be hidden, and a cancel or a new job would otherwise wait for two of
  // them.
  step_report land();
  // Waits for the tokens of the step under way, if there is one, and judges them. Afterwards none is under
  // way.
  void collect();
  // Begins the draws of the step under way that are listed and not begun. `patient`: waits for late masks as
  // list_late() says.
  void begin_draws(bool patient);

  // --- Ends of jobs ---

  // Error for a job whose prompt can never fit the pages or the context.
  std::optional<error> refusal(const job& j) const;
  // Takes an unfinished job out of the place where it is.
  std::unique_ptr<sequence> take(const sequence& s);
  // Ends a sequence that has not ended: sequence::close(). A draw that refers to it is begun before.
  void close(sequence& s, finish_reason why, std::optional<error> fault = {});
  // Counts whether a sequence that ended with `why` kept the objective.
  void compare(const sequence& s, finish_reason why) noexcept;
  // Ends a job now, whatever its sink has room for, and forgets it. An ended sequence keeps its tokens and
  // gets the new reason.
  void drop(std::unique_ptr<sequence> s, finish_reason why, std::optional<error> with = {});
  // Records the fault of the device and ends every waiting and running job with it.
  void fail_all(const error& e);
  // Removes a finished job from `known` and counts it.
  void forget(const sequence& s);

  // Earliest time at which a step can do anything if no message comes; time_point{} if there is none.
  time_point next_event();

  std::unique_ptr<model> device;  // the model, which runs on the device
  token_table text;               // bytes of every token id, for stop strings
  engine_config config;
  const clock& time;
  std::shared_ptr<grammar::mask_helpers> helpers;  // null: masks are made on the owner's thread
  std::uint32_t longest = 0;  // most tokens of one sequence, prompt and output together

  std::unique_ptr<host_tier> tier;  // null unless config.host_pages > 0
  page_pool pool;
  scheduler plan;
  std::vector<std::unique_ptr<sequence>> finishing;  // ended; their sinks have not taken the last tokens
  std::unordered_map<job_id, sequence*, job_id_hash> known;

  std::optional<in_flight> under_way;  // the step that the device runs; the overlapped loop alone has one
  in_flight over;                      // a step that is over, whose memory the next one takes
  // By list_scored(): who has rows to score, and the number of its slice.
  std::vector<std::pair<job_id, std::size_t>> to_score;
  // By list_draws(): draws that wait for their masks. Their sequences sit out unless list_late() finds them.
  struct late_draw {
    job_id id;
    std::uint32_t logits_row;
  };
  std::vector<late_draw> late;
  std::optional<sample_scratch> scratch;  // of score(); made when a job first needs it
  time_point landed{};                 // when the host last received the tokens of a step under way

  std::optional<error> fault;  // why the device failed; it stays set
  time_point now{};            // when the current step began
  // No later than the earliest deadline of a waiting or running job. It may be the deadline of a job that has
  // ended.
  time_point earliest_deadline = time_point::max();
  engine_totals totals;
  engine_measures measures;
  std::uint32_t bad_endings = 0;  // see engine::bad_endings()
  step_report report;             // of the current step, with the jobs that cancel() ended since the last one
};

}  // namespace weir::core
