// intake.h — the actor of a worker: it takes jobs from gateways, gives them to the worker's own engines, and
// tells their tokens and endings to the gateways.
//
// It trusts nothing that comes over the bus: a job is read within bounds, checked as a request is, and
// admitted by the place's own admission. A newer attempt of a job makes the older one void, and ends it.
//
// A gateway without a pulse counts as gone. Its jobs run on for a grace, in which another gateway may find
// and adopt them, and are cancelled then. A job that has ended is kept for a while after its gateway has
// dropped it, where another gateway could go on with it (guest::left). Such jobs take most_left bytes
// together at most.
//
// Thread safety: its executor only, which runs one handler at a time; counts() from any thread.
#pragma once

#include <atomic>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <unordered_map>
#include <vector>

#include "actors/bus.h"
#include "actors/fleet/guest.h"
#include "actors/fleet/part_shelf.h"
#include "actors/fleet/per_second.h"
#include "actors/fleet/random_numbers.h"
#include "actors/fleet/worker_side.h"
#include "actors/service_doors.h"
#include "actors/timekeeper.h"
#include "core/fleet/fleet_board.h"
#include "core/fleet/landmarks.h"
#include "core/fleet/list_frame.h"
#include "core/fleet/order_frame.h"
#include "core/fleet/subjects.h"

namespace weir::actors::fleet {

class intake : public std::enable_shared_from_this<intake> {
 public:
  intake(bus& b, service_doors doors, const timekeeper& time, worker_options o, std::string name,
         executor ex);

  core::result<> begin();
  // As worker_side::drain(): the process ends afterwards. An operator's `drain` frame empties the worker as
  // well, and its process goes on.
  void drain(core::duration limit, executor ex, std::function<void()> done);
  // Ends all jobs, and reads nothing any more.
  void stop();
  worker_counts counts() const;

 private:
  using job_name = core::fleet::job_name;
  static constexpr std::uint64_t most_left = std::uint64_t{64} << 20;

  // A gateway that has jobs here, or had some lately.
  struct peer {
    peer(std::string_view worker) : tokens(worker, false), logprobs(worker, true) {}
    core::time_point heard{};
    std::uint64_t frames = 0;
    std::uint32_t jobs = 0;  // its guests
    core::fleet::token_frame_writer tokens, logprobs;
  };
  // A job on its way into an engine.
  struct newcomer {
    std::shared_ptr<guest> who;
    core::job job;
    std::shared_ptr<const served_model> model;
    std::shared_ptr<const model_place> place;
    model_use::way way;  // to the model, until an engine has the job
  };
  // Requests at a gateway wait for a model.
  struct visitors {
    std::string gateway, model;
    core::time_point heard{}, ready{};
    core::fleet::load_news news;
    model_use::way way;  // once it is ready: it stays until their jobs are here
    std::shared_ptr<std::atomic<bool>> gone = std::make_shared<std::atomic<bool>>(false);
  };

  // ---- what comes over the bus (intake.cpp)
  core::result<> listen(std::string subject, void (intake::*what)(bus::message&));
  void on_job(bus::message& m);
  void on_control(bus::message& m);
  void on_pulse(bus::message& m);
  void on_hello(bus::message& m);
  void on_find(bus::message& m);
  void on(const core::fleet::cancel& f, const bus::message& m);
  void on(const core::fleet::pause& f, const bus::message& m);
  void on(const core::fleet::resume& f, const bus::message& m);
  void on(const core::fleet::again& f, const bus::message& m);
  void on(const core::fleet::adopt& f, const bus::message& m);
  void on(const core::fleet::drop& f, const bus::message& m);
  void on(const core::fleet::probe& f, const bus::message& m);
  void on(const core::fleet::crash& f, const bus::message& m);
  void on(const core::fleet::load_wish& f, const bus::message& m);
  void on(const core::fleet::drain& f, const bus::message& m);
  void on(const core::fleet::undrain& f, const bus::message& m);
  template <class F>
  void on(const F&, const bus::message&) {
    ++now_.broken;
  }  // no frame for a worker
  void answer(const std::string& to, const core::fleet::control& what);

  // ---- how a job comes in (intake_jobs.cpp)
  void take(core::fleet::job_order o, std::string frame, const std::string& answer_to);
  core::result<newcomer> admit(core::fleet::job_order& o);
  core::result<> make_room(const core::fleet::job_order& o, std::shared_ptr<model_use> use, newcomer& n);
  void make_ready(const std::shared_ptr<newcomer>& n);
  static core::result<bool> make(newcomer& n, core::turn& at, std::function<void()> again);
  void bring_in(newcomer& n);
  // Ends a job that was admitted, and that no engine has.
  static void give_back(newcomer& n, core::error why);

