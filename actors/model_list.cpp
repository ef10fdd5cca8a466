#include "actors/model_list.h"

#include <algorithm>

#include "core/shortened.h"

namespace weir::actors {

void model_list::add(model_ptr m) {
  std::lock_guard hold(lock_);
  auto next = std::make_shared<catalogue>(*models_);
  next->push_back(std::move(m));
  models_ = std::move(next);
}

void model_list::complete() {
  std::lock_guard hold(lock_);
  loading_ = false;
}

bool model_list::loading() const {
  std::lock_guard hold(lock_);
  return loading_;
}

std::shared_ptr<const model_list::catalogue> model_list::models() const {
  std::lock_guard hold(lock_);
  return models_;
}

model_list::model_ptr model_list::at(const catalogue& all, engine_id engine) {
  const auto found = std::ranges::find(all, engine, [](const model_ptr& m) { return m->engine; });
  return found == all.end() ? nullptr : *found;
}

core::result<model_list::model_ptr> model_list::find(std::string_view name) const {
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
