// far_owner.h — the actor of a gateway: it owns the jobs that run in workers.
//
// To the streams it is what the owner of a device is: it takes jobs from its mailbox, writes their tokens,
// publishes all of a frame at once and wakes each shard once. To the workers it is a client: it offers a job,
// asks again for what is missing, repeats a cancel until the job's ending has come, and says what it needs no
// more.
//
// A client may come here whose gateway is gone: the job is looked for in the fleet, and adopted. Where its
// former gateway lives after all, that one's stream ends with the error `adopted`.
//
// A job whose worker is lost goes on at another one behind the tokens that were received. Each offer is an
// attempt with a number of its own, and news of older attempts are void.
//
// Thread safety: its executor only, which runs one handler at a time; counts() and workers() from any thread.
#pragma once

#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "actors/bus.h"
#include "actors/fleet/far_demand.h"
#include "actors/fleet/far_job.h"
#include "actors/fleet/far_list.h"
#include "actors/fleet/far_search.h"
#include "actors/fleet/file_fetch.h"
#include "actors/fleet/fleet_view.h"
#include "actors/fleet/gateway_side.h"
#include "actors/runtime/ref.h"
#include "actors/service_doors.h"
#include "actors/timekeeper.h"
#include "core/fleet/order_frame.h"
#include "core/fleet/subjects.h"

namespace weir::actors::fleet {

struct revival;

class far_owner : public std::enable_shared_from_this<far_owner> {
 public:
  far_owner(bus& b, service_doors doors, const timekeeper& time, std::vector<far_model> models,
            gateway_options o, std::string name, executor ex);

  // Spawns the reader of the mailbox. To be called once, before begin().
  void open_mailbox();
  core::result<> begin();
  // As gateway_side::hand_over(); `done` is called here.
  void hand_over(core::duration longest, std::function<void(std::uint32_t)> done);
  // As gateway_side::kill_worker_of().
  void kill_worker_of(const core::job_id& id);
  // As gateway_side::order(); `done` is called here.
  using order_done = std::function<void(core::result<core::fleet::wish_answer>)>;
  void order(const std::string& worker, core::fleet::model_wish wish, order_done done);
  // Ends all jobs, and reads nothing any more.
  void stop();
  // Looks for jobs of other gateways; it may outlive this object.
  std::shared_ptr<job_finder> finder() const;
  gateway_counts counts() const;
  std::vector<seen_worker> workers() const;

 private:
  using job_ptr = std::shared_ptr<far_job>;

  // What is known of the frames of one worker.
  struct wire_state {
    std::uint64_t next = 1;    // number of the frame that is expected
    std::uint64_t sent = 0;    // frames that it has sent, as its board says
    bool behind = false;       // at the last look, frames that its board counts had not come
    bool gap = false;          // something is missing
    core::time_point asked{};  // when it was last asked again
  };
  // A job that a worker may forget. It is told more than once, since a message may be lost.
  struct farewell {
    core::fleet::job_name job;
    core::time_point since{};
    unsigned times = 3;
  };
  // The gateway ends, and leaves its jobs to others.
  struct hand_over_state {
    core::time_point until{};
    std::uint32_t left = 0;  // jobs so far
    std::function<void(std::uint32_t)> done;
  };

  // ---- the mailbox (far_owner.cpp)
  void on(far_submit& m);
  void on(far_cancel& m);
  void on(far_pause& m);
  void on(far_find& m);
  void on(far_ask& m);
  void on(far_adopt& m);
  void on(far_wish& m);
  void on(far_end_wishes& m);
  job_ptr add(core::job job, job_stream::owner_end end, far_engine where, bool may_pause);

  // ---- what comes over the bus (far_news.cpp)
  core::result<> listen(std::string subject, void (far_owner::*what)(bus::message&));
  void on_tokens(bus::message& m);
  void on_answers(bus::message& m);
  void on_board(bus::message& m);
  void take_board(core::fleet::fleet_board b);
  void take_news(const core::fleet::job_news& n);
  void write_or_wait(const job_ptr& j);
  void ask_again(const std::string& worker, wire_state& w);

  // ---- the logprobs of prompts (far_scores.cpp)
  void ask_scores(const job_ptr& j);
  void on_scores(const job_ptr& j, std::uint8_t attempt, const bus::answer& a);

  // ---- jobs that other gateways had (far_adopt.cpp)
  void ask_fleet(const core::fleet::find& f);
  void look_after_searches();
  void end_search(const far_searches::name& n, job_search::end how, std::optional<core::error> why = {});
  void revive(const far_searches::name& n, far_searches::whole what);
  void not_revived(const far_searches::name& n, const core::error& why);
  void bring_back(revival& r, const job_search& to, const std::function<void(core::error)>& fails);
  void claim(const job_ptr& j);
  void on_claimed(const job_ptr& j, std::uint8_t attempt, const bus::answer& a);
  void on_adopted(const core::fleet::adopted& f);

