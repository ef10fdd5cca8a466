// loader.h — the thread of a host on which models are loaded, put to sleep, woken and destroyed, so that its
// owner never waits for any of it.
//
// Each engine gets a backend of its own: two backends of one device share nothing but the device, so a load
// and the steps of other engines do not wait for each other.
//
// Thread safety: any thread. Callbacks run on the loader's thread. The destructor finishes the work under way
// and drops the rest.
#pragma once

#include <atomic>
#include <boost/asio/any_io_executor.hpp>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "actors/open_model.h"
#include "actors/pool_change_word.h"
#include "actors/runtime/exclusive_thread.h"
#include "actors/timekeeper.h"
#include "core/incidents.h"

namespace weir::actors {

struct owner_options;

using loaded = core::result<std::unique_ptr<ready_model>>;  // with its engine

class loader {
 public:
  // What engines need of their owner.
  struct surroundings {
    const timekeeper& time;  // must outlive the loader and its engines
    std::shared_ptr<core::grammar::mask_helpers> masks;
    std::shared_ptr<core::incidents> seen;
    // Whether the owner's engines have work; a load gives way to it. Never null.
    std::shared_ptr<std::atomic<bool>> busy = std::make_shared<std::atomic<bool>>(false);
  };

  // `where`: executor to run on; by default the loader starts a thread of its own.
  loader(std::shared_ptr<const owner_options> o, surroundings s, boost::asio::any_io_executor where);

  void load(model_spec spec, model_progress progress, std::function<void(loaded)> done);
  // Puts an engine that has no job to sleep, or wakes it. `done` gets the engine back with the result. Where
  // the error is `internal` the engine was destroyed, and `done` gets null.
  using napped = std::function<void(std::unique_ptr<core::engine>, core::result<>)>;
  void sleep(std::unique_ptr<core::engine> e, napped done);
  void wake(std::unique_ptr<core::engine> e, napped done);
  // Changes the pool of an engine that works. An exception is a failure of the device.
  void set_pages(std::shared_ptr<pool_change_word> change, std::function<void(core::result<>)> done);
  // Destroys an engine that no job uses any more, and calls `done` once its memory is free.
  void destroy(std::unique_ptr<core::engine> e, std::function<void()> done);

 private:
  void nap(std::unique_ptr<core::engine> e, core::result<> (core::engine::*what)(const std::atomic<bool>*),
           napped done);

  const std::shared_ptr<const owner_options> options_;
  const surroundings around_;
  std::optional<exclusive_thread> thread_;
  boost::asio::any_io_executor where_;
};

// The work of loader::load(), on the calling thread.
loaded load_now(const owner_options& o, const loader::surroundings& s, const model_spec& spec,
                const model_progress& progress);

}  // namespace weir::actors
