// engine_state.h — members of an engine, and the parts of its step (engine.cpp, engine_overlapped.cpp).
//
// A sequence is in exactly one of three containers: `waiting`, `running` (in the batch, with pages) or
// `finishing` (ended, without pages, its sink not done). `known` finds it in any of them.
//
// Thread safety: the owner's thread only.
#pragma once

#include <unordered_map>

#include "core/engine.h"
#include "core/schedule/scheduler.h"
#include "core/schedule/waiting_line.h"

namespace weir::core {

struct engine::state {
  state(std::unique_ptr<model> m, std::shared_ptr<const tokenizer> t, engine_config c, const clock& clk);

  // The plain loop: a step is scheduled, computed, sampled and delivered before the next one begins.
  step_report plain_step();
  // The overlapped loop: a step is begun while the device still runs the one before it. See
  // engine_overlapped.cpp.
  step_report overlapped_step();

  // --- Parts of both loops, in the order of a step ---

  // Reads the clock.
  void begin();
  // Closes waiting and running jobs whose deadline has passed, with timeout.
  void expire();
  // Gives every running sequence the pages for the rows that it needs computed, and lists `prompts`. Where
  // the pool has none left it preempts the youngest running sequence of the lowest priority, until there is
  // room.
  void grow();
  // Moves waiting jobs into the batch, in their scheduling order, while there are places and pages.
  void admit();
  // Takes the pages that a waiting sequence needs, cached ones first. Returns false and changes nothing if
  // the pool has not enough.
  bool enter(sequence& s);
  // Gives sequences with prompt rows to compute the pages that are in the prefix tree by now. Of the
  // sequences that would compute the same page in this step, all but the first are held.
  void share();
  // Calls share() and plans the step. The batch is empty if no row is due.
  const batch& schedule();
  // Runs the batch (plain loop). A failure of the device ends every job.
  void forward(const batch& work);
  // Draws the step's tokens and judges them (plain loop).
  void sample(const batch& work);
  // Counts the plan's rows as computed and names the pages that they filled.
  void settle_rows(time_point at);
  // Fills `draws` with one draw for each row of logits whose sequence has not ended.
  void ask(const batch& work);
  // Adds the tokens in `results` to the running sequences that await them, and closes those that a token
  // ends. `at`: when the tokens were sampled.
  void judge(time_point at);
  // Offers sinks their decided tokens, moves ended sequences to `finishing`, and forgets those whose sinks
  // are done.
  void deliver();
  // Completes the totals and returns the report. `busy`: the next step has work at once, so wait_until stays
  // unset.
  step_report close_step(bool busy);

  // --- Parts of the overlapped loop, in place of forward() and sample() ---

  // A whole step behind one that computes prompts alone: waits for that one and begins nothing. Such a step
  // is long and needs no host time to be hidden, and a cancel or a new job would otherwise wait for two of
  // them.
  step_report land();
  // Begins the forward of `work`, as `next`.
  void start(const batch& work);
  // Waits for the tokens of the step under way and judges them.
  void collect();
  // Makes `next` the step under way and fills `draws` for it. The draws are begun later, by begin_draws().
  void await_draws(const batch& work);
  // Begins the draws that wait, if any do. REQUIRES: no sequence was destroyed since ask().
  void begin_draws();

  // --- Ends of jobs ---

  // Error for a job whose prompt can never fit the pages or the context.
  std::optional<error> refusal(const job& j) const;
  // Ends a job now, whatever its sink has room for, and forgets it. An ended sequence keeps its tokens and
  // gets the new reason.
  void drop(std::unique_ptr<sequence> s, finish_reason why, std::optional<error> with = {});
  // Records the fault of the device and ends every waiting and running job with it.
  void fail_all(const error& e);
  // Removes a finished job from `known` and adds it to the totals.
  void forget(const sequence& s);

  // Earliest time at which a step can do anything if no message comes; time_point{} if there is none.
  time_point next_event();

  std::unique_ptr<model> device;  // the model, which runs on the device
  token_table text;               // bytes of every token id, for stop strings
  engine_config config;
  const clock& time;
  std::uint32_t longest = 0;  // most tokens of one sequence, prompt and output together

  std::unique_ptr<host_tier> tier;  // null unless config.host_pages > 0
  page_pool pool;
  waiting_line waiting;
  std::vector<std::unique_ptr<sequence>> running;    // in order of admission
  std::vector<std::unique_ptr<sequence>> finishing;  // ended; their sinks have not taken the last tokens
  std::unordered_map<job_id, sequence*, job_id_hash> known;
  scheduler plan;
  std::vector<sequence*> prompts;    // running sequences that do not decode, as of grow() and admit()
  std::vector<sequence*> blocked;    // waiting sequences that the current admit() found no room for
  std::vector<page_name> computing;  // names of the pages that prompts compute in this step
  std::vector<draw> draws;           // draws requested last; sequence::draw_at is an index
  std::vector<drawn> results;        // their results, by the same index
  bool draws_wait = false;           // `draws` are requested, but the device has not begun them

  // A step that was begun, and whose tokens are not here yet.
  struct flight {
    bool up = false;  // there is such a step
    std::uint32_t rows = 0, sequences = 0;
    scheduler::load load;
    time_point begun{};
  };
  // `under_way`: the step that the device runs. `next`: the step begun behind it, while overlapped_step()
  // lasts.
  flight under_way, next;
  time_point landed{};  // when the host last received a step's tokens

  std::optional<error> fault;  // why the device failed; it stays set
  time_point now{};            // when the current step began
  // No later than the earliest deadline of a waiting or running job. It may be the deadline of a job that has
  // ended.
  time_point earliest_deadline = time_point::max();
  engine_counts totals;          // its totals alone are kept up to date
  std::uint64_t admissions = 0;  // since the engine was made
  std::uint32_t bad_endings = 0;  // see engine::bad_endings()

  // What decides whether a waiting job can enter. Nobody new can while it equals `seen`.
  struct outlook {
    std::uint64_t releases = 0, arrivals = 0;
    std::size_t running = 0;
    bool operator==(const outlook&) const = default;
  };
  outlook look() const;  // as it is now
  outlook seen;          // as the last admit() left it
  step_report report;    // of the current step, with the jobs that cancel() ended since the last one
};

}  // namespace weir::core
