// host.h — where engines run: a device of this process (gpu_owner.h), as everybody but its owner sees it.
//
// Thread safety: any thread. The destructor ends every job of the host's engines with an error.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "actors/board.h"
#include "actors/job_stream.h"
#include "actors/served_model.h"
#include "core/error.h"
#include "core/model_limits.h"

namespace weir::actors {

// A model to load.
struct model_spec {
  std::string name;    // the name that clients use
  std::string source;  // a directory, random:SHAPE[:DTYPE], or sim[:SPEC]
  // Of its page pool, as a plan granted them (memory_plan.h); nullopt: --kv-tokens, or what is free once all
  // else is there.
  std::optional<std::uint32_t> pages = {};
  // Its page pool may grow to so many pages, as far as the device has memory for them; nullopt: it keeps its
  // size.
  std::optional<std::uint64_t> most_pages = {};
  // Most tokens of a sequence that it serves; 0: all that it has; nullopt: as owner_options says.
  std::optional<std::uint32_t> context = {};
  // Its weight among the models of a device (core/schedule/shares.h); nullopt: 1.
  std::optional<double> share = {};
  core::model_limits limits = {};  // narrower than those of owner_options
  bool pinned = false;             // it is not taken down for another one, nor for want of jobs
  // It is unloaded once it had no job for so long; nullopt: never.
  std::optional<core::duration> idle_unload = {};
  // It goes to sleep once it had no job for so long; nullopt: never.
  std::optional<core::duration> idle_sleep = {};
  // Set: nobody waits for the load any more, which then ends before it warms up. Null: somebody does.
  std::shared_ptr<const std::atomic<bool>> unwanted = {};
};

// Progress of a load, in bytes. Called on the thread that loads.
using model_progress = std::function<void(const std::string& model, std::uint64_t done, std::uint64_t total)>;

class host {
 public:
  host() = default;
  host(const host&) = delete;
  host& operator=(const host&) = delete;
  virtual ~host() = default;

  // cpu, reference, cuda:N, sim. Two hosts may have the same.
  virtual const std::string& device() const noexcept = 0;

  // Loads a model and makes its engine, beside the jobs of other engines. `done` gets the model with one
  // place, or the error, posted to `ex`. Loads of one host come one after the other.
  using opened = core::result<std::shared_ptr<const served_model>>;
  virtual void open(model_spec spec, model_progress progress, executor ex,
                    std::function<void(opened)> done) = 0;

  // Ends an engine, and frees its memory. Jobs that it still has end with the error `unavailable`, and so do
  // jobs that reach it later. Once the memory is free, `done` is posted to `ex` with what the engine counted.
  // A host that has no such engine answers with zeros.
  virtual void close(engine_id engine, executor ex, std::function<void(core::engine_totals)> done) = 0;

  // Puts an engine that has no job to sleep, or wakes it (core::engine). Jobs of other engines run on. From
  // sleep() until a wake() has succeeded, jobs that reach the engine end with the error `unavailable`. The
  // engine keeps its identity. `done` gets the result, posted to `ex`. Errors:
  //   not_supported, does_not_fit: the engine is as it was, awake or asleep
  //   busy, unavailable: the same; it has jobs, or the host has no such engine, or its device is down
  //   internal: the engine is broken, and can only be closed
  using napped = std::function<void(core::result<>)>;
  virtual void sleep(engine_id engine, executor ex, napped done) = 0;
  virtual void wake(engine_id engine, executor ex, napped done) = 0;

  // Changes the number of pages of an engine's pool while it works (core::engine). `done` gets the result,
  // posted to `ex`. After an error the pool is as before:
  //   not_supported: it keeps its size; does_not_fit: memory is short
  //   busy: more pages are in use, or were for let_go_within; or another change is under way
  //   unavailable: the host has no such engine that is awake, or its device is down
  //   internal: the device has failed
  virtual void resize(engine_id engine, std::uint32_t pages, executor ex, napped done) = 0;

  // Sets the weight of an engine among those of the host, from its next step on; no effect where the host has
  // no such engine. REQUIRES: core::is_weight(weight)
  virtual void set_share(engine_id engine, double weight) = 0;

  // What the host publishes; lives as long as the host.
  virtual const board& published() const noexcept = 0;
};

}  // namespace weir::actors
