// The class of a job's arithmetic: which workers go on with the tokens of an undisturbed job.
#include "actors/fleet/far_owner.h"
#include "core/fleet/pick_class.h"

namespace weir::actors::fleet {

// A worker has taken the job. `told`: its class, as its answer says; 0: as its board says. A job without
// tokens begins on whatever class takes it.
void far_owner::note_class(far_job& j, std::uint64_t told) {
  const auto place = told == 0 ? view_.place_at(*j.where) : std::nullopt;
  const auto now = place ? place->arithmetic : told;
  if (j.received.empty())
    j.began_on = now;
  else if (now != j.runs_on)
    ++now_.between_classes;
  j.runs_on = now;
}

// A job that another gateway had: the frame that its worker has says on which class it began, if it had moved
// before. Else it began where it runs.
void far_owner::begin_class_of_adopted(far_job& j, std::uint64_t began_on) {
  const auto place = view_.place_at(*j.where);
  j.runs_on = place ? place->arithmetic : 0;
  j.began_on = j.received.empty() ? j.runs_on : began_on;
}

// Whether all that the job could move to computes otherwise. While a worker of its class lives the job waits
// for that one, and while there is no worker at all, for whoever comes.
bool far_owner::may_not_change_class(const far_job& j) const {
  return options_.strict_class && !j.received.empty() && !view_.has_class(j.model(), j.began_on) &&
         !view_.places_of(j.model()).empty();
}

// The places that the job may go to, the best one first.
std::vector<std::uint32_t> far_owner::order_of(const far_job& j,
                                               const std::vector<fleet_view::place>& places) const {
  std::vector<core::place_load> loads;
  std::vector<std::uint64_t> classes;
  prompt_landmarks landmarks(j.job);
  for (const auto& p : places) {
    loads.push_back(p.seen->admission->load(static_cast<std::uint64_t>(p.seen->engine),
                                            landmarks.known_to(p.seen->known.get())));
    classes.push_back(p.arithmetic);
  }
  const bool moves = !j.received.empty();
  return core::pick_in_class(loads, classes, moves ? j.began_on : 0, moves && options_.strict_class,
                             static_cast<std::uint32_t>(j.job.prompt.size()), j.job.id.lo);
}

}  // namespace weir::actors::fleet
