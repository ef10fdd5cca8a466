// owner_mind.h — what the owner of a device does with each message, and in each step of its engines. The
// actor that runs it is in gpu_owner.cpp.
//
// Thread safety: the owner's executor only.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "actors/board.h"
#include "actors/engine_place.h"
#include "actors/engine_sleepers.h"
#include "actors/gpu_owner.h"
#include "actors/job_state.h"
#include "actors/loader.h"
#include "actors/mask_pool.h"
#include "actors/pool_changes.h"
#include "actors/restart_plan.h"
#include "actors/runtime/context.h"
#include "core/engine.h"
#include "core/schedule/shares.h"

namespace weir::actors {

class owner_mind {
 public:
  using time_point = core::time_point;

  // `where`: executor for loads; empty: a thread of their own.
  owner_mind(owner_options o, const timekeeper& time, std::shared_ptr<board> b, shared_by_owners shared,
             std::shared_ptr<mask_pool> masks, executor where);
  // Ends the jobs that are left.
  ~owner_mind();

  // Before all else: `self` gets the mail that timers and loads send.
  void begin(const context<owner_msg>& self);
  void accept(owner_msg& m);
  // Whether no engine has a job.
  bool idle() const;
  // One of the engines that have something due takes a step. An engine that throws is in no known state: its
  // jobs end, and its device is treated as one that failed.
  void step() noexcept;
  // When the next step is due; in the past where something is due now. REQUIRES !idle().
  time_point due() const;
  time_point now() const { return time_.now(); }
  // Called before the owner waits for mail or until the next step is due. It sends no heartbeat while a job
  // runs or waits: a device that makes the owner wait for long is not healthy.
  void before_wait(time_point until);
  // Called before the owner waits for mail while it has no work. Publishes all news, and checks the engines.
  void before_idling();

 private:
  using door = admission_control::door;
  struct waiting_load {
    time_point at;
    load_model what;
  };
  struct waiting_nap {
    time_point at;
    nap_engine what;
  };

  // ---- steps (owner_mind.cpp)
  void step_engines();
  // The engine that steps next; null where none has anything due.
  engine_place* choose();
  // Whether an engine beside `e` has something to do, now or later.
  bool has_company(const engine_place& e) const;
  // Takes note of what a step of `e` did.
  void note(engine_place& e, const core::step_report& done);
  // Whether no job runs or waits: there are no jobs, or all of them are paused.
  bool rests() const;
  // Tells loads on this device whether engines have work, to which loads give way.
  void say_busy(bool now) { engines_need_.busy->store(now, std::memory_order_relaxed); }
  void on(time_came&);
  // A lost page is a fault of the engine. Readiness reports the fault before the memory runs out.
  void check_books(std::string (core::engine::*check)() const);
  void publish();
  board::picture picture();
  // Null where the engine was closed: messages to a closed engine may still arrive.
  engine_place* find(engine_id id);
  // Null where the engine sleeps, was closed, or has lost its device.
  core::engine* working(engine_id id);

  // ---- jobs (owner_jobs.cpp)
  void on(submit_job& m);
  void on(cancel_job& m);
  void on(pause_job& m);
  static core::error model_is_gone();

  // ---- models that come, leave, sleep, wake, and change (owner_models.cpp)
  void on(set_share& m);
  // The pool of an engine changes its size while it works.
  void on(resize_engine& m);
  void on(pages_set& m);
  void advance_changes();
  // A load that has to wait begins when its time has come, or soon after nobody wants it any more: then it
  // ends with an error.
  void on(load_model& m);
  // An engine leaves the owner before it sleeps. Where the sleep takes simulated time, the engine waits
  // among the sleepers until that time is over.
  void on(nap_engine& m);
  // Why an engine cannot be given out; nullopt: it is among the sleepers now.
  std::optional<core::error> give_to_sleepers(engine_id id);
  void begin_nap(nap_engine& m);
  void on(nap_ended& m);
  void begin_loads();
  // Returns when the next of those that wait is due.
  time_point begin_naps(time_point now);
  void begin_load(load_model& m);
  void on(load_ended& m);
  // The engine's memory is freed on the loader's thread, so that no other engine waits for that.
  void on(close_engine& m);
  void close_sleeper(close_engine& m);

  // ---- a device that has failed (owner_faults.cpp)
  // The device has failed, and its memory is lost for all engines. Backend and engines are then made again as
  // restart_plan.h says, and unfinished jobs go on in the new engines. Where that is not to be or fails, they
  // end with `why`, and readiness says why from then on. So do jobs that went on behind a failure before, and
  // those of an engine that threw. Messages wait meanwhile, cancels too; a deadline that has passed takes
  // effect in the first step. What must not be left half done waits for memory where it is short.
  void device_failed(const core::error& why);
  // The jobs of an engine that go on behind the failure of its device: none where host memory is short.
  core::stranded_jobs take_jobs(core::engine& e, const core::error& why);
  // Gives each engine its jobs back. What an engine has no memory for stays in the list.
  void give_back(std::vector<core::stranded_jobs>& unfinished);
  // Jobs go to other places of their models from now on, or are refused.
  void go_down(const std::string& why);
  // Makes the engines that the failed device has lost. False: it could not be done, and is tried again as
  // restart_plan.h says.
  bool start_again();
  // Frees the engines' memory, and with it their backends.
  void close_all();
  core::result<> reopen_all();

  const std::shared_ptr<const owner_options> options_;
  const timekeeper& time_;
  std::shared_ptr<board> board_;
  const shared_by_owners shared_;
  const loader::surroundings engines_need_;
  ref<owner_msg> self_;
  std::unique_ptr<timekeeper::timer> timer_, load_timer_, change_timer_;
  outbox outbox_{*shared_.cancel_to_release};
  std::vector<engine_place> engines_;  // that are awake, in the order of their loads and wakes
  engine_sleepers sleepers_;           // the others
  pool_changes changes_;               // of those that are awake
  core::shares shares_;                // whose turn it is
  engine_place* stepping_ = nullptr;   // whose step is under way, or has thrown
  std::vector<waiting_load> loads_;
  std::vector<waiting_nap> naps_;
  restart_plan plan_;
  std::string fault_;  // the last failure of the device
  const core::error broken_step_ = core::make_error(core::errc::internal, "a step could not be finished");
  std::vector<core::sequence_view> listed_;
  step_meter meter_;
  time_point publish_at_{}, landmarks_at_{};
  loader loader_;  // last, so that it ends first
};

}  // namespace weir::actors
