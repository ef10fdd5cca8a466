#include "actors/fleet/fleet_view.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

#include <algorithm>

#include "actors/fleet/board_numbers.h"

namespace weir::actors::fleet {

namespace wire = core::fleet;
using core::time_point;
using door = admission_control::door;

namespace {

constexpr std::size_t most_workers = 1024;

// The worker's own limits have the last word: those of the gateway bound what it sends to one place.
core::queue_settings limits_of(const wire::board_model& m) {
  core::queue_settings q;
  q.queue = m.queue;
  return q;
}

// All gateways give an engine the same number, so that equal prompts of different gateways meet (pick.h). The
// engines of this process have small numbers (mailbox_port.h).
engine_id far_id(const far_engine& where, std::size_t ordinal) {
  const auto h = XXH3_64bits_withSeed(where.worker.data(), where.worker.size(),
                                      XXH3_64bits_withSeed(where.model.data(), where.model.size(), ordinal));
  return static_cast<engine_id>(h | std::uint64_t{1} << 63);
}

core::error says(const char* what, const std::string& model) {
  return core::make_error(core::errc::unavailable, "the worker of {} {}", model, what);
}

}  // namespace

fleet_view::fleet_view(model_list& list, core::incidents& seen, std::vector<far_model> models,
                       const gateway_options& o, std::string self,
                       std::function<std::shared_ptr<engine_port>(far_engine)> make_port)
    : list_(list),
      seen_(seen),
      models_(std::move(models)),
      options_(o),
      self_(std::move(self)),
      make_port_(std::move(make_port)) {
  for (const auto& m : models_) {
    digests_.emplace(m->name, digest_of(*m));
    uses_.emplace(m->name, std::make_shared<model_use>());
  }
}

// Whether an engine runs a model of the gateway's.
bool fleet_view::is_known(worker& w, const wire::board_model& m) {
  const auto own = digests_.find(m.name);
  if (own == digests_.end() || m.batch == 0 || m.context == 0) return false;
  const auto files = files_.find(m.name);
  const bool other_files = files != files_.end() && !m.files.empty() && files->second != m.files;
  if (own->second == m.digest && !other_files) return true;
  if (!std::exchange(w.warned, true) && warnings_.take(heard_))
    seen_.tell("the fleet", fmt::format("the worker {} has another model under the name {}: other {}",
                                        w.board.worker, m.name, other_files ? "files" : "tokens"));
  return false;
}

bool fleet_view::see(wire::fleet_board b, time_point now) {
  auto at = workers_.find(b.worker);
  if (at == workers_.end()) {
    if (workers_.size() >= most_workers && !forget_one_without_models()) return false;
    at = workers_.emplace(b.worker, worker()).first;
  } else if (b.number < at->second.board.number) {
    return false;  // it was overtaken
  }
  worker& w = at->second;
  w.heard = heard_ = now;
  w.suspected = false;
  const bool hung = w.hangs, left = w.board.state == wire::worker_state::leaving;
  w.board = std::move(b);
  w.hangs = std::chrono::milliseconds(w.board.silent_ms) > options_.hung_after;
  const bool other_places = take_places(w), others_open = move_admission(w);
  if (standings_changed() || other_places || others_open) publish();
  return (w.hangs && !hung) || (w.board.state == wire::worker_state::leaving && !left);
}

void fleet_view::see(const wire::landmark_news& n) {
  const auto w = workers_.find(n.worker);
  if (w == workers_.end()) return;
  for (auto& p : w->second.places)
    if (p.where.engine == n.engine && p.landmarks->take(n))
      p.seen->known->set(std::make_shared<const wire::landmark_list>(p.landmarks->all));
}

// Anybody who may publish boards can invent workers. Those keep nobody out that has a model of the gateway's.
bool fleet_view::forget_one_without_models() {
  const auto one = std::ranges::find_if(workers_, [](const auto& w) { return w.second.places.empty(); });
  if (one == workers_.end()) return false;
  workers_.erase(one);
  return true;
}

// True: there is another set of places than before.
bool fleet_view::take_places(worker& w) {
  std::vector<place> next;
  for (const auto& m : w.board.models) {
    if (!is_known(w, m)) continue;
    const auto same = [&](const place& p) { return p.where.engine == m.engine && p.where.model == m.name; };
    if (std::ranges::any_of(next, same)) continue;
    if (const auto there = std::ranges::find_if(w.places, same); there != w.places.end()) {
      next.push_back(*there);
      next.back().arithmetic = m.arithmetic;
      continue;
    }
    const far_engine where{w.board.worker, m.name, m.engine};
    const auto of_model = [&](const place& p) { return p.where.model == m.name; };
    next.push_back({where,
                    make_place(m, where, static_cast<std::size_t>(std::ranges::count_if(next, of_model))),
                    std::make_shared<wire::known_landmarks>(), false, m.arithmetic});
  }
  const bool changed = !std::ranges::equal(next, w.places, {}, &place::seen, &place::seen);
  for (const auto& old : w.places)
    if (std::ranges::find(next, old.seen, &place::seen) == next.end() && !could_load(old.where.model))
      old.seen->admission->close(door::device, says("has it no more", old.where.model));
  w.places = std::move(next);
  return changed;
}

std::shared_ptr<const model_place> fleet_view::make_place(const wire::board_model& m, const far_engine& where,
                                                          std::size_t ordinal) {
  auto p = std::make_shared<model_place>();
  p->engine = far_id(where, ordinal);
  p->device = m.device;
  p->far = true;
  p->context = m.context;
  p->kv_tokens = m.kv_tokens;
  p->admission = std::make_unique<admission_control>(m.batch, limits_of(m));
  p->port = make_port_(where);
  p->known = prefixes_of(m, where);
  return p;
}

// What is known of an engine's prefix cache. For an engine of this process that is the object of the
// service's own place, so that the service chooses by it, too.
std::shared_ptr<known_prefixes> fleet_view::prefixes_of(const wire::board_model& m, const far_engine& where) {
  if (where.worker == options_.own_worker) {
    const auto all = list_.models();
    for (const auto& model : *all)
      for (const auto& p : model->places)
        if (!p->far && static_cast<std::uint64_t>(p->engine) == where.engine && p->known) return p->known;
  }
  return std::make_shared<known_prefixes>(m.kv_type, promised_);
}

// Where another worker could load the model, what is shut here takes no new request, and jobs that come all
// the same wait for that load: their way is not closed.
bool fleet_view::move_admission(worker& w) {
  bool changed = false;
  const auto own = w.board.gateways.find(self_);
  const std::uint32_t own_jobs = own == w.board.gateways.end() ? 0 : own->second.jobs;
  const bool drains = w.board.state != wire::worker_state::ready;
  for (auto& p : w.places) {
    const auto m = std::ranges::find_if(
        w.board.models, [&](const auto& x) { return x.engine == p.where.engine && x.name == p.where.model; });
    auto& a = *p.seen->admission;
    take_numbers(*m, own_jobs, a);
    const bool shut = drains || w.hangs || m->leaves || !m->closed.empty();
    changed |= std::exchange(p.shut, shut) != shut;
    const bool closes = !could_load(p.where.model);
    if (drains && closes)
      a.close(door::drain, says("is being drained", p.where.model));
    else
      a.reopen(door::drain);
    if (!m->closed.empty() && closes)
      a.close(door::device, core::make_error(core::errc::unavailable, "{}", m->closed));
    else if (w.hangs && closes)
      a.close(door::device, says("hangs", p.where.model));
    else
      a.reopen(door::device);
  }
  return changed;
}

fleet_view::verdict fleet_view::judge(time_point now) {
  verdict out;
  for (auto& [name, w] : workers_) {
    const core::duration silent = now - w.heard;
    if (silent > options_.dead_after) {
      out.dead.push_back(name);
    } else if (silent > options_.probe_after && !w.suspected) {
      w.suspected = true;
      out.suspected.push_back(name);
    }
  }
  for (const auto& name : out.dead) bury(name);
  return out;
}

void fleet_view::bury(const std::string& name) {
  const auto at = workers_.find(name);
  if (at == workers_.end()) return;
  const auto places = std::move(at->second.places);
  const bool had = !places.empty();
  workers_.erase(at);
  for (const auto& p : places)
    if (!could_load(p.where.model)) p.seen->admission->close(door::device, says("is gone", p.where.model));
  if (standings_changed() || had) publish();
}

void fleet_view::forgive(time_point now) {
  for (auto& [name, w] : workers_) {
    w.heard = now;
    if (options_.own_worker.empty()) continue;
    for (const auto& p : w.places)
      p.seen->admission->close(door::device,
                               says("cannot be reached: the servers of NATS are down", p.where.model));
  }
}

std::vector<fleet_view::place> fleet_view::places_of(const std::string& model) const {
  std::vector<place> out;
  for (const auto& [name, w] : workers_)
    for (const auto& p : w.places)
      if (p.where.model == model && !p.shut && !w.suspected && !p.seen->admission->closed()) out.push_back(p);
  return out;
}

bool fleet_view::is_open(const std::string& model) const { return !places_of(model).empty(); }

bool fleet_view::has_class(const std::string& model, std::uint64_t arithmetic) const {
  if (arithmetic == 0) return false;
  const auto fits = [&](const place& p) { return p.where.model == model && p.arithmetic == arithmetic; };
  return std::ranges::any_of(workers_, [&](const auto& w) {
    return w.second.board.state == wire::worker_state::ready && !w.second.hangs &&
           std::ranges::any_of(w.second.places, fits);
  });
}

std::optional<fleet_view::place> fleet_view::place_at(const far_engine& where) const {
  const auto w = workers_.find(where.worker);
  if (w == workers_.end()) return std::nullopt;
  const auto& all = w->second.places;
  const auto at = std::ranges::find_if(
      all, [&](const place& p) { return p.where.engine == where.engine && p.where.model == where.model; });
  return at == all.end() ? std::nullopt : std::optional(*at);
}

std::vector<std::string> fleet_view::names() const {
  std::vector<std::string> out;
  for (const auto& [name, w] : workers_) out.push_back(name);
  return out;
}

bool fleet_view::leaves(const std::string& name) const {
  const auto at = workers_.find(name);
  return at != workers_.end() && at->second.board.state == wire::worker_state::leaving;
}

std::vector<seen_worker> fleet_view::look(time_point now) const {
  std::vector<seen_worker> out;
  for (const auto& [name, w] : workers_) out.push_back({w.board, now - w.heard, w.suspected || w.hangs});
  return out;
}

void fleet_view::publish() {
  std::vector<known_model> all;
  for (const auto& m : models_) {
    known_model& k = all.emplace_back();
    k.spec.name = m->name;
    k.far = true;
    k.ended = m->ended;
    k.use = uses_.at(m->name);
    k.state = model_state::failed;
    k.reason = "no worker of the fleet has it";
    const bool loads = could_load(m->name);
    auto served = std::make_shared<served_model>(*m);
    served->context = 0;
    for (const auto& [name, w] : workers_)
      for (const auto& p : w.places)
        if (p.where.model == m->name && !(p.shut && loads) && name != options_.own_worker) {
          served->places.push_back(p.seen);
          served->context = std::max(served->context, p.seen->context);
          k.devices.push_back(p.seen->device);
        }
    if (served->places.empty()) {
      show_standing(k, m);
      continue;
    }
    k.state = model_state::ready;
    k.reason.clear();
    k.served = std::move(served);
  }
  list_.publish_far(std::move(all));
}

}  // namespace weir::actors::fleet
