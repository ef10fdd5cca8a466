// A gateway and a worker on threads of their own, in real time: what is made is destroyed in every order.
#include <catch2/catch.hpp>
#include <optional>

#include "actors/fleet/far_model.h"
#include "actors/fleet/gateway_side.h"
#include "actors/fleet/worker_side.h"
#include "actors/service_doors.h"
#include "tests/actors/service_fixture.h"
#include "tests/support/prompt_bus.h"

namespace weir::tests::fleet_threads_test {
namespace {

namespace fleet = actors::fleet;

constexpr const char* spec = "rate=5000,prefill=100000000";

// The service of a gateway, whose shard is the test's thread.
struct front : service_fixture {
  explicit front(prompt_bus& bus) : service_fixture(spec, [](auto& o) { o.models.clear(); }) {
    load();
    auto model = fleet::open_far_model({"sim", std::string("sim:") + spec}, {}, clock.lasting(), nullptr);
    REQUIRE(model.has_value());
    side = std::make_unique<fleet::gateway_side>(bus, *service, clock, std::vector{*model},
                                                 fleet::gateway_options{});
    REQUIRE(side->start().has_value());
  }
  void await_model() {
    run_until([&] { return !service->models().empty(); });
  }
  std::unique_ptr<fleet::gateway_side> side;
};

struct back : service_fixture {
  explicit back(prompt_bus& bus) : service_fixture(spec) {
    load();
    side = std::make_unique<fleet::worker_side>(bus, *service, clock, fleet::worker_options{});
    REQUIRE(side->start().has_value());
  }
  std::unique_ptr<fleet::worker_side> side;
};

}  // namespace

TEST_CASE("jobs of a gateway run in a worker, each on threads of its own") {
  prompt_bus bus;
  back worker(bus);
  front gateway(bus);
  gateway.await_model();
  std::vector<std::shared_ptr<job_stream>> all;
  for (std::uint64_t seed = 0; seed < 20; ++seed)
    all.push_back(gateway.submit(ask("hello", static_cast<std::int64_t>(20 + 20 * seed), seed)));
  for (const auto& s : all) gateway.run_to_end(s);
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    REQUIRE(all[seed]->state() == phase::done);
    CHECK(text_of(*all[seed]) == sim_text(seed, static_cast<std::uint32_t>(20 + 20 * seed)));
  }
  bool drained = false;
  worker.side->drain(std::chrono::seconds(30), gateway.io.get_executor(), [&] { drained = true; });
  gateway.run_until([&] { return drained; });
  gateway.side.reset();
  worker.side.reset();
}

TEST_CASE("a job goes on at another gateway, each process on threads of its own") {
  prompt_bus bus;
  back worker(bus);
  front first(bus), second(bus);
  first.await_model();
  second.await_model();
  auto r = ask("hello", 20'000, 3);
  r.resumable = std::make_shared<const std::string>("client");
  const auto s = first.submit(r);
  first.run_until([&] { return s->published() > 10; });
  std::optional<actors::job_search::answer> found;
  second.service->find_elsewhere(
      {s->id(), {}, {}, second.io.get_executor(), [&](actors::job_search::answer a) {
         found = std::move(a);
       }});
  second.run_until([&] { return found.has_value(); });
  REQUIRE(found->how == actors::job_search::end::found);
  const auto on = found->job->stream;
  second.run_to_end(on);
  CHECK(text_of(*on) == sim_text(3, 20'000));
  first.run_to_end(s);
  CHECK(s->ended().fault->code == core::errc::adopted);
  second.side.reset();
  first.side.reset();
}

TEST_CASE("a worker's side that ends while jobs run leaves nothing in its engine") {
  prompt_bus bus;
  back worker(bus);
  front gateway(bus);
  gateway.await_model();
  const auto s = gateway.submit(ask("hello", 100'000, 3));
  gateway.run_until([&] { return s->published() > 10; });
  worker.side.reset();
  worker.await_stats([](const actors::snapshot& all) { return all.engine.decoding == 0; });
  gateway.side.reset();
  gateway.run_to_end(s);
  REQUIRE(s->state() == phase::done);
  CHECK(s->ended().fault->code == core::errc::unavailable);
  CHECK(text_of(*s) == sim_text(3, s->log().size()));
}

TEST_CASE("a gateway's side that ends while jobs run tells their streams") {
  prompt_bus bus;
  back worker(bus);
  std::shared_ptr<job_stream> s;
  {
    front gateway(bus);
    gateway.await_model();
    s = gateway.submit(ask("hello", 100'000, 3));
    gateway.run_until([&] { return s->published() > 10; });
    gateway.side.reset();
    gateway.run_to_end(s);
    CHECK(s->ended().reason == core::finish_reason::error);
    CHECK(gateway.service->models().empty());
    s.reset();
  }
  worker.await_stats([](const actors::snapshot& all) { return all.engine.decoding == 0; });
}

}  // namespace weir::tests::fleet_threads_test
