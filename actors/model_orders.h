// model_orders.h — what can be done to the models of a service while it runs, and how they stand.
//
// Orders are carried out by the model registry (model_registry.h), one at a time: a second one is refused as
// busy. Jobs of other models stream on meanwhile.
//
// Thread safety: plain data; any thread.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "actors/host.h"
#include "core/error.h"
#include "core/memory/ledger.h"

namespace weir::actors {

// The states of a model that a service knows.
enum class model_state : std::uint8_t {
  absent,  // its name is known, and no memory is taken
  loading,
  ready,
  draining,  // takes no jobs; those that it has run to their ends
  failed,    // its last load or wake failed; no memory is taken
  asleep     // its tokenizer and template are there; a wake brings the rest back (sleep_level)
};
inline constexpr std::size_t model_states = 6;
const char* name(model_state s) noexcept;

// What a sleep gives up. At either level requests are checked as if the model were ready.
enum class sleep_level : std::uint8_t {
  host,  // its weights are in host memory, within --sleep-mb; workspaces stay on the device. A wake copies
  disk   // no memory is taken. A wake is a load
};
const char* name(sleep_level l) noexcept;

// Bytes that a model takes of its devices, all places together.
struct model_bytes {
  std::uint64_t weights = 0, pages = 0, workspaces = 0, runtime = 0;
  std::uint64_t host_pages = 0;  // of the host tier, in host memory
  std::uint64_t asleep = 0;      // of weights that sleep, in host memory
};

struct model_status {
  std::string name, source;
  model_state state = model_state::absent;
  std::vector<std::string> devices;       // of its places, or of those that are loading
  model_bytes bytes, predicted;           // measured around the load; computed before it
  std::uint64_t done = 0, total = 0;      // of the load under way, in bytes; total 0: not known yet
  std::uint32_t running = 0, queued = 0;  // jobs; queued counts those that are paused
  std::uint32_t context = 0;              // most tokens of a sequence; 0: not known yet
  std::uint64_t kv_tokens = 0;            // of its page pools; 0: not known yet
  std::optional<double> last_used_s;      // seconds since its last job came or ended; nullopt: it had none
  core::model_limits limits;              // of its own
  double share = 1;                       // its weight among the models of a device
  bool pinned = false;                    // it leaves neither for another one nor for want of jobs
  // Parts of the time of its devices, 0 to 1: what its weight asks for among the models that are loaded
  // there, and what it got of the time that all of them took in the last 10 s. 0 where it is not loaded.
  double share_asked = 0, share_got = 0;
  std::string reason;                     // why the last load failed; empty: it did not
  // Of all loads since the name came: those that ended well, those that failed, and how long the last one
  // that ended well took; nullopt: none has.
  std::uint64_t loads = 0, load_failures = 0;
  std::optional<double> last_load_s;
  std::optional<sleep_level> level;  // while it sleeps, or is being woken
  // Sleeps and wakes that ended well, those that failed, and how long the last wake took that ended well.
  std::uint64_t sleeps = 0, wakes = 0, nap_failures = 0;
  std::optional<double> last_wake_s;
  // How often pools of this model gave way and grew, and the pages that all those changes gave and took.
  std::uint64_t gave_way = 0, grew = 0, pages_given = 0, pages_taken = 0;
};

// The account of one device, in bytes; total is 0 where the device does not say how much memory it has.
struct device_account {
  std::string device;
  std::uint64_t total = 0, outside = 0, context = 0, reserve = 0, models = 0, free = 0;
  core::memory_lines lines;                        // of all models together; their sum is `models`
  std::uint64_t pages_used = 0, pages_cached = 0;  // of lines.pages; the rest is free for jobs
};

// How all models stand at one moment, with every name of the start among them.
struct models_picture {
  std::uint64_t version = 0;  // grows with each change of a state; progress alone does not count
  std::vector<model_status> models;
  std::vector<device_account> devices;
  std::uint64_t sleep_total = 0, sleep_taken = 0;  // host memory for weights of models that sleep
};

// An order to load a model. Its name may be that of a model that is absent or failed: `source` may then be
// empty, and the model is loaded from where it was.
struct load_order {
  model_spec spec;
  std::vector<std::string> devices;        // one place on each; empty: on the host with the fewest models
  std::optional<std::uint64_t> kv_tokens;  // tokens of the page pool; nullopt: --kv-tokens
};

struct unload_order {
  std::string name;
  // Jobs that still run after this time end with the error `unavailable`; nullopt: --drain-s.
  std::optional<std::chrono::nanoseconds> drain;
  bool forget = false;  // the name is unknown afterwards
};

// A model goes to sleep once its jobs have run to their ends. A job that takes longer than `drain` ends the
// order and not the job, and everything is as before.
struct sleep_order {
  std::string name;
  std::optional<sleep_level> level;  // nullopt: host where it has room and the model can, else disk
  std::optional<std::chrono::nanoseconds> drain;  // nullopt: --drain-s
};
struct wake_order {
  std::string name;
};

// On which terms a model is on its devices, from now on and for its later loads; nullopt: as before.
struct terms_order {
  std::string name;
  std::optional<double> share;  // its weight among the models of a device; core::is_weight()
  std::optional<bool> pinned;   // as model_status::pinned
};

// One model comes when others have gone. Jobs of those that go run to their ends: a job that takes longer
// than `drain` ends the swap and not the job, and everything is as before.
struct swap_order {
  std::vector<std::string> out;
  load_order in;
  std::optional<std::chrono::nanoseconds> drain;  // nullopt: --drain-s
};

// Why an order was refused, or failed. `fault.code`:
//   busy: another order is being carried out; retry_after_ms says for about how long
//   already_there: a model of that name is served, sleeps or is being loaded; it sleeps, or is awake, already
//   model_not_found: no model has that name, or it is in no state for the order
//   not_supported: the model cannot sleep at this level
//   does_not_fit: `plan` has the numbers where they were computed
//   bad_file, not_supported, invalid_param, unavailable, internal: as open() of a host
struct order_error {
  core::error fault;
  std::string plan;  // JSON of `weir plan`; empty: none
};

// Answers to an order. Each is posted to the executor that came with the order. `begun` comes once: with the
// model as it stands when the order is accepted, or with the refusal. After an acceptance `done` comes once,
// when the order is carried out or has been undone. Either may be empty.
struct order_replies {
  using answer = boost::system::result<model_status, order_error>;
  std::function<void(answer)> begun, done;
};

[[noreturn]] inline void throw_exception_from_error(const order_error& e, const boost::source_location&) {
  throw std::runtime_error(e.fault.message);
}

}  // namespace weir::actors
