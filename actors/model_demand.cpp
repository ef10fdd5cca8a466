#include "actors/model_demand.h"

#include <algorithm>

#include "core/insist.h"
#include "core/memory/plan_text.h"

namespace weir::actors {

namespace asio = boost::asio;
using namespace registry_messages;
using core::errc;

namespace {

constexpr core::duration look_round_every = std::chrono::milliseconds(100);
constexpr core::duration look_up_again = std::chrono::seconds(5);  // other processes take memory, too
constexpr core::duration try_again = std::chrono::seconds(10);     // after a load that failed

std::uint32_t retry_ms(core::duration d) {
  const auto ms = std::chrono::duration_cast<std::chrono::milliseconds>(d).count();
  return static_cast<std::uint32_t>(std::clamp<std::int64_t>(ms, least_retry_ms, most_retry_ms));
}

// What requests are told when the load that they waited for is not done.
core::error not_loaded(const std::string& name, const core::error& why) {
  const bool room = why.code == errc::does_not_fit;
  auto e = core::make_error(room ? errc::does_not_fit : errc::unavailable, "{} could not be loaded: {}", name,
                            why.message);
  if (room) e.param = "model";
  e.retry_after_ms = retry_ms(try_again);
  return e;
}

}  // namespace

// ---- the line

void model_demand::begin_demand(const self_type& self) {
  clock_ = p_.time.make_timer(self.get_executor(),
                              [to = mail_] { core::insist([&] { to.tell(order(look_round())); }); });
  loads_for_.clear();
  set_clock();
}

bool model_demand::heard(order& o) {
  if (auto* w = std::get_if<wished>(&o.what)) {
    line_.take(std::move(w->what));
  } else if (const auto* g = std::get_if<grown>(&o.what)) {
    end_growth(*g);
  } else if (const auto* end = std::get_if<registry_messages::end_wishes>(&o.what)) {
    line_.refuse_all(end->why);
  } else if (!std::holds_alternative<look_round>(o.what)) {
    return false;
  }
  tidy();
  const auto* e = loads_for_.empty() ? nullptr : find(loads_for_);
  if (e && e->state == model_state::loading && progress_ && !line_.wants(loads_for_))
    progress_->unwanted = true;
  set_clock();
  return true;
}

void model_demand::tidy() {
  const auto now = p_.time.now();
  line_.tidy(now, [&](const model_wish& w) { return late_for(p_.list, w, now); });
}

void model_demand::let_in() {
  const auto now = p_.time.now();
  for (const auto& e : known_) {
    if (e.state != model_state::ready || !line_.wants(e.spec.name)) continue;
    line_.let_in(e.spec.name, [&](const model_wish& w) -> std::optional<model_way> {
      auto way = e.use->enter(now, w.stay);
      if (!way) return std::nullopt;
      return model_way{e.served, std::move(way)};
    });
  }
}

void model_demand::set_clock() {
  const auto now = p_.time.now();
  if (!line_.empty()) return clock_->set(now + look_round_every);
  auto next = core::time_point::max();
  for (auto& e : known_) {
    const auto until = idle_until(e);
    if (!until) continue;
    const auto soon =
        now + std::max<core::duration>(look_round_every,
                                       std::min<core::duration>(stay_of(e), std::chrono::seconds(1)));
    next = std::min(next, is_empty(e) ? std::max(*until, soon) : soon);
  }
  if (next != core::time_point::max()) clock_->set(next);
}

// ---- what the registry does between orders

asio::awaitable<void> model_demand::serve(self_type& self) {
  tidy();
  let_in();
  std::set<std::string> tried;
  while (!self.stopping()) {
    const auto* w = line_.oldest(tried);
    if (!w) break;
    const std::string name = w->model;
    tried.insert(name);
    if (auto* e = find(name)) {
      co_await growth_over(self);
      co_await try_load(self, *e);
    } else {
      line_.refuse(name, core::make_error(errc::model_not_found, "no model is called '{}' any more", name));
    }
    if (self.stopping()) co_return;
    tidy();
    let_in();
  }
  reopen();
  let_in();
  std::erase_if(looked_up_, [this](const auto& l) { return !line_.wants(l.first); });
  co_await settle_idle(self);
  if (self.stopping()) co_return;
  set_clock();
  if (line_.empty()) begin_growth(self);
}

asio::awaitable<void> model_demand::try_load(self_type& self, entry& e) {
  if (e.state == model_state::ready) co_return;  // the way is closed: it is to leave for another
  const bool failed = e.state == model_state::failed || (e.sleeper && !e.reason.empty());
  if (failed && p_.time.now() - e.failed_at < try_again) {
    core::error why;
    why.message = e.reason;
    co_return line_.refuse(e.spec.name, not_loaded(e.spec.name, why));
  }
  auto found = co_await options_for(self, e);
  if (self.stopping() || !line_.wants(e.spec.name)) co_return;
  if (!found) co_return line_.refuse(e.spec.name, not_loaded(e.spec.name, found.error()));
  for (const auto& o : *found) {
    if (!o.why.empty()) continue;
    const std::vector<leaving> nobody;
    co_return co_await load_wanted(self, e, o.on, nobody);
  }
  std::optional<exit_set> best;
  option* of = nullptr;
  option* busy = nullptr;
  for (auto& o : *found) {
    auto set = leave_for(o, on_the_way(e, o, true));
    if (set && (!best || set->cost < best->cost)) best = std::move(set), of = &o;
    if (!busy && leave_for(o, on_the_way(e, o, false))) busy = &o;
  }
  if (best) {
    const bool enough = co_await confirmed(self, e, *of, best->out);
    if (self.stopping() || !line_.wants(e.spec.name)) co_return;
    if (enough) co_return co_await load_wanted(self, e, of->on, best->out);
    looked_up_[e.spec.name].found = *found;  // with what the option lacks in fact
    co_return;
  }
  if (busy) co_return make_way(e, *busy);
  auto why = core::make_error(errc::does_not_fit, "{} and no other model can leave for {}",
                              found->front().why, e.spec.name);
  why.param = "model";
  why.retry_after_ms = retry_ms(try_again);
  line_.refuse(e.spec.name, why);
}

// Takes `out` down and loads the model; where that fails, all is as before.
asio::awaitable<void> model_demand::load_wanted(self_type& self, entry& e, std::vector<std::size_t> on,
                                                const std::vector<leaving>& out) {
  entries awake;
  for (const auto& o : out)
    if (o.how != exit::deepen) awake.push_back(o.who);
  for (auto* o : awake) o->use->close();
  if (!std::ranges::all_of(awake, [](entry* o) { return is_empty(*o); })) {
    for (auto* o : awake)  // a job came between the look and the close
      if (!closed_for_.contains(o->spec.name)) o->use->open();
    co_return;
  }
  busy_since_ = p_.time.now();
  what_ = e.spec.name + " is being loaded for requests";
  for (auto* o : awake) closed_for_.erase(o->spec.name);
  if (!awake.empty()) begin_drain(awake, {});
  loads_for_ = e.spec.name;
  const auto wrong = co_await exchange(self, out, e, e.spec, std::move(on));
  loads_for_.clear();
  // Where nobody waited any more, requests that came since begin another load.
  const bool failed = e.state == model_state::failed || (e.state == model_state::asleep && !e.reason.empty());
  if (wrong && !self.stopping() && failed) line_.refuse(e.spec.name, not_loaded(e.spec.name, *wrong));
}

// ---- where a model may go

std::vector<std::vector<std::size_t>> model_demand::placements(const entry& e) const {
  if (e.was_on.size() > 1) {
    load_order o;
    o.devices = e.was_on;
    const auto on = choose_hosts(o, p_.hosts, {}, {}, p_.most_models);
    if (on) return {*on};
  }
  std::vector<std::pair<std::size_t, std::size_t>> order;  // models, host
  for (std::size_t i = 0; i < p_.hosts.size(); ++i) order.emplace_back(awake_on(i), i);
  std::ranges::sort(order);
  std::vector<std::vector<std::size_t>> out;
  for (const auto& [models, host] : order) out.push_back({host});
  return out;
}

asio::awaitable<core::result<model_demand::options>> model_demand::options_for(self_type& self, entry& e) {
  auto& known = looked_up_[e.spec.name];
  const auto version = p_.list.look()->version;
  const auto now = p_.time.now();
  if (known.version == version && now - known.at < look_up_again) co_return known.found;
  options out;
  if (e.level == sleep_level::host) {
    out.push_back(look_at_wake(e));
    known.version = version;
    known.at = now;
    known.found = out;
    co_return out;
  }
  for (auto& on : placements(e)) {
    auto one = co_await look_at(self, e, on);
    if (!one) co_return one.error();
    out.push_back(std::move(*one));
  }
  known.version = version;
  known.at = now;
  known.found = out;
  co_return out;
}

asio::awaitable<core::result<model_demand::option>> model_demand::look_at(self_type& self, entry& e,
                                                                          std::vector<std::size_t> on) {
  option o;
  o.on = on;
  o.device = p_.hosts[on.front()]->device();
  const std::set<std::string> nobody;
  const auto made = co_await plan(self, steps_of(e.spec, on), nobody);
  if (!made) co_return made.error().fault;
  if (made->lacks) {
    o.device = made->lacks->device;
    o.lacks = std::max<std::uint64_t>(1, made->lacks->bytes);
    o.why = core::shortage_text(*made) + ",";
  }
  note_crowd(o);
  co_return o;
}

model_demand::option model_demand::look_at_wake(const entry& e) const {
  option o;
  o.on = e.hosts;
  o.device = e.devices.front();
  if (auto lacks = p_.memory.lacks_to_wake(e.memory, {}, {})) {
    o.device = lacks->device;
    o.lacks = lacks->bytes;
    o.why = lacks->why + ",";
  }
  note_crowd(o);
  return o;
}

void model_demand::note_crowd(option& o) const {
  for (const auto i : o.on) {
    if (awake_on(i) < p_.most_models) continue;
    o.crowded = true;
    o.why = fmt::format("{} has {} models, which are the most,", p_.hosts[i]->device(), p_.most_models);
  }
}

// ---- who rests, and who has to make way

core::time_point model_demand::last_use(const entry& e) const {
  return std::max({e.ended->last().value_or(core::time_point()), e.use->last_asked(), e.began});
}

core::duration model_demand::stay_of(const entry& e) const { return std::max(p_.demand.stay, e.use->stay()); }

// A model whose way is closed has made way already: it leaves once its jobs have ended.
bool model_demand::rests(entry& e) const {
  if (!is_empty(e)) return false;
  return closed_for_.contains(e.spec.name) || p_.time.now() - last_use(e) >= stay_of(e);
}

void model_demand::make_way(const entry& e, const option& o) {
  const auto* oldest = line_.oldest_for(e.spec.name);
  if (p_.time.now() - oldest->since < p_.demand.swap_wait) return;
  entries closed, open;
  for (auto* m : on_the_way(e, o, false)) {
    const bool gone = m->state == model_state::asleep || closed_for_.contains(m->spec.name);
    (gone ? closed : open).push_back(m);
  }
  if (open.empty() || leave_for(o, closed)) return;  // enough of them make way already
  auto* const first = *std::ranges::min_element(open, {}, [](const entry* m) { return m->began; });
  first->use->close();
  closed_for_[first->spec.name] = e.spec.name;
}

// The way to a model is open again where nobody waits any more for the one that it was closed for.
void model_demand::reopen() {
  for (auto at = closed_for_.begin(); at != closed_for_.end();) {
    if (line_.wants(at->second)) {
      ++at;
      continue;
    }
    if (auto* e = find(at->first); e && e->state == model_state::ready) {
      e->use->open();
      e->began = p_.time.now();
    }
    at = closed_for_.erase(at);
  }
}

std::optional<core::time_point> model_demand::idle_until(const entry& e) const {
  if (e.state != model_state::ready || e.spec.pinned) return std::nullopt;
  auto least = core::duration::max();
  if (e.spec.idle_unload) least = std::min(least, *e.spec.idle_unload);
  if (e.spec.idle_sleep) least = std::min(least, *e.spec.idle_sleep);
  if (least == core::duration::max()) return std::nullopt;
  return last_use(e) + std::max(least, e.use->stay());
}

asio::awaitable<void> model_demand::settle_idle(self_type& self) {
  for (auto& e : known_) {
    if (self.stopping()) co_return;
    const auto until = idle_until(e);
    if (!until || p_.time.now() < *until || !is_empty(e)) continue;
    e.use->close();
    if (!is_empty(e)) {
      e.use->open();
      continue;
    }
    busy_since_ = p_.time.now();
    co_await growth_over(self);
    if (self.stopping()) co_return;
    closed_for_.erase(e.spec.name);
    const auto rested = p_.time.now() - last_use(e);
    const auto unload = e.spec.idle_unload && rested >= std::max(*e.spec.idle_unload, e.use->stay());
    co_await settle_one(self, e, unload);
  }
}

// REQUIRES: the model has no job, and its way is closed
asio::awaitable<void> model_demand::settle_one(self_type& self, entry& e, bool unload) {
  begin_drain({&e}, {});
  if (unload) co_return co_await take_down(self, e);
  if (best_level(e) == sleep_level::disk) co_return co_await drop_to_disk(self, e);
  if (auto held = hold_for(e); !held) co_return co_await drop_to_disk(self, e);
  const auto wrong = co_await put_to_sleep(self, e);
  if (!wrong || self.stopping()) co_return;
  p_.seen->tell("models", fmt::format("{} could not be put to sleep: {}", e.spec.name, wrong->message));
  if (e.state != model_state::draining) co_return;
  e.began = p_.time.now();  // it is tried again after its time
  end_drain({&e});
}

}  // namespace weir::actors
