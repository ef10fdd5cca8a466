// gateway_side.h — makes a service a gateway of a fleet: the models of workers are models of the service, and
// its jobs run there.
//
//   auto chat = actors::fleet::open_far_model({"chat", "models/chat"}, owner_options);
//   actors::fleet::gateway_side side(bus, service, time, {*chat}, {.cell = "main"});
//   if (auto begun = side.start(); !begun) …
//
// A service that loads models itself may be a gateway as well: where workers have a model of the same name
// and tokens, its jobs run in its own engines or there, wherever their first token is predicted sooner. With
// a worker_side beside it (worker_side.h), its engines run jobs of other gateways, too.
//
// Thread safety: any thread. The destructor ends the jobs that are far away with the error `unavailable`, and
// waits for its thread.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "actors/bus.h"
#include "actors/fleet/far_model.h"
#include "actors/job_finder.h"
#include "actors/service.h"
#include "actors/timekeeper.h"
#include "core/clock.h"
#include "core/error.h"
#include "core/fleet/fleet_board.h"
#include "core/fleet/order_frame.h"

namespace weir::actors::fleet {

class far_owner;
class side_thread;

struct gateway_options {
  std::string cell = "main";  // core::fleet::is_cell_name()
  std::string name;           // core::fleet::is_name(); empty: drawn
  std::string own_worker;     // of a service that is a worker, too: its name there. Its engines have places
  core::duration pulse_every = std::chrono::milliseconds(250);
  core::duration probe_after = std::chrono::milliseconds(400);    // without a board, a worker is asked
  core::duration dead_after = std::chrono::milliseconds(2000);    // without a board, it counts as dead
  core::duration hung_after = std::chrono::seconds(10);           // without a step of a host that has work
  core::duration answer_within = std::chrono::milliseconds(250);  // whether it takes a job
  std::uint32_t moves = 3;        // how often a job that runs may lose its worker
  // A job ends with the error `class_changed` where it had to move to another class of arithmetic.
  bool strict_class = false;
  std::optional<executor> where;  // in a simulation; else a thread of its own
  // Set: models that the gateway has no files of come from workers (file_fetch.h). chat_template, chatml,
  // max_tokens_default, grammar_time and context are used.
  std::optional<owner_options> fetch = {};
  // Is told of each model that came from a worker, on the gateway's own thread. Empty: nobody is.
  std::function<void(const std::string& model)> on_fetched = {};
};

// What the gateway has counted since its start.
struct gateway_counts {
  std::uint64_t frames = 0;       // of tokens, that came
  std::uint64_t asked_again = 0;  // times that tokens were missing, and asked for again
  std::uint64_t void_news = 0;    // news of a job's older attempts, or of jobs that are gone
  std::uint64_t broken = 0;       // frames that were dropped
  std::uint64_t moved = 0;        // jobs that went on with another worker
  std::uint64_t hops = 0;         // jobs that a worker refused, or did not answer for, and another took
  std::uint64_t dead = 0;         // workers that were given up
  std::uint64_t searches = 0;     // jobs that were looked for in the fleet
  std::uint64_t lists = 0;        // times that the workers were asked for their jobs
  std::uint64_t orders = 0;       // that workers were given
  std::uint64_t loads = 0;        // times that a worker was asked to load a model for requests
  std::uint64_t loads_refused = 0;  // and those that a worker refused
  std::uint64_t crowded = 0;      // searches and lists that were refused, since there are too many
  std::uint64_t adopted = 0;      // jobs that came from another gateway
  std::uint64_t given = 0;        // jobs that another gateway has adopted
  std::uint64_t known = 0;        // tokens of prompts that chosen workers were known to have in their caches
  std::uint64_t found = 0;        // and those that were found there
  std::uint32_t jobs = 0;         // now
  std::uint32_t waiting = 0;      // requests that wait for a model, now
  std::uint64_t between_classes = 0;  // of `moved`: to a worker of another class of arithmetic
  std::uint64_t fetched = 0;          // models whose files came from workers
  std::uint64_t fetch_failures = 0;   // times that they could not be had, or not be opened
};

// A worker as the gateway sees it.
struct seen_worker {
  core::fleet::fleet_board board;
  core::duration age{};    // of its last sign of life
  bool suspected = false;  // no board came in time
};

// What a gateway shows of its fleet.
struct fleet_figures {
  std::vector<seen_worker> workers;
  gateway_counts counts;
};

class gateway_side {
 public:
  // The first three must outlive it. No two models have the same name.
  gateway_side(bus& b, service& s, const timekeeper& time, std::vector<far_model> models, gateway_options o);
  ~gateway_side();
  gateway_side(const gateway_side&) = delete;
  gateway_side& operator=(const gateway_side&) = delete;

  // Subscribes, and asks all workers for their boards. Errors: those of the bus.
  core::result<> start();
  const std::string& name() const noexcept { return name_; }

  // Leaves the jobs that can go on at another gateway to their workers, which keep them for worker_options::
  // adopt_grace. Their streams end here with the error `handed_over`. A job that no worker has taken yet is
  // waited for, for `longest`. Then `done` is posted to `ex` with the number of jobs that were left. Jobs
  // that nobody may resume, and those that came too late, are as they were.
  void hand_over(core::duration longest, executor ex, std::function<void(std::uint32_t)> done);

  // For a demonstration: the worker where this job runs kills its process, if it was started for that
  // (worker_options::on_crash). Nothing happens where the job runs nowhere.
  void kill_worker_of(const core::job_id& id);

  // Gives a worker an order for its models. `done` is posted to `ex` with the answer of the worker, which may
  // take as long as a load. Errors: not_found, where the gateway knows no such worker; unavailable.
  void order(std::string worker, core::fleet::model_wish wish, executor ex,
             std::function<void(core::result<core::fleet::wish_answer>)> done);

  fleet_figures figures() const { return {workers(), counts()}; }
  std::vector<seen_worker> workers() const;
  gateway_counts counts() const;

 private:
  const std::string name_;
  std::unique_ptr<side_thread> thread_;
  std::shared_ptr<far_owner> far_;
  std::shared_ptr<job_finder> finder_;
  // Of the service, which knows the finder from start() on.
  std::function<void(std::weak_ptr<job_finder>)> set_finder_;
};

}  // namespace weir::actors::fleet
