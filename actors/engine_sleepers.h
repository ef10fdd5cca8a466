// engine_sleepers.h — the engines of a host that sleep, or are on their way there or back.
//
// The owner gives an engine that has no job out, and takes it in again once it is awake: jobs find no engine
// meanwhile, as after an unload. The loader's thread puts engines to sleep and wakes them, so that no other
// engine waits for that. An engine keeps its identity, its place and its counts.
//
// Thread safety: the owner's thread only.
#pragma once

#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "actors/engine_place.h"
#include "actors/loader.h"
#include "actors/messages.h"

namespace weir::actors {

class engine_sleepers {
 public:
  // Takes in an engine that has no job. REQUIRES: it is not null
  void add(engine_place e);
  bool has(engine_id id) const noexcept { return at(id) != nullptr; }
  // The model that an engine was made from. REQUIRES: has(id)
  const model_spec& spec_of(engine_id id) const { return at(id)->place.spec; }

  // Gives an engine out, for the loader; null: it is on its way already, or broken. REQUIRES: has(id)
  std::unique_ptr<core::engine> give_out(engine_id id);
  // The loader is done with an engine. Returns the engine where it is awake: it goes back to the owner.
  // nullopt: it sleeps; or is broken, and can only be closed; or was closed meanwhile, and is destroyed by
  // `by`. `m.result` says what is wrong.
  std::optional<engine_place> take_back(nap_ended& m, loader& by);
  // Takes an engine out, for its end. `engine` of the place may be null. nullopt: it is not here.
  struct closed {
    std::unique_ptr<core::engine> engine;
    core::engine_totals totals;
  };
  std::optional<closed> close(engine_id id);

  // The device has failed: what engines had there is lost, and each can only be closed.
  void lose_all(loader& by);
  void set_share(engine_id id, double weight);
  // Adds a picture of each: with what it counted, and without pages on the device.
  void look(std::vector<engine_picture>& out) const;

 private:
  struct sleeper {
    engine_place place;  // its engine is null while the loader has it, and where it is broken
    engine_picture shown;
    bool away = false;  // the loader has it
    bool lost = false;  // the device failed meanwhile
  };
  const sleeper* at(engine_id id) const noexcept;
  sleeper* at(engine_id id) noexcept { return const_cast<sleeper*>(std::as_const(*this).at(id)); }
  engine_place take_out(sleeper& s);

  std::vector<sleeper> all_;
};

}  // namespace weir::actors
