// A gateway and a worker, end to end in virtual time: jobs, refusals, cancels, losses.
#include <catch2/catch.hpp>

#include "tests/actors/fleet_town.h"

namespace weir::tests::fleet_test {
namespace {

std::shared_ptr<job_stream> send_to(fleet_town& t, std::int64_t tokens, std::uint64_t seed) {
  return t.send(t.gateways.front(), ask("hello", tokens, seed));
}

}  // namespace

TEST_CASE("a gateway without workers refuses a job by name") {
  fleet_town t(1);
  t.add_gateway();
  const auto s = send_to(t, 5, 7);
  REQUIRE(t.here.run([&] { return fleet_town::over(s); }));
  REQUIRE(s->state() == phase::refused);
  CHECK(s->refusal().code == core::errc::unavailable);
  CHECK(s->refusal().message == "no worker of the fleet has sim now");
}

TEST_CASE("a job of a gateway runs in a worker and gives the text of its seed") {
  fleet_town t(2);
  t.add_worker();
  t.add_gateway();
  t.wait(std::chrono::seconds(1));
  const auto s = send_to(t, 20, 7);
  REQUIRE(t.here.run([&] { return fleet_town::over(s); }));
  REQUIRE(s->state() == phase::done);
  CHECK(s->ended().reason == core::finish_reason::length);
  CHECK(s->ended().output_tokens == 20);
  CHECK(s->ended().input_tokens == 5);
  CHECK(text_of(*s) == sim_text(7, 20));
  CHECK(s->ended().ttft_ms > 0);
  t.wait(std::chrono::seconds(1));
  CHECK(t.workers.front().side->counts().taken == 1);
  CHECK(t.workers.front().side->counts().jobs == 0);
  CHECK(t.workers.front().side->counts().kept == 0);
  CHECK(t.gateways.front().side->counts().jobs == 0);
  const auto stats = t.workers.front().service->stats();
  CHECK(stats.engine.pages_used == 0);
  CHECK(stats.engine.queued + stats.engine.prefilling + stats.engine.decoding == 0);
}

TEST_CASE("a cancel at the gateway frees the job in the worker") {
  fleet_town t(3);
  t.add_worker();
  t.add_gateway();
  t.wait(std::chrono::seconds(1));
  const auto s = send_to(t, 1000, 7);
  REQUIRE(t.here.run([&] { return s->published() >= 3; }));
  s->cancel();
  REQUIRE(t.here.run([&] { return fleet_town::over(s); }, std::chrono::seconds(1)));
  CHECK(s->ended().reason == core::finish_reason::cancel);
  CHECK(text_of(*s) == sim_text(7, s->log().size()));
  t.wait(std::chrono::seconds(1));
  CHECK(t.workers.front().service->stats().engine.pages_used == 0);
  CHECK(t.workers.front().side->counts().jobs == 0);
}

TEST_CASE("a killed worker's job goes on at another one, and its text has no seam") {
  fleet_town t(4);
  t.add_worker();
  t.add_gateway();
  t.wait(std::chrono::seconds(1));
  const auto s = send_to(t, 100, 9);
  REQUIRE(t.here.run([&] { return s->published() >= 30; }));
  t.add_worker();
  t.wait(std::chrono::milliseconds(300));
  t.workers.front().bus->kill();
  REQUIRE(t.here.run([&] { return fleet_town::over(s); }, std::chrono::seconds(30)));
  REQUIRE(s->state() == phase::done);
  CHECK(s->ended().reason == core::finish_reason::length);
  CHECK(s->ended().output_tokens == 100);
  CHECK(text_of(*s) == sim_text(9, 100));
  t.wait(std::chrono::seconds(1));
  CHECK(t.gateways.front().side->counts().moved == 1);
  CHECK(t.gateways.front().side->counts().dead == 1);
}

TEST_CASE("a prompt goes where its prefix is in the cache, although another worker is as idle") {
  fleet_town t(31, "rate=2000,prefill=20000");
  t.add_worker();
  t.add_gateway();
  t.wait(std::chrono::seconds(1));
  constexpr int prompts = 20;
  const auto run = [&](int n, std::size_t bytes) {
    const auto s = t.send(t.gateways.front(), ask(fleet_town::prompt_of(n, bytes), 3, 7));
    REQUIRE(t.here.run([&] { return fleet_town::over(s); }, std::chrono::seconds(10)));
    REQUIRE(s->state() == phase::done);
    t.wait(std::chrono::milliseconds(500));  // until a board without the job is there
    return s->ended().cached_tokens;
  };
  for (int n = 0; n < prompts; ++n) CHECK(run(n, 300) == 0);
  t.add_worker();
  t.wait(std::chrono::seconds(2));
  const auto found = t.gateways.front().side->counts().found;
  std::uint64_t cached = 0;
  for (int n = 0; n < prompts; ++n) cached += run(n, 400);
  CHECK(t.workers.back().side->counts().taken == 0);
  CHECK(cached >= prompts * 256);
  auto counts = t.gateways.front().side->counts();
  CHECK(counts.known == prompts * 256);  // four pages of 300 tokens
  CHECK(counts.found - found == cached);
  // What nobody has goes to either.
  for (int n = 0; n < prompts; ++n) run(prompts + n, 300);
  const auto taken = t.workers.back().side->counts().taken;
  CHECK((taken > 3 && taken < prompts - 3));
  CHECK(t.gateways.front().side->counts().known == counts.known);
}

}  // namespace weir::tests::fleet_test
