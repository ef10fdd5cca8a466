// demand_fleet.h — a fleet whose workers load models for requests at gateways, in virtual time.
#pragma once

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "tests/actors/demand_town.h"
#include "tests/actors/fleet_town.h"

namespace weir::tests {

struct demand_fleet : fleet_town {
  using change = std::function<void(actors::service_options&)>;
  using specs = std::vector<actors::model_spec>;

  explicit demand_fleet(std::uint64_t seed, net_manners how = {}) : fleet_town(seed, base, how) {}

  // A simulated model: `more` as `,mb=100,load=2000`.
  static actors::model_spec sim(std::string name, const std::string& more = "") {
    actors::model_spec m;
    m.name = std::move(name);
    m.source = "sim:" + std::string(base) + more;
    return m;
  }

  // Whose jobs last without many tokens.
  static actors::model_spec slow_sim(std::string name, const std::string& more = "") {
    auto m = sim(std::move(name));
    m.source = "sim:prefill=100000,rate=50" + more;
    return m;
  }

  // Options of a worker with a device of 8,192 MB.
  static actors::service_options host_options(specs ready, specs known) {
    auto o = demand_options(std::move(ready), std::move(known));
    o.owner.device = "sim";
    o.owner.lists_landmarks = true;
    o.seen = std::make_shared<core::incidents>([](std::string_view) {});
    return o;
  }
  worker& add_host(specs ready, specs known, const change& more = {}) {
    auto o = host_options(std::move(ready), std::move(known));
    if (more) more(o);
    worker& w = workers.emplace_back();
    w.bus = net->join();
    w.service = here.make_service(std::move(o));
    begin_side(w, quick());
    return w;
  }
  // The same inside a handler.
  void add_host_later(actors::service_options o) {
    worker& w = workers.emplace_back();
    w.bus = net->join();
    o.simulated = here.simulated();
    w.service = std::make_unique<actors::service>(std::move(o), here);
    begin_side(w, quick());
    w.service->load({}, here.get_executor(), [](core::result<> r) { REQUIRE(r.has_value()); });
  }

  // A gateway that knows these names.
  gateway& add_door(const std::vector<std::string>& names, const change& more = {}) {
    actors::service_options s;
    s.owner.device = "sim";
    if (more) more(s);
    gateway& g = gateways.emplace_back();
    g.bus = net->join();
    const actors::owner_options owner = s.owner;
    g.service = here.make_service(std::move(s));
    std::vector<fleet::far_model> models;
    for (const auto& n : names) {
      auto m = fleet::open_far_model(sim(n), owner, here.lasting(), g.service->doors().compiled);
      REQUIRE(m.has_value());
      models.push_back(std::move(*m));
    }
    fleet::gateway_options o;
    o.where = here.get_executor();
    o.name = name();
    g.side = std::make_unique<fleet::gateway_side>(*g.bus, *g.service, here, std::move(models), std::move(o));
    REQUIRE(g.side->start().has_value());
    return g;
  }

  static actors::request asked(std::string model, std::int64_t tokens = 20, std::uint64_t seed = 7) {
    auto r = ask("hello", tokens, seed);
    r.model = std::move(model);
    return r;
  }
  std::shared_ptr<job_stream> send_to(std::string model, std::int64_t tokens = 20,
                                      std::optional<actors::request::load> how = {}, std::uint64_t key = 0) {
    auto r = asked(std::move(model), tokens);
    r.when_not_loaded = how;
    r.who.key = key;
    return send(gateways.front(), std::move(r));
  }
  void settle() {
    REQUIRE(here.run([&] { return all_over(); }, std::chrono::hours(1)));
  }

  static actors::model_status status(const worker& w, std::string_view name) {
    for (auto& m : w.service->all_models().models)
      if (m.name == name) return m;
    FAIL("no such model");
    return {};
  }
  static actors::model_state state(const worker& w, std::string_view name) { return status(w, name).state; }
  std::uint64_t loads(std::string_view name) const {
    std::uint64_t sum = 0;
    for (const auto& w : workers) sum += status(w, name).loads;
    return sum;
  }
  std::uint64_t wishes() const {
    std::uint64_t sum = 0;
    for (const auto& w : workers) sum += w.side->counts().wishes;
    return sum;
  }
  // Nothing is under way, and no job has left anything behind. `but`: a worker that was killed.
  void check_empty(const worker* but = nullptr) {
    wait(std::chrono::seconds(70));
    for (const auto& g : gateways) {
      const auto c = g.side->counts();
      CHECK(c.jobs == 0);
      CHECK(c.waiting == 0);
    }
    for (const auto& w : workers) {
      if (&w == but) continue;
      CHECK(w.side->counts().jobs == 0);
      CHECK(w.side->counts().kept == 0);
      CHECK(w.service->memory()->used() == 0);
      CHECK(w.service->stats().engine.pages_used == 0);
      std::uint64_t taken = 0;
      for (const auto& m : w.service->all_models().models) {
        INFO(m.name);
        CHECK(m.running + m.queued == 0);
        CHECK(m.state != actors::model_state::loading);
        CHECK(m.state != actors::model_state::draining);
        taken += m.bytes.weights;
      }
      CHECK(w.service->all_models().devices.at(0).models == taken);
    }
  }
  static bool answered(const std::shared_ptr<job_stream>& s) {
    return s->state() == phase::done && s->ended().reason == core::finish_reason::length;
  }

 private:
  static constexpr const char* base = "prefill=100000,rate=1000";
};

}  // namespace weir::tests
