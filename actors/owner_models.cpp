// How engines come to the owner of a device and leave it, sleep, wake, and change their pools.
#include "actors/owner_mind.h"

#include <algorithm>
#include <utility>

#include "actors/mailbox_port.h"
#include "actors/open_model.h"

namespace weir::actors {
namespace {

using core::time_point;

constexpr core::duration look_at_loads_every = std::chrono::milliseconds(100);  // whether they are wanted

}  // namespace

void owner_mind::on(set_share& m) {
  sleepers_.set_share(m.engine, m.weight);
  auto* const e = find(m.engine);
  if (!e) return;
  e->share.set_weight(m.weight);
  e->spec.share = m.weight;
}

void owner_mind::on(resize_engine& m) {
  auto* const e = working(m.engine);
  if (!e)
    return m.answer(resize_engine::result(
        core::make_error(core::errc::unavailable, "this host has no such engine that is awake")));
  if (changes_.has(m.engine))
    return m.answer(
        resize_engine::result(core::make_error(core::errc::busy, "another change of its pool is under way")));
  const auto before = static_cast<std::uint32_t>(e->pages());
  changes_.add(std::move(m), before, time_.now());
  advance_changes();
}

void owner_mind::on(pages_set& m) {
  const auto id = m.engine;
  const auto fault = changes_.end(m, [this](engine_id e) { return working(e); });
  auto* const e = find(id);
  if (e && e->engine) {
    e->spec.pages = static_cast<std::uint32_t>(e->engine->pages());  // after a fault it has as many again
    e->due = {};
  }
  publish();
  if (fault) device_failed(*fault);
}

void owner_mind::advance_changes() {
  const auto next = changes_.advance(
      time_.now(), [this](engine_id e) { return working(e); }, loader_, self_);
  if (next != time_point::max()) change_timer_->set(next);
  for (const auto& e : engines_)
    if (const auto fault = e.engine ? e.engine->fault() : std::nullopt) return device_failed(*fault);
}

void owner_mind::on(load_model& m) {
  const auto wait = simulated_load(m.spec, *options_);
  loads_.push_back({time_.now() + wait, std::move(m)});
  begin_loads();
}

void owner_mind::on(nap_engine& m) {
  if (m.what == nap::sleep) {
    if (auto no = give_to_sleepers(m.engine)) return m.answer(nap_engine::result(std::move(*no)));
  } else if (!sleepers_.has(m.engine)) {
    return m.answer(nap_engine::result(
        core::make_error(core::errc::unavailable, "this host has no such engine that sleeps")));
  }
  const auto times = simulated_naps(sleepers_.spec_of(m.engine), *options_);
  naps_.push_back({time_.now() + (m.what == nap::sleep ? times.sleep : times.wake), std::move(m)});
  begin_loads();
}

std::optional<core::error> owner_mind::give_to_sleepers(engine_id id) {
  const auto e = std::ranges::find(engines_, id, [](const auto& x) { return x.served->engine; });
  if (e == engines_.end())
    return core::make_error(core::errc::unavailable, "this host has no such engine that is awake");
  if (!e->engine || e->engine->fault())
    return core::make_error(core::errc::unavailable, "the device is down: {}", board_->fault());
  if (!e->engine->idle()) return core::make_error(core::errc::busy, "the engine has jobs");
  if (changes_.has(id)) return core::make_error(core::errc::busy, "its pool is changing");
  sleepers_.add(std::move(*e));
  engines_.erase(e);
  publish();
  return std::nullopt;
}

void owner_mind::begin_nap(nap_engine& m) {
  auto engine = sleepers_.has(m.engine) ? sleepers_.give_out(m.engine) : nullptr;
  if (!engine) {
    nap_ended none(m.engine, m.what, nullptr,
                   core::make_error(core::errc::internal, "its engine was lost with the device"),
                   std::move(m.answer));
    return on(none);
  }
  const auto answer = std::make_shared<reply<nap_engine::result>>(std::move(m.answer));
  auto done = [to = self_, id = m.engine, what = m.what, answer](std::unique_ptr<core::engine> e,
                                                                 core::result<> r) {
    to.tell(nap_ended(id, what, std::move(e), std::move(r), std::move(*answer)));
  };
  m.what == nap::sleep ? loader_.sleep(std::move(engine), std::move(done))
                       : loader_.wake(std::move(engine), std::move(done));
}

void owner_mind::on(nap_ended& m) {
  if (auto awake = sleepers_.take_back(m, loader_)) {
    auto& e = engines_.emplace_back(std::move(*awake));
    e.due = {};
    e.rests = false;
  }
  publish();
  m.answer(nap_engine::result(std::move(m.result)));
}

void owner_mind::begin_loads() {
  const auto now = time_.now();
  auto next = time_point::max();
  std::vector<waiting_load> later;
  for (auto& w : loads_) {
    const auto& unwanted = w.what.spec.unwanted;
    if (w.at <= now || (unwanted && *unwanted)) {
      begin_load(w.what);
      continue;
    }
    next = std::min(next, unwanted ? std::min(w.at, now + look_at_loads_every) : w.at);
    later.push_back(std::move(w));
  }
  loads_ = std::move(later);
  next = std::min(next, begin_naps(now));
  if (next != time_point::max()) load_timer_->set(next);
}

time_point owner_mind::begin_naps(time_point now) {
  auto next = time_point::max();
  for (auto all = std::exchange(naps_, {}); auto& w : all) {
    if (w.at <= now) {
      begin_nap(w.what);
      continue;
    }
    next = std::min(next, w.at);
    naps_.push_back(std::move(w));
  }
  return next;
}

void owner_mind::begin_load(load_model& m) {
  const auto answer = std::make_shared<reply<load_model::result>>(std::move(m.answer));
  loader_.load(m.spec, m.progress, [to = self_, spec = m.spec, answer](loaded what) {
    to.tell(load_ended(std::move(what), spec, std::move(*answer)));
  });
}

void owner_mind::on(load_ended& m) {
  // A load that was refused leaves the device as it was. If the device has failed meanwhile, each engine
  // finds that in its next step.
  if (!m.what) return m.answer(load_model::result(m.what.error()));
  auto& [engine, weights, config, served, place] = **m.what;
  place->engine = next_engine_id();
  place->port = std::make_shared<mailbox_port>(self_, place->engine);
  if (options_->lists_landmarks)
    place->known = std::make_shared<known_prefixes>(std::string(served->info.kv_type),
                                                    std::make_shared<std::atomic<std::uint64_t>>(0));
  served->constraints = std::make_shared<constraint_store>(
      served->tokenizer, served->info.stop_ids, time_.lasting(), options_->grammar_time, shared_.constraints);
  served->places.push_back(place);
  auto& e = engines_.emplace_back();
  e.engine = std::move(engine);
  e.spec = m.spec;
  e.spec.unwanted.reset();  // a load that follows a fault is wanted
  e.max_batch = config.max_batch;
  e.share = core::share_account(m.spec.share.value_or(1));
  e.served = std::move(place);
  publish();
  m.answer(load_model::result(std::move(served)));
}

void owner_mind::on(close_engine& m) {
  const auto e = std::ranges::find(engines_, m.engine, [](const auto& x) { return x.served->engine; });
  if (e == engines_.end()) return close_sleeper(m);
  changes_.lose(m.engine);
  if (e->engine) e->engine->stop(model_is_gone());
  outbox_.flush();
  const core::engine_totals totals = e->look().counts;
  auto engine = std::move(e->engine);
  engines_.erase(e);
  publish();
  const auto answer = std::make_shared<reply<close_engine::result>>(std::move(m.answer));
  loader_.destroy(std::move(engine), [answer, totals] { (*answer)(totals); });
}

void owner_mind::close_sleeper(close_engine& m) {
  auto gone = sleepers_.close(m.engine);
  if (!gone) return m.answer(core::engine_totals());
  publish();
  if (!gone->engine) return m.answer(gone->totals);
  const auto answer = std::make_shared<reply<close_engine::result>>(std::move(m.answer));
  loader_.destroy(std::move(gone->engine), [answer, totals = gone->totals] { (*answer)(totals); });
}

}  // namespace weir::actors
