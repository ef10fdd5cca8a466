// Models of workers that a gateway has no files of.
#include "actors/fleet/fleet_view.h"

namespace weir::actors::fleet {

void fleet_view::add(far_model m, std::string files) {
  if (digests_.contains(m->name)) return;
  digests_.emplace(m->name, digest_of(*m));
  files_.emplace(m->name, std::move(files));
  uses_.emplace(m->name, std::make_shared<model_use>());
  models_.push_back(std::move(m));
  for (auto& [name, w] : workers_) {
    take_places(w);
    move_admission(w);
  }
  standings_changed();
  publish();
}

std::map<std::string, std::string> fleet_view::wanted_files() const {
  std::map<std::string, std::map<std::string, unsigned>> found;
  for (const auto& [name, w] : workers_)
    for (const auto& m : w.board.models)
      if (!m.files.empty() && !m.name.empty() && !digests_.contains(m.name)) ++found[m.name][m.files];
  std::map<std::string, std::string> out;
  for (const auto& [model, digests] : found) {
    unsigned most = 0;
    for (const auto& [digest, workers] : digests)
      if (workers > most) most = workers, out[model] = digest;
  }
  return out;
}

std::vector<std::string> fleet_view::workers_with(const std::string& model, const std::string& files) const {
  std::vector<std::string> out;
  for (const auto& [name, w] : workers_)
    for (const auto& m : w.board.models)
      if (m.name == model && m.files == files) {
        out.push_back(name);
        break;
      }
  return out;
}

}  // namespace weir::actors::fleet
