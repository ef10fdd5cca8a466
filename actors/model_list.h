// model_list.h — the names of the models that a service knows, how each stands, and what serves it.
//
// The model registry (model_registry.h) alone writes: it replaces the whole list at each change, so a reader
// never waits for a load. In a gateway of a fleet, the fleet view (fleet/fleet_view.h) alone writes the
// models that run in other processes. Of two models of one name, the registry's is the one that is found;
// while it is served, its places are those of both.
//
// Thread safety: publish() and set_started() from one thread at a time, and publish_far() from one;
// everything else from any thread.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "actors/job_stream.h"
#include "actors/model_orders.h"
#include "actors/model_use.h"
#include "actors/served_model.h"
#include "core/engine.h"
#include "core/error.h"

namespace weir::actors {

// How far a load is, in bytes. Any thread. `total` is 0 until the model's files were looked at.
struct load_progress {
  std::atomic<std::uint64_t> done{0}, total{0};
  std::atomic<bool> unwanted{false};  // nobody waits for the load any more (model_spec::unwanted)
};

struct known_model {
  model_spec spec;
  model_state state = model_state::absent;
  std::string reason;                          // why the last load failed; empty: it did not
  std::vector<std::string> devices;            // of its places, or of those that are loading
  std::vector<std::size_t> hosts;              // of its places, as indices of the service's hosts
  std::shared_ptr<const served_model> served;  // null unless the state is ready or draining
  // Of a model that sleeps or is being woken: tokenizer, template and, at level host, its places. Of one that
  // a worker could load: tokenizer and template. Else null.
  std::shared_ptr<const served_model> sleeper;
  std::optional<sleep_level> level;  // set where the model sleeps or is being woken here
  model_bytes predicted;
  // What outlives an unload: counts of all its loads. `ended` is never null, `past` is of engines that are
  // gone.
  std::shared_ptr<ended_jobs> ended = std::make_shared<ended_jobs>();
  core::engine_totals past;
  std::shared_ptr<const load_progress> progress;  // of the last load; null: there was none
  bool far = false;                               // it runs in other processes, if anywhere
  bool on_demand = false;  // of such a model that is not ready: a worker of the fleet could load it
  std::uint64_t loads = 0, load_failures = 0;     // that ended well; that failed
  std::optional<core::duration> last_load;        // how long the last one that ended well took
  std::uint64_t sleeps = 0, wakes = 0, nap_failures = 0;  // that ended well; of either that failed
  std::optional<core::duration> last_wake;  // at level host: how long the last one took that ended well
  std::uint64_t asleep_bytes = 0;           // of host memory, held for its sleep
  std::vector<std::uint64_t> pool_pages;    // of each place that was loaded, also while it sleeps
  // How often pools of this model gave way and grew, and the pages that all those changes gave and took.
  std::uint64_t gave_way = 0, grew = 0, pages_given = 0, pages_taken = 0;
  std::shared_ptr<model_use> use = std::make_shared<model_use>();  // never null
  // What checks and tokenizes requests: also while it sleeps. Null: it was not loaded.
  const std::shared_ptr<const served_model>& texts() const noexcept { return served ? served : sleeper; }
  // What one of its places takes of its device now. REQUIRES: texts() has the place
  memory_use use_of(std::size_t place) const;
  std::uint64_t kv_tokens_of(std::size_t place) const;
  std::vector<std::string> was_on;        // the devices of the places that it had last
  core::time_point began{}, failed_at{};  // when its jobs were last let in; when its last load failed
};

// The names that stand for models, each with the name of its model, which need not be known.
using model_aliases = std::map<std::string, std::string, std::less<>>;

class model_list {
 public:
  explicit model_list(model_aliases aliases = {}) : aliases_(std::move(aliases)) {}

  using model_ptr = std::shared_ptr<const served_model>;
  using catalogue = std::vector<model_ptr>;
  struct snapshot {
    std::uint64_t version = 0;       // counts the calls of publish()
    std::vector<known_model> known;  // in the order in which their names came
    catalogue served;                // in the order of their loads
    core::engine_totals past;        // of engines of models that are forgotten
    std::uint64_t past_ended = 0;    // jobs of these models
    double load_rate = 0;            // bytes a second of the last loads; 0: none was measured
  };
  using picture = std::shared_ptr<const snapshot>;

  // Replaces the registry's list, and tells those that follow it. `next.version` is set here.
  void publish(snapshot next);
  // The same for the models that run in other processes.
  void publish_far(std::vector<known_model> all);
  // Declares that all models of the start are loaded. Later loads change nothing about that.
  void set_started() { started_ = true; }
  bool started() const { return started_; }

  picture look() const;  // never null
  // The models that are served, in the order of their loads; never null.
  std::shared_ptr<const catalogue> models() const;
  // The one of `all` that this engine runs; null if none is there.
  static model_ptr at(const catalogue& all, engine_id engine);
  const model_aliases& aliases() const noexcept { return aliases_; }
  // The name of the model that `name` stands for; `name` itself where it is no alias.
  std::string_view behind(std::string_view name) const {
    const auto at = aliases_.find(name);
    return at == aliases_.end() ? name : std::string_view(at->second);
  }

  // The model called `name`, or that an alias of this name stands for. An empty name finds the only model
  // that is not absent, or runs in other processes. Errors: unavailable where the model is not ready,
  // model_not_found.
  core::result<model_ptr> find(std::string_view name) const;

  // The same for work on texts, which a model that sleeps has all that is needed for.
  core::result<model_ptr> find_texts(std::string_view name) const;

  // The model called `name`, or that an alias of this name stands for, however it stands. An empty name finds
  // the only one that is not absent. It lives as long as `all`. Error: model_not_found.
  core::result<const known_model*> known(const snapshot& all, std::string_view name) const;
  // How long the load of a model takes, or what is left of one under way: by its bytes and the rate of the
  // last loads.
  static core::duration predicted_load(const snapshot& all, const known_model& m);
  // How long a wake from the host takes: as the last one, or by the model's bytes.
  static core::duration predicted_wake(const known_model& m);

  // Calls `changed` on `ex` after each publish(), until the returned object is destroyed. Several changes may
  // be one call.
  std::shared_ptr<void> follow(executor ex, std::function<void()> changed);

 private:
  struct follower {
    executor ex;
    std::function<void()> changed;
    std::atomic<bool> told{false};  // a call is on its way
  };
  void publish_both();  // under lock_

  const model_aliases aliases_;
  mutable std::mutex lock_;
  snapshot own_;                  // of the registry
  std::vector<known_model> far_;  // of the fleet
  picture now_ = std::make_shared<snapshot>();
  std::vector<std::weak_ptr<follower>> followers_;
  std::atomic<bool> started_{false};
};

}  // namespace weir::actors