  // ---- how another gateway gets a job (intake_adopt.cpp)
  std::shared_ptr<guest> guest_for(const core::fleet::adopt& f) const;
  void tell_adopted(const std::string& gateway, std::vector<job_name> jobs);
  void leave(const std::shared_ptr<guest>& g);
  void lose_peer(guest& g);

  // ---- orders for its models (intake_orders.cpp)
  bool take_order(const bus::message& m);
  void give_permit(const bus::message& m);
  bool use_permit(std::uint64_t number);
  void carry_out(const bus::message& m);

  // ---- models that gateways' requests wait for (intake_demand.cpp)
  core::fleet::load_news news_of(const core::fleet::load_wish& f);
  core::result<void> begin_wish(const core::fleet::load_wish& f);
  void wish_ended(std::uint64_t number, core::result<model_way> how);
  void look_after_wishes();
  void end_wishes();
  bool is_wanted(const std::string& model) const;
  bool takes_jobs_of(const std::string& model) const;
  // ---- the text files of its models (intake_files.cpp)
  void give_file(const bus::message& m);

  // ---- the logprobs of prompts (intake_scores.cpp)
  void give_scores(const bus::message& m);

  // ---- which jobs the worker has (intake_list.cpp)
  void on_list(bus::message& m);
  std::vector<std::shared_ptr<guest>> asked_for(const core::fleet::job_question& q);

  // ---- what is told (intake_news.cpp)
  void note(const std::shared_ptr<guest>& g);
  void flush();
  void send(const std::string& gateway, peer& p, core::fleet::token_frame_writer& w);
  void tick();
  void publish_board();
  void tell_load();
  void publish_landmarks();
  // What gateways were told of an engine's prefix cache.
  struct told_landmarks {
    std::shared_ptr<const core::fleet::landmark_list> seen;  // what `list` was made of
    core::fleet::landmark_list list;
    std::uint64_t number = 0;
    core::time_point whole_at{};  // when all of it is told again
  };
  void tell_landmarks(std::uint64_t engine, told_landmarks& told,
                      const std::shared_ptr<const core::fleet::landmark_list>& now);
  core::fleet::fleet_board board();
  std::uint64_t digest(const served_model& m);
  std::uint32_t running() const;
  void drain_until(core::time_point limit);
  void look_after_drain();

  peer* peer_of(const std::string& gateway);
  std::shared_ptr<guest> find(const job_name& n) const;  // null: no such job, or another attempt of it
  void forget(const core::job_id& id);

  bus& bus_;
  service_doors doors_;
  const timekeeper& time_;
  const worker_options options_;
  const std::string name_;
  const core::fleet::subjects subjects_;
  const executor ex_;
  std::vector<std::unique_ptr<bus::subscription>> ears_;
  std::unique_ptr<timekeeper::timer> timer_;
  std::unordered_map<core::job_id, std::shared_ptr<guest>, core::job_id_hash> guests_;
  std::map<std::string, peer, std::less<>> peers_;
  std::vector<std::weak_ptr<guest>> news_;
  bool flushing_ = false;  // a flush is on its way
  part_shelf shelf_;
  std::deque<std::weak_ptr<guest>> left_;  // the oldest first
  std::uint64_t left_bytes_ = 0;
  per_second finds_{4096}, lists_{256}, found_bytes_{std::uint64_t{64} << 20};
  per_second file_bytes_{std::uint64_t{64} << 20}, score_bytes_{std::uint64_t{64} << 20};
  std::unordered_map<std::uint64_t, core::time_point> permits_;  // for orders: when each was given
  std::deque<std::uint64_t> given_permits_;                      // the oldest first; some were used
  std::unordered_map<std::uint64_t, visitors> wishes_;           // by number
  std::shared_ptr<void> models_seen_;                            // follows the list of models
  const std::function<std::uint64_t()> random_ = random_numbers();
  core::fleet::worker_state state_ = core::fleet::worker_state::ready;
  std::uint64_t boards_ = 0;
  std::map<std::uint64_t, told_landmarks> told_;  // by engine
  core::time_point board_at_{};  // when the last one was published
  core::time_point drain_until_ = core::time_point::max(), leave_at_ = core::time_point::max();
  std::vector<std::function<void()>> drained_;  // who waits for the end of the drain
  bool ends_ = false;                           // the process ends once it is free
  // By the tokenizers of the models that are served.
  std::map<std::shared_ptr<const core::tokenizer>, std::uint64_t> digests_;
  worker_counts now_;
  mutable std::mutex lock_;  // of shown_
  worker_counts shown_;
};

}  // namespace weir::actors::fleet
