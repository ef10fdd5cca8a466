// model_host.h — which models there are. Whether one takes a job is decided at its door (way_in.h).
//
// Thread safety: add() from one thread at a time; everything else from any thread. The list is replaced
// whole, so a reader never waits for a load.
#pragma once

#include <memory>
#include <mutex>
#include <string_view>
#include <vector>

#include "actors/served_model.h"
#include "core/error.h"

namespace weir::actors {

class model_host {
 public:
  using model_ptr = std::shared_ptr<const served_model>;
  using catalogue = std::vector<model_ptr>;

  void add(model_ptr m);
  // Every model is there: from now on an unknown name is an error, not a matter of waiting.
  void complete();
  bool loading() const;
  std::shared_ptr<const catalogue> models() const;

  // The model called `name`; the only one where the name is empty.
  core::result<model_ptr> find(std::string_view name) const;

 private:
  mutable std::mutex lock_;  // guards one pointer copy
  std::shared_ptr<const catalogue> models_ = std::make_shared<catalogue>();
  bool loading_ = true;
};

}  // namespace weir::actors