  // ---- the jobs of the cell (far_cell.cpp)
  void ask_cell(core::fleet::job_question q);
  void look_after_lists();

  // ---- orders for models (far_orders.cpp)
  struct open_order {
    std::string worker;
    order_done done;
  };
  void give_order(const std::string& worker, const core::fleet::model_wish& wish, order_done done);
  void end_order(std::uint64_t id, core::result<core::fleet::wish_answer> how);
  void look_after_orders();

  // ---- jobs that other gateways will have (far_hand_over.cpp)
  void look_after_hand_over();
  void leave_to_run(const job_ptr& j);

  // ---- where a job runs (far_moves.cpp)
  using answer_reader = void (far_owner::*)(const job_ptr&, std::uint8_t attempt, const bus::answer&);
  void ask_worker(const job_ptr& j, std::string subject, const std::string& frame, answer_reader reads);
  void offer(const job_ptr& j);
  void on_answer(const job_ptr& j, std::uint8_t attempt, const bus::answer& a);
  void refused(const job_ptr& j, core::error why);
  void hop(const job_ptr& j, std::optional<core::error> why);
  void move(const job_ptr& j, bool is_lost);
  void pause_again(const job_ptr& j);
  void leave(const job_ptr& j);
  bool settle(const job_ptr& j);
  bool ends_here(const job_ptr& j);
  void lose(const std::string& worker);
  void finish(const job_ptr& j, core::ending how);
  void fail(const job_ptr& j, core::error why);

  // ---- the class of a job's arithmetic (far_class.cpp)
  void note_class(far_job& j, std::uint64_t told);
  void begin_class_of_adopted(far_job& j, std::uint64_t began_on);
  bool may_not_change_class(const far_job& j) const;
  std::vector<std::uint32_t> order_of(const far_job& j, const std::vector<fleet_view::place>& places) const;

  // ---- models whose files come from workers (far_files.cpp)
  void look_after_files();
  void ask_for_files();
  void on_files(const bus::answer& a);
  void end_fetch(const core::error& why);
  void fail_fetch(const std::string& model, const core::error& why);
  void open_fetched();
  void on_opened(const file_fetch& what, const core::result<far_model>& m);

  // ---- time (far_owner.cpp)
  void tick();
  void look_after_workers();
  void look_after_homeless();
  void look_after_demand();
  core::duration longest_wait(const far_job& j) const;
  void look_after_frames();
  void probe(const std::string& worker);
  void on_probed(const std::string& worker, std::string_view json);
  void pulse();
  void say_farewell_to(const std::string& worker, const core::fleet::job_name& job);
  void say_farewell();
  void show();
  void tell(const std::string& worker, const core::fleet::control& what);
  job_ptr find(const core::job_id& id) const;

  bus& bus_;
  const service_doors doors_;
  const timekeeper& time_;
  const gateway_options options_;
  const std::string name_;
  const core::fleet::subjects subjects_;
  const executor ex_;
  ref<far_message> mail_;
  gateway_counts now_;
  fleet_view view_;
  const std::shared_ptr<far_demand> demand_;
  outbox outbox_;
  std::vector<std::unique_ptr<bus::subscription>> ears_;
  std::unique_ptr<timekeeper::timer> timer_, room_timer_, search_timer_, list_timer_;
  far_searches searches_;
  far_lists lists_;
  std::map<std::uint64_t, open_order> orders_;  // that workers carry out
  std::uint64_t last_order_ = 0;
  const std::function<std::uint64_t()> questions_;  // random numbers
  bool stopped_ = false;
  std::unordered_map<core::job_id, job_ptr, core::job_id_hash> jobs_;
  std::unordered_map<core::job_id, job_ptr, core::job_id_hash> homeless_;  // of jobs_: those without a place
  std::unordered_map<std::uint32_t, job_ptr> slots_;
  std::uint32_t next_slot_ = 0;
  std::map<std::string, wire_state> frames_;
  std::map<std::string, std::deque<farewell>> farewells_;
  std::vector<std::weak_ptr<far_job>> waiting_;  // for room in the queue of their stream
  core::fleet::token_frame frame_;
  core::time_point pulse_at_{};
  std::optional<hand_over_state> handing_;
  std::optional<file_fetch> fetch_;
  std::uint64_t fetch_question_ = 0;                      // number of the last one
  bool opening_ = false;                                  // a thread opens the model that was fetched
  std::map<std::string, core::time_point> fetch_failed_;  // models, and when
  mutable std::mutex lock_;  // of what follows
  gateway_counts shown_;
  std::vector<seen_worker> shown_workers_;
};

}  // namespace weir::actors::fleet
