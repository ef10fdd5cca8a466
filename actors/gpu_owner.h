// gpu_owner.h — the actor that owns a device: its memory, its engines and every sequence on it.
//
// It is the only code that touches the device. It runs on a thread of its own; in a simulation, on the
// executor that it is given. Its loop reads the mailbox, steps every engine that has work, wakes the shards
// that have new tokens, publishes its state to the board, and repeats.
//
// Thread safety: members of gpu_owner from any thread. The destructor ends every job with an error, and waits
// for the owner's thread if it has its own.
#pragma once

#include <limits>
#include <memory>
#include <optional>
#include <string>

#include "actors/board.h"
#include "actors/messages.h"
#include "actors/runtime/exclusive_thread.h"
#include "actors/timekeeper.h"
#include "core/incidents.h"

namespace weir::actors {

struct owner_options {
  std::string device = "cpu";       // cpu, reference, cuda:N, sim
  unsigned threads = 0;             // compute threads, the owner's own included; 0: one per core
  bool deterministic = false;       // on cuda too, a job's bits do not depend on its neighbours in the batch
  std::uint64_t kv_tokens = 0;      // tokens of KV memory for each model; 0: chosen from the free memory
  std::uint64_t kv_host_bytes = 0;  // host tier of each model, in bytes; 0: none
  std::uint64_t reserve_bytes = 0;  // device memory that is left free
  std::uint32_t max_batch = 64;     // most sequences in a batch
  std::uint32_t max_seq_len = 0;    // most tokens of a sequence; 0: the model's context
  // Longest step with prompt rows while sequences decode; unset: chosen by device (open_model.cpp).
  std::optional<core::duration> prefill_time;
  core::duration step_time{};  // longest step while none decodes; zero: no bound
  // Admission limits of each model; see way_in::limits.
  std::uint32_t queue = 256;                                               // waiting jobs
  std::uint64_t queue_tokens = std::numeric_limits<std::uint64_t>::max();  // tokens of waiting prompts
  core::duration queue_wait = core::duration::max();                       // predicted wait
  std::uint32_t max_tokens_default = 4096;  // of a request that does not set max_tokens
  bool audit = false;      // check the engines' invariants after every step, not only when idle
  std::size_t models = 1;  // models that will be loaded; the mailbox is sized for their jobs
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
