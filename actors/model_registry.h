// model_registry.h — the actor that loads, unloads and swaps models, lets them sleep and wake, and alone
// writes the list of models.
//
// It carries out one order at a time. An order is a list of steps, and a step that fails is followed by the
// undoing of those before it:
//
//   load    memory is promised, each host opens its engine, the model is ready
//   unload  the admission closes, jobs run to their ends, engines are closed, memory is given back
//   swap    the same for those that go, then the load; where it fails, those that went are loaded again
//   sleep   as unload; the engines sleep, or are closed, and its texts stay (model_naps.h)
//   wake    its memory is taken again, and its engines wake, or are loaded
//   terms   the hosts of the model are told its weight; it is pinned, or not any more
//
//   demand  a load that requests wait for, and before it the unload of models that rest (model_demand.h)
//
// An order that comes meanwhile is refused as busy, and a request waits in its line. Jobs of other models
// never wait for an order: hosts load and close beside their steps, and the registry has no thread that does
// anything else but wait.
//
// Thread safety: any thread, except stop().
#pragma once

#include <functional>
#include <future>
#include <memory>
#include <string>
#include <vector>

#include "actors/host.h"
#include "actors/load_line.h"
#include "actors/load_plan.h"
#include "actors/memory_book.h"
#include "actors/model_list.h"
#include "actors/model_orders.h"
#include "actors/on_demand.h"
#include "actors/runtime/ref.h"
#include "actors/timekeeper.h"
#include "core/incidents.h"

namespace weir::actors {

namespace registry_messages {
struct order;
}

class model_registry {
 public:
  struct parts {
    const timekeeper& time;  // each must outlive the registry, or its stop()
    const std::vector<std::unique_ptr<host>>& hosts;
    model_list& list;
    memory_book& memory;
    std::shared_ptr<core::incidents> seen;
    std::vector<load_step> start;   // what start() loads
    std::vector<model_spec> known;  // models that are absent until an order names them
    std::size_t most_models = 8;    // of a host
    core::duration drain{};         // where an order names no time
    on_demand demand;
    // Calls `work`, which reads files, on a thread where nobody waits, and then `done` on the registry's.
    std::function<void(std::function<void()> work, std::function<void(std::optional<core::error>)> done)>
        read;
    // How a model stands, for answers.
    std::function<model_status(const known_model&)> describe;
  };

  // `where`: runs the actor.
  model_registry(executor where, parts p);
  // Ends the order under way where it stands, without undoing it. `wait`: returns once the actor has ended;
  // not on its own thread.
  void stop(bool wait);

  // Loads the models of the start, one after the other. `done` gets the result: the first error ends the
  // load. `progress` is called on the threads that load.
  void start(model_progress progress, executor ex, std::function<void(core::result<>)> done);
  void load(load_order o, executor ex, order_replies to);
  void unload(unload_order o, executor ex, order_replies to);
  void swap(swap_order o, executor ex, order_replies to);
  void set_terms(terms_order o, executor ex, order_replies to);
  void sleep(sleep_order o, executor ex, order_replies to);
  void wake(wake_order o, executor ex, order_replies to);

  // A request waits for its model (load_line.h): it is loaded when no order is under way, and resting models
  // leave for it where it needs their room.
  void wish(model_wish w);
  // Refuses all requests that wait. Those that come later wait as ever.
  void end_wishes(core::error why);

 private:
  class mind;
  ref<registry_messages::order> mail_;
  std::future<void> ended_;
};

}  // namespace weir::actors
