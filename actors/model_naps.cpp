#include "actors/model_naps.h"

#include <utility>

#include "core/insist.h"
#include "core/shortened.h"

namespace weir::actors {

namespace asio = boost::asio;
using namespace registry_messages;
using core::errc;

core::result<std::uint64_t> model_naps::sleep_bytes_of(const entry& e) {
  std::uint64_t sum = 0;
  for (const auto& place : e.served->places) {
    if (!place->sleep_bytes) {
      auto why = core::make_error(errc::not_supported, "{} cannot sleep at level 'host' on {}", e.spec.name,
                                  place->device);
      why.param = "level";
      return why;
    }
    sum = core::sum_of(sum, *place->sleep_bytes);
  }
  return sum;
}

sleep_level model_naps::best_level(const entry& e) const {
  const auto bytes = sleep_bytes_of(e);
  const auto room = p_.memory.sleep_account();
  return bytes && room.total > 0 && *bytes <= room.free() + e.memory.asleep ? sleep_level::host
                                                                            : sleep_level::disk;
}

core::result<void> model_naps::hold_for(entry& e) {
  const auto bytes = sleep_bytes_of(e);
  if (!bytes) return bytes.error();
  return p_.memory.hold_sleep(e.memory, e.spec.name, *bytes);
}

std::size_t model_naps::awake_on(std::size_t host) const {
  return static_cast<std::size_t>(std::ranges::count_if(known_, [host](const entry& m) {
    return m.state != model_state::asleep && std::ranges::count(m.hosts, host) > 0;
  }));
}

core::result<model_naps::entry*> model_naps::running(std::string_view name) {
  auto* e = find(name);
  if (!e) return core::make_error(errc::model_not_found, "no model is called '{}'", core::shortened(name));
  if (e->state != model_state::ready)
    return core::make_error(errc::model_not_found, "{} is not loaded: it is {}", e->spec.name,
                            actors::name(e->state));
  return e;
}

core::result<std::optional<sleep_level>> model_naps::level_of(const sleep_order& o) {
  auto* const e = find(o.name);
  if (e && e->state == model_state::asleep) {
    if (o.level == sleep_level::disk && e->level == sleep_level::host) return std::optional<sleep_level>();
    return core::make_error(errc::already_there, "{} sleeps already, at level {}", e->spec.name,
                            actors::name(*e->level));
  }
  auto awake = running(o.name);
  if (!awake) return awake.error();
  const auto level = o.level.value_or(best_level(**awake));
  if (level == sleep_level::host)
    if (auto held = hold_for(**awake); !held) return held.error();
  return std::optional(level);
}

core::result<model_naps::entry*> model_naps::sleeping(std::string_view name) {
  auto* e = find(name);
  if (!e) return core::make_error(errc::model_not_found, "no model is called '{}'", core::shortened(name));
  if (e->state == model_state::ready)
    return core::make_error(errc::already_there, "{} is awake", e->spec.name);
  if (e->state != model_state::asleep)
    return core::make_error(errc::model_not_found, "{} does not sleep: it is {}", e->spec.name,
                            actors::name(e->state));
  return e;
}

core::result<void> model_naps::room_to_wake(const entry& e) const {
  if (const auto lacks = p_.memory.lacks_to_wake(e.memory, {}, {}))
    return core::make_error(errc::does_not_fit, "{}: {}", e.spec.name, lacks->why);
  for (const auto i : e.hosts)
    if (awake_on(i) >= p_.most_models)
      return core::make_error(errc::does_not_fit, "{} has {} models that are awake, which are the most",
                              p_.hosts[i]->device(), p_.most_models);
  return {};
}

asio::awaitable<core::result<>> model_naps::nap(self_type& self, std::size_t on, engine_id engine,
                                                bool sleeps) {
  auto done = [to = mail_](core::result<> r) { core::insist([&] { to.tell(order(napped{r})); }); };
  auto& host = *p_.hosts[on];
  sleeps ? host.sleep(engine, self.get_executor(), std::move(done))
         : host.wake(engine, self.get_executor(), std::move(done));
  auto r = co_await next<napped>(self);
  if (!r) co_return core::result<>(ended_early());
  co_return std::move(r->result);
}

asio::awaitable<bool> model_naps::undo(self_type& self, entry& e, const served_model& m, std::size_t count,
                                       bool sleeps) {
  for (std::size_t i = 0; i < count; ++i) {
    const auto r = co_await nap(self, e.hosts[i], m.places[i]->engine, sleeps);
    if (!r) co_return false;
  }
  co_return true;
}

asio::awaitable<void> model_naps::break_down(self_type& self, entry& e, const core::error& why) {
  const auto was = e.texts();
  e.served = nullptr;
  e.sleeper = nullptr;
  e.level.reset();
  co_await give_all_back(self, e, *was);
  e.state = model_state::failed;
  e.reason = why.message;
  e.failed_at = p_.time.now();
  publish();
}

asio::awaitable<std::optional<core::error>> model_naps::put_to_sleep(self_type& self, entry& e) {
  what_ = e.spec.name + " is being put to sleep";
  const auto m = e.served;
  e.napping = true;
  std::optional<core::error> wrong;
  std::size_t asleep = 0;
  for (; asleep < m->places.size() && !wrong; ++asleep) {
    const auto r = co_await nap(self, e.hosts[asleep], m->places[asleep]->engine, true);
    if (!r)
      wrong = r.error();
    else
      e.memory.copied = true;
  }
  if (self.stopping()) co_return ended_early();
  if (!wrong) {
    e.napping = false;
    p_.memory.sleep(e.memory);
    e.asleep_bytes = e.memory.asleep;
    e.sleeper = m;
    e.served = nullptr;
    e.level = sleep_level::host;
    e.state = model_state::asleep;
    e.progress.reset();
    e.reason.clear();
    ++e.sleeps;
    publish();
    co_return std::nullopt;
  }
  ++e.nap_failures;
  bool whole = wrong->code != errc::internal;
  if (whole) whole = co_await undo(self, e, *m, asleep - 1, false);
  e.napping = false;
  if (whole) {
    p_.memory.end_hold(e.memory);
    e.asleep_bytes = e.memory.asleep;
    co_return wrong;
  }
  wrong->code = errc::internal;
  co_await break_down(self, e, *wrong);
  co_return wrong;
}

asio::awaitable<void> model_naps::drop_to_disk(self_type& self, entry& e) {
  what_ = e.spec.name + " is being put to sleep";
  const auto was = e.texts();
  auto texts = std::make_shared<served_model>(*was);
  texts->places.clear();
  e.served = nullptr;
  e.sleeper = std::move(texts);
  e.level = sleep_level::disk;
  co_await give_all_back(self, e, *was);
  e.progress.reset();
  e.reason.clear();
  e.state = model_state::asleep;
  ++e.sleeps;
  publish();
}

asio::awaitable<std::optional<core::error>> model_naps::wake_up(self_type& self, entry& e) {
  const auto lacks = co_await take_for_wake(self, e);
  if (lacks) {
    e.state = model_state::asleep;
    e.reason = lacks->message;
    e.failed_at = p_.time.now();
    publish();
    co_return lacks;
  }
  what_ = e.spec.name + " is being woken";
  const auto began = p_.time.now();
  const auto m = e.sleeper;
  e.napping = true;
  e.state = model_state::loading;
  e.reason.clear();
  publish();
  std::optional<core::error> wrong;
  std::size_t awake = 0;
  for (; awake < m->places.size() && !wrong; ++awake) {
    const auto r = co_await nap(self, e.hosts[awake], m->places[awake]->engine, false);
    if (!r) wrong = r.error();
  }
  if (self.stopping()) co_return ended_early();
  if (!wrong) {
    given_.clear();
    e.napping = false;
    e.served = std::move(e.sleeper);
    e.sleeper = nullptr;
    e.level.reset();
    ++e.wakes;
    e.last_wake = p_.time.now() - began;
    e.began = p_.time.now();
    end_drain({&e});
    co_return std::nullopt;
  }
  ++e.nap_failures;
  bool whole = wrong->code != errc::internal;
  if (whole) whole = co_await undo(self, e, *m, awake - 1, true);
  e.napping = false;
  if (!whole) {
    wrong->code = errc::internal;
    co_await break_down(self, e, *wrong);
    co_await take_back(self);
    co_return wrong;
  }
  p_.memory.sleep(e.memory);
  co_await take_back(self);
  e.state = model_state::asleep;
  e.reason = wrong->message;
  e.failed_at = p_.time.now();
  publish();
  co_return wrong;
}

// ---- one comes, others go

asio::awaitable<void> model_naps::leave(self_type& self, const leaving& l) {
  entry& e = *l.who;
  if (l.how == exit::deepen) co_return co_await drop_to_disk(self, e);
  if (l.how == exit::sleep) {
    std::optional<core::error> wrong;
    const auto held = hold_for(e);
    if (held)
      wrong = co_await put_to_sleep(self, e);
    else
      wrong = held.error();
    if (!wrong || self.stopping()) co_return;
    p_.seen->tell("models", fmt::format("{} could not be put to sleep, and is unloaded: {}", e.spec.name,
                                        wrong->message));
    if (e.state == model_state::failed) co_return;  // nothing of it is left
  }
  co_await take_down(self, e);
}

asio::awaitable<std::string> model_naps::come_back(self_type& self, const leaving& l,
                                                   std::vector<std::size_t> on) {
  entry& e = *l.who;
  if (l.how == exit::deepen) co_return fmt::format("; {} sleeps at level disk", e.spec.name);
  std::optional<core::error> wrong;
  const bool wakes = e.state == model_state::asleep;
  if (wakes)
    wrong = co_await wake_up(self, e);
  else
    wrong = co_await come_up(self, e, std::move(on));
  if (wrong)
    co_return fmt::format("; {} could not be {}: {}", e.spec.name, wakes ? "woken" : "loaded again",
                          wrong->message);
  co_return fmt::format("; {} is {}", e.spec.name, wakes ? "awake again" : "loaded again");
}

asio::awaitable<std::optional<core::error>> model_naps::exchange(self_type& self,
                                                                 const std::vector<leaving>& out, entry& in,
                                                                 model_spec spec,
                                                                 std::vector<std::size_t> on) {
  std::vector<std::vector<std::size_t>> were;
  for (const auto& l : out) {
    were.push_back(l.who->hosts);
    co_await leave(self, l);
    if (self.stopping()) co_return ended_early();
  }
  const model_spec before = std::exchange(in.spec, std::move(spec));
  std::optional<core::error> wrong;
  if (in.level == sleep_level::host)
    wrong = co_await wake_up(self, in);
  else
    wrong = co_await come_up(self, in, std::move(on));
  if (!wrong || self.stopping()) co_return wrong;
  const auto is_in = [&](const leaving& l) { return l.who == &in; };
  if (std::ranges::any_of(out, is_in)) in.spec = before;
  for (std::size_t i = 0; i < out.size(); ++i) {
    wrong->message += co_await come_back(self, out[i], were[i]);
    if (self.stopping()) co_return wrong;
  }
  co_return wrong;
}

}  // namespace weir::actors
