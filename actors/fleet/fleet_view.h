// fleet_view.h — the workers of a cell as a gateway sees them: their boards, who lives, and the places that
// they are for the gateway's models.
//
// Each engine of a living worker that runs a model which the gateway knows is a place of that model. The view
// alone publishes these models in the service's list. A model without an open place is published as one that
// could be loaded, where a worker's board says so (fleet_loads.cpp). A board moves the admission of its
// places: how fast they are, and which jobs they have beside this gateway's. The worker of this process is
// one of the workers: jobs that have to move may go there. As a place of the service it is not published,
// since its engines are places already.
//
// Thread safety: its gateway's executor.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "actors/fleet/far_model.h"
#include "actors/fleet/far_port.h"
#include "actors/fleet/gateway_side.h"
#include "actors/fleet/per_second.h"
#include "actors/model_list.h"
#include "core/clock.h"
#include "core/fleet/fleet_board.h"
#include "core/fleet/landmarks.h"
#include "core/incidents.h"

namespace weir::actors::fleet {

class fleet_view {
 public:
  // `seen` is told of workers whose model is another one than the gateway's. Both must outlive the view.
  fleet_view(model_list& list, core::incidents& seen, std::vector<far_model> models, const gateway_options& o,
             std::string self, std::function<std::shared_ptr<engine_port>(far_engine)> make_port);

  // A board came; true where its worker hangs, or has to be left, since this board.
  bool see(core::fleet::fleet_board b, core::time_point now);

  // The prefix cache of an engine has changed. News of an engine that no board has named are passed over.
  void see(const core::fleet::landmark_news& n);
  // Tokens that jobs were sent to places for, since these are known to have them.
  std::uint64_t promised() const noexcept { return promised_->load(std::memory_order_relaxed); }

  struct verdict {
    std::vector<std::string> suspected;  // to be asked whether they live
    std::vector<std::string> dead;       // they were removed
  };
  // Who was silent for too long.
  verdict judge(core::time_point now);
  // Nobody listens under the worker's subjects.
  void bury(const std::string& worker);
  // The bus is down: nobody's silence means anything. A service with engines of its own sends newcomers to
  // these, until boards come again.
  void forgive(core::time_point now);

  struct place {
    far_engine where;
    std::shared_ptr<const model_place> seen;
    std::shared_ptr<core::fleet::known_landmarks> landmarks = {};  // what `seen->known` is made of
    bool shut = false;  // no new job goes there, as the last board says
    std::uint64_t arithmetic = 0;  // its class; 0: not known
  };
  // The open places of a model at ready workers.
  std::vector<place> places_of(const std::string& model) const;
  // Whether there is any.
  bool is_open(const std::string& model) const;
  // That place, whether it is open or not; nullopt: the gateway does not know it.
  std::optional<place> place_at(const far_engine& where) const;
  bool has(const std::string& worker) const { return workers_.contains(worker); }
  // Whether a living worker that takes jobs has the model with arithmetic of this class.
  bool has_class(const std::string& model, std::uint64_t arithmetic) const;
  std::vector<std::string> names() const;

  bool leaves(const std::string& worker) const;

  // ---- models that no worker has ready (fleet_loads.cpp)

  // Whether that worker takes no job of the model, and could load it.
  bool could_load(const std::string& worker, const std::string& model) const;
  // Whether it loads it already, or wakes it, or has it wished for.
  bool loads_already(const std::string& worker, const std::string& model) const;
  // Whether any worker could.
  bool could_load(const std::string& model) const;
  // Which worker is to load it (choose_loader.h); nullopt: none that is not in `besides`.
  std::optional<std::string> loader_of(const std::string& model,
                                       const std::vector<std::string>& besides) const;
  std::vector<std::string> models() const;

  std::vector<seen_worker> look(core::time_point now) const;
  // A model whose files came from workers, and the digest of these: engines of workers that say another one
  // are no places of it. Its places are there at once.
  void add(far_model m, std::string files);
  // Models of workers that the gateway does not have, each with the digest that most workers have of it.
  std::map<std::string, std::string> wanted_files() const;
  // The workers that have these files.
  std::vector<std::string> workers_with(const std::string& model, const std::string& files) const;

  // Shows all models, none of them with a place.
  void publish();

 private:
  struct worker {
    core::fleet::fleet_board board;
    core::time_point heard{};
    bool suspected = false, hangs = false, warned = false;
    std::vector<place> places;
  };
  std::shared_ptr<const model_place> make_place(const core::fleet::board_model& m, const far_engine& where,
                                                std::size_t ordinal);
  std::shared_ptr<known_prefixes> prefixes_of(const core::fleet::board_model& m, const far_engine& where);
  bool forget_one_without_models();
  bool take_places(worker& w);
  // True: another set of places is open to new jobs than before.
  bool move_admission(worker& w);
  static const core::fleet::known_model* loads(const worker& w, const std::string& model);
  // How a model stands at those workers that could load it.
  struct standing {
    bool on_demand = false;
    model_state state = model_state::absent;
    std::uint64_t bytes = 0;  // 0: not known
    std::string reason;
    friend bool operator==(const standing&, const standing&) = default;
  };
  standing standing_of(const std::string& model) const;
  // True: a model stands otherwise than when this was last asked.
  bool standings_changed();
  void show_standing(known_model& k, const far_model& m) const;
  bool is_known(worker& w, const core::fleet::board_model& m);

  model_list& list_;
  core::incidents& seen_;
  std::vector<far_model> models_;
  std::map<std::string, std::uint64_t> digests_;  // of models_
  std::map<std::string, std::string> files_;      // of those whose files came from workers
  const gateway_options& options_;
  const std::string self_;
  const std::function<std::shared_ptr<engine_port>(far_engine)> make_port_;
  std::map<std::string, std::shared_ptr<model_use>> uses_;  // of models_
  std::map<std::string, standing> stand_;                   // of models_, as published
  const known_prefixes::counter promised_ = std::make_shared<std::atomic<std::uint64_t>>(0);
  std::map<std::string, worker> workers_;
  per_second warnings_{1};    // of workers whose model has other tokens
  core::time_point heard_{};  // when a board was last seen
};

}  // namespace weir::actors::fleet
