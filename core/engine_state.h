// engine_state.h — what an engine keeps, and the parts of its step (engine.cpp, engine_overlapped.cpp).
//
// A sequence is in exactly one of three places: waiting, running (in the batch, with pages) or finishing
// (ended, but its sink has not taken the last tokens). `known` finds it in any of them.
//
// Thread safety: the owner's thread.
#pragma once

#include <unordered_map>

#include "core/engine.h"
#include "core/schedule/scheduler.h"
#include "core/schedule/waiting_line.h"

namespace weir::core {

struct engine::state {
  state(std::unique_ptr<model> m, std::shared_ptr<const tokenizer> t, engine_config c, const clock& clk);

  step_report plain_step();
  step_report overlapped_step();

  // The parts of a step, in order.
  void begin();
  void expire();
  void grow();
  void admit();
  bool enter(sequence& s);
  void share();
  const batch& schedule();
  void forward(const batch& work);
  void sample(const batch& work);
  void settle_rows(time_point at);
  void ask(const batch& work);
  void judge(time_point at);
  void deliver();
  step_report close_step(bool busy);

  // Those of a step that is begun ahead, instead of forward and sample.
  step_report land();
  void start(const batch& work);
  void collect();
  void await_draws(const batch& work);
  void begin_draws();

  std::optional<error> refusal(const job& j) const;
  void drop(std::unique_ptr<sequence> s, finish_reason why, std::optional<error> with = {});
  void fail_all(const error& e);
  void forget(const sequence& s);
  time_point next_event();

  std::unique_ptr<model> device;
  token_table text;
  engine_config config;
  const clock& time;
  std::uint32_t longest = 0;  // tokens of one sequence, prompt and output

  std::unique_ptr<host_tier> tier;  // none where it was not asked for
  page_pool pool;
  waiting_line waiting;
  std::vector<std::unique_ptr<sequence>> running;    // in the batch, in order of admission
  std::vector<std::unique_ptr<sequence>> finishing;  // ended, the last tokens not all taken
  std::unordered_map<job_id, sequence*, job_id_hash> known;
  scheduler plan;
  std::vector<sequence*> prompts;    // of the running, those that do not decode: grow() and admit() list them
  std::vector<sequence*> blocked;    // waiting, and without room when admit() looked
  std::vector<page_name> computing;  // the pages that are being computed in this step
  std::vector<draw> draws;     // that were asked for last (sequence::draw_at), and
  std::vector<drawn> results;  // what came of them
  bool draws_wait = false;     // they were asked for, and are not begun

  // A step that was begun, and whose tokens are not here yet.
  struct flight {
    bool up = false;
    std::uint32_t rows = 0, sequences = 0;
    scheduler::load load;
    time_point begun{};
  };
  flight under_way, next;  // the step that the device runs, and during overlapped_step() the one behind it
  time_point landed{};     // when a step of the device last ended

  std::optional<error> fault;
  time_point now{};  // when the step began
  time_point earliest_deadline = time_point::max();
  std::uint64_t admissions = 0, steps = 0, tokens = 0, finished = 0;
  std::uint64_t prefix_hits = 0, cached_tokens = 0, preemptions = 0;
  std::uint32_t bad_endings = 0;  // in a row

  // What admit() found when it last looked: while nothing of it changes, nobody new can enter.
  struct outlook {
    std::uint64_t releases = 0, arrivals = 0;
    std::size_t running = 0;
    bool operator==(const outlook&) const = default;
  };
  outlook look() const;
  outlook seen;
  step_report report;  // of this step, and of what cancel() ended since the last
};

}  // namespace weir::core
