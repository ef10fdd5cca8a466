#include "actors/model_host.h"

#include "core/outside.h"

namespace weir::actors {

void model_host::add(model_ptr m) {
  std::lock_guard hold(lock_);
  auto next = std::make_shared<catalogue>(*models_);
  next->push_back(std::move(m));
  models_ = std::move(next);
}

void model_host::complete() {
  std::lock_guard hold(lock_);
  loading_ = false;
}

bool model_host::loading() const {
  std::lock_guard hold(lock_);
  return loading_;
}

std::shared_ptr<const model_host::catalogue> model_host::models() const {
  std::lock_guard hold(lock_);
  return models_;
}

core::result<model_host::model_ptr> model_host::find(std::string_view name) const {
  const auto all = models();
  for (const auto& m : *all)
    if (m->name == name) return m;
  if (loading()) return core::make_error(core::errc::unavailable, "models are still loading");
  if (name.empty() && all->size() == 1) return all->front();
  core::error e;
  e.code = core::errc::model_not_found;
  e.param = "model";
  if (name.empty()) {
    e.message = "model is missing, and several are served:";
  } else {
    e.message = fmt::format("no model is called '{}'; there is", core::shortened(name));
  }
  for (const auto& m : *all) e.message += " " + m->name;
  return e;
}

}  // namespace weir::actors
