// fleet_town.h — gateways and workers with simulated engines on a bus in virtual time, and jobs whose right
// text is known.
#pragma once

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "actors/fleet/far_model.h"
#include "actors/fleet/gateway_side.h"
#include "actors/fleet/worker_side.h"
#include "actors/service_doors.h"
#include "tests/actors/service_fixture.h"
#include "tests/support/loop_bus.h"
#include "tests/support/world.h"

namespace weir::tests {

namespace fleet = actors::fleet;

struct fleet_town {
  struct worker {
    std::unique_ptr<loop_net::endpoint> bus;
    std::unique_ptr<actors::service> service;
    std::unique_ptr<fleet::worker_side> side;
  };
  struct gateway {
    std::unique_ptr<loop_net::endpoint> bus;
    std::unique_ptr<actors::service> service;
    std::unique_ptr<fleet::gateway_side> side;
  };
  // A process that is worker and gateway.
  struct both {
    std::unique_ptr<loop_net::endpoint> bus;
    std::unique_ptr<actors::service> service;
    std::unique_ptr<fleet::worker_side> worker;
    std::unique_ptr<fleet::gateway_side> gateway;
  };

  fleet_town(std::uint64_t seed, std::string sim = "rate=50", net_manners how = {})
      : here(seed), spec("sim:" + std::move(sim)), net(std::make_shared<loop_net>(here, how)) {}
  ~fleet_town() {
    processes.clear();
    workers.clear();
    gateways.clear();
    here.run([] { return false; }, std::chrono::seconds(1));
  }

  // Options of a worker that soon forgets jobs that have ended, and jobs whose gateway is gone.
  static fleet::worker_options quick() {
    fleet::worker_options o;
    o.retain = std::chrono::seconds(5);
    o.adopt_grace = std::chrono::seconds(3);
    return o;
  }
  worker& add_worker(fleet::worker_options o = {}) {
    worker& w = workers.emplace_back();
    w.bus = net->join();
    w.service = here.make_service(worker_service());
    begin_side(w, std::move(o));
    return w;
  }
  // The same inside a handler: the worker's model is loaded while the world runs.
  void add_worker_later(fleet::worker_options o = {}) {
    worker& w = workers.emplace_back();
    w.bus = net->join();
    auto s = worker_service();
    s.simulated = here.simulated();
    w.service = std::make_unique<actors::service>(std::move(s), here);
    begin_side(w, std::move(o));
    w.service->load({}, here.get_executor(), [](core::result<> r) { REQUIRE(r.has_value()); });
  }

 private:
  actors::service_options worker_service() const {
    actors::service_options s;
    s.models.push_back({"sim", spec});
    s.owner = owner();
    s.owner.audit = true;
    s.owner.lists_landmarks = true;
    s.owner.joins_fleet = says_class;
    s.owner.max_batch = most_jobs ? most_jobs : 8;
    if (most_jobs) s.owner.queue = 0;
    return s;
  }
  actors::owner_options owner() const {
    actors::owner_options o;
    o.device = device;
    if (device == "sim") return o;
    o.kv_tokens = 4096;
    o.threads = 1;
    return o;
  }

 protected:
  void begin_side(worker& w, fleet::worker_options o) {
    o.where = here.get_executor();
    o.name = name();
    w.side = std::make_unique<fleet::worker_side>(*w.bus, *w.service, here, std::move(o));
    REQUIRE(w.side->start().has_value());
  }

 public:
  gateway& add_gateway(fleet::gateway_options o = {}) {
    actors::service_options s;
    s.owner = owner();
    gateways.emplace_back();
    gateway& g = gateways.back();
    g.bus = net->join();
    const actors::owner_options owner = s.owner;
    g.service = here.make_service(std::move(s));
    auto model = fleet::open_far_model({"sim", spec}, owner, here.lasting(), g.service->doors().compiled);
    REQUIRE(model.has_value());
    o.where = here.get_executor();
    o.name = name();
    g.side =
        std::make_unique<fleet::gateway_side>(*g.bus, *g.service, here, std::vector{*model}, std::move(o));
    REQUIRE(g.side->start().has_value());
    return g;
  }

  both& add_both() {
    both& b = processes.emplace_back();
    b.bus = net->join();
    b.service = here.make_service(worker_service());
    fleet::worker_options w;
    w.where = here.get_executor();
    w.name = name();
    b.worker = std::make_unique<fleet::worker_side>(*b.bus, *b.service, here, std::move(w));
    REQUIRE(b.worker->start().has_value());
    std::vector<fleet::far_model> models;
    const auto all = b.service->doors().list.models();
    for (const auto& m : *all) models.push_back(fleet::far_copy(*m));
    fleet::gateway_options g;
    g.where = here.get_executor();
    g.name = name();
    g.own_worker = b.worker->name();
    b.gateway =
        std::make_unique<fleet::gateway_side>(*b.bus, *b.service, here, std::move(models), std::move(g));
    REQUIRE(b.gateway->start().has_value());
    return b;
  }

  // A prompt of so many letters, of which no two numbers share the beginning.
  static std::string prompt_of(int number, std::size_t letters) {
    std::string out(1, static_cast<char>('!' + number));
    while (out.size() < letters) out += "abcdefghijklmnopqrstuvwxyz"[(out.size() * 7 + out.size() / 26) % 26];
    return out;
  }
  std::shared_ptr<job_stream> send(gateway& g, actors::request r) {
    all.push_back(g.service->submit(std::move(r), here.get_executor(), [] {}));
    return all.back();
  }
  std::shared_ptr<job_stream> send(actors::request r) { return send(gateways.front(), std::move(r)); }
  void finish(const std::shared_ptr<job_stream>& s) {
    REQUIRE(here.run([&] { return over(s); }, std::chrono::minutes(3)));
  }
  static bool over(const std::shared_ptr<job_stream>& s) {
    return s->state() == phase::done || s->state() == phase::refused;
  }
  bool all_over() const { return std::ranges::all_of(all, over); }
  void wait(core::duration d) {
    here.run([] { return false; }, d);
  }

  // The names that the processes of a fleet draw, from the world's numbers.
  std::string name() {
    std::string out;
    for (int i = 0; i < 16; ++i) out += "abcdefghijklmnopqrstuvwxyz234567"[here.random() % 32];
    return out;
  }

  world here;
  std::string spec;             // of the model of the workers and gateways that come next
  std::string device = "sim";   // of theirs
  std::uint32_t most_jobs = 0;  // of the workers that come next; 0: as many as a server usually has
  bool says_class = true;       // of their arithmetic, as workers of earlier builds do not
  std::shared_ptr<loop_net> net;
  std::vector<std::shared_ptr<job_stream>> all;
  std::deque<worker> workers;
  std::deque<gateway> gateways;
  std::deque<both> processes;
};

}  // namespace weir::tests
