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

void model_list::add_place(const std::string& name, std::shared_ptr<const model_place> p) {
  std::lock_guard hold(lock_);
  auto next = std::make_shared<catalogue>(*models_);
  for (auto& m : *next) {
    if (m->name != name) continue;
    auto more = std::make_shared<served_model>(*m);
    more->context = std::min(more->context, p->context);
    more->places.push_back(std::move(p));
    m = std::move(more);
    break;
  }
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
  const auto runs = [&](const model_ptr& m) {
    return std::ranges::any_of(m->places, [&](const auto& p) { return p->engine == engine; });
  };
  const auto found = std::ranges::find_if(all, runs);
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
