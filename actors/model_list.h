// model_list.h — the list of the models that are served.
//
// Thread safety: add() and add_place() from one thread at a time; everything else from any thread. Both
// replace the whole list, so a reader never waits for a load.
#pragma once

#include <memory>
#include <mutex>
#include <string_view>
#include <vector>

#include "actors/served_model.h"
#include "core/error.h"

namespace weir::actors {

class model_list {
 public:
  using model_ptr = std::shared_ptr<const served_model>;
  using catalogue = std::vector<model_ptr>;

  // Appends a model that was loaded.
  void add(model_ptr m);
  // Adds a place to the model called `name`. REQUIRES: there is one.
  void add_place(const std::string& name, std::shared_ptr<const model_place> p);
  // Declares that all models are loaded.
  void complete();
  bool loading() const;  // complete() was not called yet
  // The models in the order of their loads; never null.
  std::shared_ptr<const catalogue> models() const;

  // The one of `all` that this engine runs; null if none is there.
  static model_ptr at(const catalogue& all, engine_id engine);
  // The model called `name`; an empty name finds the only model there is. Errors: unavailable while models
  // are loading, model_not_found afterwards.
  core::result<model_ptr> find(std::string_view name) const;

 private:
  mutable std::mutex lock_;
  std::shared_ptr<const catalogue> models_ = std::make_shared<catalogue>();
  bool loading_ = true;
};

}  // namespace weir::actors
