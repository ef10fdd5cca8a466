// fleet_resume_town.h — a fleet in virtual time whose clients go on at another gateway.
#pragma once

#include <catch2/catch.hpp>
#include <initializer_list>
#include <memory>
#include <optional>
#include <string>

#include "tests/actors/fleet_town.h"

namespace weir::tests {

// Gateways and workers that have seen each other.
struct resume_town : fleet_town {
  explicit resume_town(std::uint64_t seed, int n_gateways = 2, int n_workers = 1, std::string sim = "rate=50",
                       net_manners how = {})
      : fleet_town(seed, std::move(sim), how) {
    for (int i = 0; i < n_workers; ++i) add_worker(quick());
    for (int i = 0; i < n_gateways; ++i) add_gateway();
    wait(std::chrono::seconds(1));
  }
  gateway& first() { return gateways.front(); }
  gateway& other() { return gateways.back(); }

  // A request that other gateways can go on with.
  static actors::request asked(std::uint32_t tokens, std::uint64_t seed, std::string prompt = "hello") {
    auto r = ask(std::move(prompt), tokens, seed);
    r.who = {7, 0};
    r.resumable = std::make_shared<const std::string>("for the client");
    return r;
  }
  std::shared_ptr<job_stream> running(actors::request r, std::uint32_t tokens = 20) {
    const auto s = send(first(), std::move(r));
    REQUIRE(here.run([&] { return s->published() >= tokens; }, std::chrono::seconds(60)));
    return s;
  }

  std::shared_ptr<std::optional<actors::job_search::answer>> begin_find(gateway& g, const core::job_id& id,
                                                                        actors::principal who = {7, 0}) {
    auto said = std::make_shared<std::optional<actors::job_search::answer>>();
    actors::job_search s{
        id, who, {}, here.get_executor(), [said](actors::job_search::answer a) { *said = std::move(a); }};
    g.service->find_elsewhere(std::move(s));
    return said;
  }
  actors::job_search::answer found_at(gateway& g, const core::job_id& id, actors::principal who = {7, 0}) {
    const auto said = begin_find(g, id, who);
    REQUIRE(here.run([&] { return said->has_value(); }, std::chrono::seconds(10)));
    if ((*said)->job) all.push_back((*said)->job->stream);
    return **said;
  }
  // Kills the job's gateway, goes on with the job at the other one, and kills its worker. Returns once the
  // job has ended.
  std::shared_ptr<job_stream> resumed_and_moved(const core::job_id& id) {
    first().bus->kill();
    const auto on = resumed_at(other(), id);
    REQUIRE(here.run([&] { return on->published() >= 40; }, std::chrono::seconds(10)));
    for (auto& w : workers)
      if (w.service->stats().engine.decoding > 0) w.bus->kill();
    finish(on);
    return on;
  }
  std::shared_ptr<job_stream> resumed_at(gateway& g, const core::job_id& id) {
    const auto a = found_at(g, id);
    REQUIRE(a.how == actors::job_search::end::found);
    return a.job->stream;
  }
  // Nothing is left of any job in a worker, or in a gateway that lives.
  void check_empty(std::initializer_list<gateway*> alive) {
    all.clear();
    wait(std::chrono::seconds(12));
    for (const auto& w : workers) {
      CHECK(w.side->counts().jobs == 0);
      CHECK(w.side->counts().kept == 0);
      CHECK(w.service->stats().engine.pages_used == 0);
      CHECK(w.service->memory()->used() == 0);
    }
    for (const auto* g : alive) {
      CHECK(g->side->counts().jobs == 0);
    }
  }
};

}  // namespace weir::tests
