#include "actors/fleet/far_demand.h"

#include <utility>

#include "core/fleet/order_frame.h"

namespace weir::actors::fleet {

namespace wire = core::fleet;
using core::errc;
using answered = enum bus::answer::how;

namespace {

constexpr core::duration rests_for = std::chrono::seconds(10);  // as the worker's registry does
// A worker that died may have another in its place soon.
constexpr core::duration alone_for = std::chrono::seconds(10);

core::error nobody_loads(const std::string& model) {
  auto e =
      core::make_error(errc::unavailable, "no worker of the fleet has {} now, and none could load it", model);
  e.param = "model";
  e.retry_after_ms = least_retry_ms;
  return e;
}

}  // namespace

std::map<std::string, core::error> far_demand::look_after(const std::set<std::string>& for_jobs) {
  std::map<std::string, core::error> lost;
  if (idle() && for_jobs.empty()) return lost;
  const auto now = p_.time.now();
  line_.tidy(now, [&](const model_wish& w) { return late_for(p_.list, w, now); });
  for (const auto& model : p_.view.models()) {
    const auto rests = rests_.find(model);
    const bool jobs_ask = for_jobs.contains(model) && (rests == rests_.end() || now >= rests->second);
    const auto why = look_at(model, jobs_ask);
    if (!why) continue;
    loads_.erase(model);
    rests_[model] = now + rests_for;
    line_.refuse(model, *why);
    lost.emplace(model, *why);
  }
  return lost;
}

std::optional<core::error> far_demand::look_at(const std::string& model, bool for_jobs) {
  const bool open = p_.view.is_open(model);
  if (open) let_in(model);
  auto at = loads_.find(model);
  if (open || (!for_jobs && !line_.wants(model))) {
    if (at == loads_.end()) return std::nullopt;
    leave(model, at->second);
    loads_.erase(at);
    return std::nullopt;
  }
  if (p_.to.state() != bus::link::up) return std::nullopt;  // nobody can be asked; who waits for long is late
  auto& l = at == loads_.end() ? loads_[model] : at->second;
  if (auto why = choose(model, l)) return why;
  if (!l.worker.empty() && !l.asking && p_.time.now() >= l.ask_at) ask(model, l);
  return std::nullopt;
}

void far_demand::let_in(const std::string& model) {
  if (!line_.wants(model)) return;
  const auto all = p_.list.look();
  const auto known = p_.list.known(*all, model);
  if (!known || !(*known)->served) return;
  line_.let_in(model, [&](const model_wish& w) -> std::optional<model_way> {
    auto way = (*known)->use->enter(p_.time.now(), w.stay);
    if (!way) return std::nullopt;
    return model_way{(*known)->served, std::move(way)};
  });
}

// Chooses the worker to ask. A worker that is asked is left where it could not load the model any more, or
// where another one loads it already. Returns an error where no worker can be asked.
std::optional<core::error> far_demand::choose(const std::string& model, load& l) {
  if (!l.worker.empty() && !p_.view.could_load(l.worker, model)) leave(model, l);
  const auto best = p_.view.loader_of(model, l.tried);
  if (best && *best != l.worker && (l.worker.empty() || p_.view.loads_already(*best, model))) {
    leave(model, l);
    l.worker = *best;
    l.ask_at = p_.time.now();
    ++p_.counts.loads;
  }
  if (!l.worker.empty()) {
    l.alone.reset();
    return std::nullopt;
  }
  if (l.why) return l.why;
  if (!l.alone) l.alone = p_.time.now();
  if (p_.time.now() - *l.alone < alone_for) return std::nullopt;
  return nobody_loads(model);
}

// A worker that does not hear it drops the wish after a while.
void far_demand::leave(const std::string& model, load& l) {
  if (!l.worker.empty() && l.number)
    p_.to.publish(p_.subjects.control_of(l.worker),
                  wire::frame_of(wire::load_wish{*l.number, p_.gateway, model, true}));
  l.worker.clear();
  l.number.reset();
  l.asking = false;
  ++l.asked;
}

void far_demand::ask(const std::string& model, load& l) {
  l.asking = true;
  const auto frame = l.number ? wire::frame_of(wire::load_wish{*l.number, p_.gateway, model, false})
                              : wire::frame_of(wire::permit_wish());
  p_.to.ask(p_.subjects.control_of(l.worker), frame, p_.options.answer_within, p_.ex,
            [weak = weak_from_this(), model, asked = l.asked](bus::answer a) {
              if (const auto self = weak.lock()) self->on_answer(model, asked, a);
            });
}

// No answer in time: the worker is asked again, for as long as its boards come.
void far_demand::on_answer(const std::string& model, std::uint64_t asked, const bus::answer& a) {
  const auto at = loads_.find(model);
  if (at == loads_.end() || at->second.asked != asked) return;
  load& l = at->second;
  l.asking = false;
  if (a.how == answered::nobody_there) {
    l.tried.push_back(l.worker);
    l.number.reset();
    return leave(model, l);
  }
  if (a.how != answered::came) return;
  if (const auto permit = wire::read_permit(a.bytes); permit && !l.number) {
    l.number = permit->number;
    return ask(model, l);
  }
  const auto frame = wire::read_control(a.bytes);
  const auto* news = frame ? std::get_if<wire::load_news>(&*frame) : nullptr;
  if (!news || news->number != l.number) return void(++p_.counts.broken);
  on_news(l, *news);
}

void far_demand::on_news(load& l, const wire::load_news& n) {
  switch (n.now) {
    case wire::load_stand::waits:
    case wire::load_stand::ready:  // its board comes
      l.ask_at = p_.time.now() + p_.options.pulse_every;
      break;
    case wire::load_stand::unknown:  // the permit was too old, or the worker has not heard of the wish for
                                     // long
      l.number.reset();
      break;
    case wire::load_stand::refused:
      ++p_.counts.loads_refused;
      l.tried.push_back(std::exchange(l.worker, {}));
      l.why = n.why;
      l.number.reset();
      break;
  }
}

void far_demand::stop() {
  for (auto& [model, l] : loads_) leave(model, l);
  loads_.clear();
  line_.refuse_all(core::make_error(errc::unavailable, "the gateway has ended"));
}

}  // namespace weir::actors::fleet
