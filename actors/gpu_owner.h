// gpu_owner.h — the actor that owns a device: its memory, its engines, every sequence on it.
//
// It lives on a thread of its own and is the only code that touches the device (in a simulation, on the
// executor it is given). Its loop is: read the mail, step every engine that has something to do, flush the
// tokens' wakes, publish, repeat.
//
// Thread safety: the handle's members from any thread. The destructor ends every job with an error, and
// joins.
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
  std::string device = "cpu";        // cpu, reference, cuda:N, sim
  unsigned threads = 0;              // that compute, the owner's own among them; 0: every core
  bool deterministic = false;        // a job's bits are its own on cuda too
  std::uint64_t kv_tokens = 0;       // 0: auto
  std::uint64_t kv_host_bytes = 0;   // of the host tier; 0: none
  std::uint64_t reserve_bytes = 0;   // of a device's memory that nothing here takes
  std::uint32_t max_batch = 64;
  std::uint32_t max_seq_len = 0;     // 0: the model's own
  std::optional<core::duration>
      prefill_time;                  // longest step with a prompt's slice while others decode; none: auto
  core::duration step_time{};        // longest step with nothing decoding
  // What may wait before a refusal; see way_in.
  std::uint32_t queue = 256;         // jobs
  std::uint64_t queue_tokens = std::numeric_limits<std::uint64_t>::max();  // of prompts
  core::duration queue_wait = core::duration::max();
  std::uint32_t max_tokens_default = 4096;
  bool audit = false;                // check the engines' books after every step, not only when idle
  std::size_t models = 1;            // how many will be loaded: the mailbox has room for all their jobs
};

class gpu_owner {
 public:
  // `time` must outlive the owner. Without an executor it makes its own thread.
  // `seen` learns of exceptions.
  gpu_owner(owner_options o, const timekeeper& time, std::shared_ptr<core::incidents> seen,
            boost::asio::any_io_executor where = {});
  ~gpu_owner();

  const ref<owner_msg>& mail() const noexcept { return mail_; }
  const board& published() const noexcept { return *board_; }

 private:
  std::shared_ptr<board> board_ = std::make_shared<board>();
  std::optional<exclusive_thread> thread_;
  ref<owner_msg> mail_;
};

}  // namespace weir::actors
