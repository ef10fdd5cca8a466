// worker_side.h — makes a service a worker of a fleet: jobs come to its models over a bus, and their tokens
// go back to the gateways that sent them.
//
//   actors::fleet::worker_side side(bus, service, time, {.cell = "main"});
//   if (auto begun = side.start(); !begun) …
//   side.drain(std::chrono::seconds(30), ex, [] { … });  // on SIGTERM; then the program ends
//
// Thread safety: any thread. The destructor ends the jobs that the worker has, and waits for its thread.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "actors/bus.h"
#include "actors/service.h"
#include "actors/timekeeper.h"
#include "core/clock.h"
#include "core/error.h"
#include "core/fleet/order_frame.h"

namespace weir::actors::fleet {

class intake;
class side_thread;

struct worker_options {
  std::string cell = "main";  // core::fleet::is_cell_name()
  std::string name;           // core::fleet::is_name(); empty: drawn
  std::string build;          // version of the program: for people, and for the class of its arithmetic
  core::duration board_every = std::chrono::milliseconds(250);
  // A job that is taken makes a board of its own where the last one is so old: gateways know an engine by
  // its boards, and send it too much where these are late.
  core::duration board_after_job = std::chrono::milliseconds(50);
  core::duration retain = std::chrono::seconds(60);       // how long ended jobs are kept for their gateway
  core::duration silent_after = std::chrono::seconds(2);  // without a pulse a gateway counts as gone
  core::duration adopt_grace = std::chrono::seconds(30);  // how long the jobs of such a gateway run on
  // In a demonstration: kills the process, as a gateway asks for a job that runs here. Empty: nobody may.
  std::function<void()> on_crash = {};
  // Carries out an order for the worker's models as the admin routes of a server do, and calls `done` once,
  // on any thread. It is called on the worker's own thread. Empty: the worker takes no orders.
  std::function<void(core::fleet::model_wish, std::function<void(core::fleet::wish_answer)> done)> on_order =
      {};
  std::optional<executor> where;                          // in a simulation; else a thread of its own
};

// What the worker has counted since its start.
struct worker_counts {
  std::uint64_t taken = 0, refused = 0;  // jobs
  std::uint64_t frames = 0;              // of tokens, that were sent
  std::uint64_t told_again = 0;          // jobs whose tokens were asked for again
  std::uint64_t broken = 0;              // frames that were dropped
  std::uint64_t found = 0;               // jobs that were told to a gateway that asked for them
  std::uint64_t adopted = 0;             // times that a job got another gateway
  std::uint64_t listed = 0;              // questions for the worker's jobs that were answered
  std::uint64_t silent = 0;              // questions for jobs of other keys, and adoptions that were refused
  std::uint64_t orders = 0;              // for its models, that were begun
  std::uint64_t wishes = 0;              // of gateways for models, that were begun
  std::uint64_t file_pieces = 0;         // of its models' text files, that were given
  std::uint64_t cut_off = 0;             // jobs that were cancelled since their gateway was gone
  std::uint32_t jobs = 0, kept = 0;      // jobs now; ended ones that are kept
};

class worker_side {
 public:
  // All three must outlive it.
  worker_side(bus& b, service& s, const timekeeper& time, worker_options o);
  ~worker_side();
  worker_side(const worker_side&) = delete;
  worker_side& operator=(const worker_side&) = delete;

  // Subscribes, and publishes the first board. Errors: those of the bus.
  core::result<> start();
  const std::string& name() const noexcept { return name_; }

  // From now on no job is taken. Once no job is left, or after `limit`, gateways are told to move what is
  // left; `done` is posted to `ex` when nothing is left or they had time to.
  void drain(core::duration limit, executor ex, std::function<void()> done);

  worker_counts counts() const;

 private:
  const std::string name_;
  std::unique_ptr<side_thread> thread_;
  std::shared_ptr<intake> intake_;
};

}  // namespace weir::actors::fleet
