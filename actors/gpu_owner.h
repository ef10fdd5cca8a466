// gpu_owner.h — the actor that owns a device: its memory, its engines and every sequence on it.
//
// The owner alone steps the engines of the device. The owner runs on a thread of its own; in a simulation, on
// the executor that the owner is given. Its loop reads the mailbox, steps an engine that has work, wakes
// the shards that have new tokens, publishes its state to the board, and repeats. Models are loaded and
// destroyed on another thread (loader.h), and the owner adopts an engine that is ready. An engine that is to
// sleep leaves the owner in the same way, and comes back awake (engine_sleepers.h).
//
// Where several engines have something due, the device's time is divided among them by their weights
// (core/schedule/shares.h): after each step the owner chooses anew which engine steps.
//
// Thread safety: as host. The destructor waits for the owner's thread if it has its own.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "actors/board.h"
#include "actors/host.h"
#include "actors/messages.h"
#include "actors/runtime/exclusive_thread.h"
#include "actors/timekeeper.h"
#include "core/config.h"
#include "core/delays.h"
#include "core/grammar/cache.h"
#include "core/incidents.h"
#include "core/model/kv_choice.h"
#include "core/objective.h"
#include "kernels/activations.h"

namespace weir::actors {

// The source of a chat template, which compiles.
struct template_text {
  std::string file, source;
};

struct owner_options : core::device_settings, core::queue_settings {
  std::string device = "cpu";  // cpu, reference, cuda:N, sim
  std::uint32_t context = 0;   // of models whose spec names none, as model_spec::context
  core::objective slo;         // of the requests of each model; where it is set, it shapes steps
  core::kv_choice kv;          // what the pages of each model store
  bool lists_landmarks = false;  // pictures list those of prefix caches (engine_picture::landmarks)
  // The service is a worker: places say what decides their bits (model_place::arithmetic), and models keep
  // their text files open (served_model::files).
  bool joins_fleet = false;
  bool audit = false;          // check all invariants of the engines after every step
  std::size_t models = 8;      // most models at a time; the mailbox is sized for their jobs
  kernels::activation_type activations = kernels::activation_type::f32;  // what quantised weights multiply
  // Which chat template all models have, whenever they are loaded, in place of their own; at most one is set.
  bool chatml = false;
  std::shared_ptr<const template_text> chat_template;
};

// Objects that all owners of a service share. No pointer is null.
struct shared_by_owners {
  std::shared_ptr<core::incidents> seen;  // records exceptions that an owner caught
  std::shared_ptr<core::grammar::constraint_cache> constraints;
  // Delays from a job's cancel or deadline until its pages were free.
  std::shared_ptr<core::delays> cancel_to_release = std::make_shared<core::delays>();
};

class gpu_owner final : public host {
 public:
  // `time` must outlive the owner. `where`: executor to run on; by default the owner starts a thread of its
  // own.
  gpu_owner(owner_options o, const timekeeper& time, shared_by_owners shared,
            boost::asio::any_io_executor where = {});
  ~gpu_owner() override;

  const std::string& device() const noexcept override { return device_; }
  void open(model_spec spec, model_progress progress, executor ex, std::function<void(opened)> done) override;
  void close(engine_id engine, executor ex, std::function<void(core::engine_totals)> done) override;
  void sleep(engine_id engine, executor ex, napped done) override;
  void wake(engine_id engine, executor ex, napped done) override;
  void resize(engine_id engine, std::uint32_t pages, executor ex, napped done) override;
  void set_share(engine_id engine, double weight) override;
  const board& published() const noexcept override { return *board_; }

 private:
  void ask_nap(engine_id engine, nap what, executor ex, napped done);

  const std::string device_;
  std::shared_ptr<board> board_ = std::make_shared<board>();
  std::optional<exclusive_thread> thread_;
  ref<owner_msg> mail_;
};

}  // namespace weir::actors
