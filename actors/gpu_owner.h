// gpu_owner.h — the actor that owns a device: its memory, its engines and every sequence on it.
//
// It is the only code that touches the device. It runs on a thread of its own; in a simulation, on the
// executor that it is given. Its loop reads the mailbox, steps every engine that has work, wakes the shards
// that have new tokens, publishes its state to the board, and repeats.
//
// Thread safety: members of gpu_owner from any thread. The destructor ends every job with an error, and waits
// for the owner's thread if it has its own.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "actors/board.h"
#include "actors/messages.h"
#include "actors/runtime/exclusive_thread.h"
#include "actors/timekeeper.h"
#include "core/config.h"
#include "core/incidents.h"
#include "core/model/kv_choice.h"
#include "core/objective.h"
#include "kernels/activations.h"

namespace weir::actors {

struct owner_options : core::device_settings, core::queue_settings {
  std::string device = "cpu";  // cpu, reference, cuda:N, sim
  core::objective slo;         // of the requests of each model; where it is set, it shapes steps
  core::kv_choice kv;          // what the pages of each model store
  bool audit = false;          // check the engines' invariants after every step, not only when idle
  std::size_t models = 1;      // models that will be loaded; the mailbox is sized for their jobs
  kernels::activation_type activations = kernels::activation_type::f32;  // what quantised weights multiply
};

class gpu_owner {
 public:
  // `time` must outlive the owner. `seen` records exceptions that the owner caught. `where`: executor to run
  // on; by default the owner starts a thread of its own.
  gpu_owner(owner_options o, const timekeeper& time, std::shared_ptr<core::incidents> seen,
            boost::asio::any_io_executor where = {});
  ~gpu_owner();

  // The mailbox.
  const ref<owner_msg>& mail() const noexcept { return mail_; }
  // What the owner publishes; lives as long as this handle.
  const board& published() const noexcept { return *board_; }

 private:
  std::shared_ptr<board> board_ = std::make_shared<board>();
  std::optional<exclusive_thread> thread_;
  ref<owner_msg> mail_;
};

}  // namespace weir::actors
