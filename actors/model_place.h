// model_place.h — an engine that runs a model, as jobs see it.
//
// Thread safety: any thread. A place is immutable once served and shared by pointer; `admission` has state,
// which is atomic.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "actors/admission_control.h"
#include "actors/job_stream.h"
#include "actors/known_prefixes.h"
#include "actors/memory_use.h"
#include "core/fleet/arithmetic_class.h"
#include "core/job.h"

namespace weir::actors {

// Identity of an engine. No two engines of a process have the same, also when one of them is gone. An engine
// that is made anew after a fault keeps it.
enum class engine_id : std::uint64_t {};

// The way to an engine, on whichever host it is (host.h). Any thread. Where the host is gone, nothing
// happens: it has ended all of its jobs.
class engine_port {
 public:
  engine_port() = default;
  engine_port(const engine_port&) = delete;
  engine_port& operator=(const engine_port&) = delete;
  virtual ~engine_port() = default;

  // Sends a job, whose output the host writes to `end`. False: the host's mailbox is full, and nothing was
  // sent. REQUIRES: job.sink is null.
  virtual bool submit(core::job job, job_stream::owner_end end) = 0;
  // Asks to end a job. May throw where there is no room for the message.
  virtual void cancel(const core::job_id& id, core::finish_reason why) = 0;
  // Asks to read whether a job has to pause. At most one such question of a job is on its way.
  virtual void pause(job_stream::owner_end end) = 0;
};

struct model_place {
  engine_id engine{};
  std::string device;  // cpu, reference, cuda:N, sim
  bool far = false;    // it is in another process (actors/fleet)
  memory_use memory;   // bytes that the model takes there while it is awake
  // Bytes of host memory that its weights take while it sleeps; nullopt: it cannot (core::model).
  std::optional<std::uint64_t> sleep_bytes;
  // Most tokens of a sequence: the smallest of the model's context, --context, --max-seq-len and the page
  // pool.
  std::uint32_t context = 0;
  std::uint64_t kv_tokens = 0;  // that its page pool held when it was loaded
  // That pool, whose size may change: its pages when it was loaded, those for which there are addresses, the
  // steps in which they come and go (0: never), and the bytes of each.
  std::uint32_t pages = 0, most_pages = 0, page_step = 0;
  std::uint64_t page_bytes = 0;
  std::unique_ptr<admission_control> admission;  // never null
  std::shared_ptr<engine_port> port;             // never null once it is served
  // What is known of its prefix cache; null where places are not chosen by prefixes.
  std::shared_ptr<known_prefixes> known;
  // What decides the bits of its tokens; not known where owner_options::joins_fleet is not set.
  core::fleet::arithmetic_facts arithmetic;
};

}  // namespace weir::actors
