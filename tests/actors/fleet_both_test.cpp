// Processes that are gateway and worker at once: two boxes, each with streams and engines of its own.
#include <catch2/catch.hpp>

#include "tests/actors/fleet_town.h"

namespace weir::tests::fleet_both_test {
namespace {

std::shared_ptr<job_stream> send_to(fleet_town& t, fleet_town::both& b, std::int64_t tokens,
                                    std::uint64_t seed) {
  t.all.push_back(b.service->submit(ask("hello", tokens, seed), t.here.get_executor(), [] {}));
  return t.all.back();
}

}  // namespace

TEST_CASE("both: a lone process runs its jobs in its own engine, and no message is sent for them") {
  fleet_town t(1);
  auto& a = t.add_both();
  t.wait(std::chrono::seconds(1));
  const auto s = send_to(t, a, 20, 7);
  REQUIRE(t.here.run([&] { return fleet_town::over(s); }));
  CHECK(s->state() == phase::done);
  CHECK(text_of(*s) == sim_text(7, 20));
  CHECK(a.worker->counts().taken == 0);
  CHECK(a.gateway->counts().frames == 0);
  const auto all = a.service->doors().list.models();
  REQUIRE(all->size() == 1);
  CHECK(all->front()->places.size() == 1);
}

TEST_CASE(
    "both: jobs for which the own engine has no room run in the other process, and all texts are right") {
  fleet_town t(2);
  t.most_jobs = 4;
  auto& a = t.add_both();
  auto& b = t.add_both();
  t.wait(std::chrono::seconds(1));
  for (std::uint64_t seed = 0; seed < 8; ++seed) send_to(t, a, 100, seed);
  REQUIRE(t.here.run([&] { return t.all_over(); }, std::chrono::seconds(60)));
  for (std::uint64_t seed = 0; seed < 8; ++seed) {
    REQUIRE(t.all[seed]->state() == phase::done);
    CHECK(text_of(*t.all[seed]) == sim_text(seed, 100));
  }
  t.wait(std::chrono::seconds(1));
  CHECK(b.worker->counts().taken == 4);
  CHECK(a.worker->counts().taken == 0);
  for (auto* one : {&a, &b}) {
    CHECK(one->service->stats().engine.pages_used == 0);
    CHECK(one->gateway->counts().jobs == 0);
    CHECK(one->worker->counts().jobs == 0);
  }
}

TEST_CASE("both: a job whose process is killed goes on in the engine of the process that streams it") {
  fleet_town t(3);
  t.most_jobs = 4;
  auto& a = t.add_both();
  auto& b = t.add_both();
  t.wait(std::chrono::seconds(1));
  for (std::uint64_t seed = 0; seed < 8; ++seed) send_to(t, a, seed < 4 ? 40 : 200, seed);
  REQUIRE(t.here.run(
      [&] { return std::ranges::all_of(t.all, [](const auto& s) { return s->published() >= 30; }); },
      std::chrono::seconds(10)));
  REQUIRE(b.worker->counts().taken == 4);
  b.bus->kill();
  REQUIRE(t.here.run([&] { return t.all_over(); }, std::chrono::seconds(60)));
  for (std::uint64_t seed = 0; seed < 8; ++seed) {
    INFO(seed);
    REQUIRE(t.all[seed]->state() == phase::done);
    CHECK(text_of(*t.all[seed]) == sim_text(seed, seed < 4 ? 40 : 200));
  }
  t.wait(std::chrono::seconds(1));
  CHECK(a.gateway->counts().moved == 4);
  CHECK(a.worker->counts().taken == 4);  // the process took them from itself
  CHECK(a.service->stats().engine.pages_used == 0);
  CHECK(a.gateway->counts().jobs == 0);
}

TEST_CASE("both: a process that drains gives back the jobs of the other one, and its own run to their ends") {
  fleet_town t(4);
  t.most_jobs = 4;
  auto& a = t.add_both();
  auto& b = t.add_both();
  t.wait(std::chrono::seconds(1));
  for (std::uint64_t seed = 0; seed < 8; ++seed) send_to(t, a, seed < 4 ? 100 : 600, seed);
  REQUIRE(t.here.run([&] { return t.all.back()->published() >= 10; }, std::chrono::seconds(10)));
  bool drained = false;
  b.worker->drain(std::chrono::seconds(4), t.here.get_executor(), [&] { drained = true; });
  REQUIRE(t.here.run([&] { return drained; }, std::chrono::seconds(20)));
  CHECK(b.worker->counts().jobs == 0);
  REQUIRE(t.here.run([&] { return t.all_over(); }, std::chrono::seconds(60)));
  for (std::uint64_t seed = 0; seed < 8; ++seed)
    CHECK(text_of(*t.all[seed]) == sim_text(seed, seed < 4 ? 100 : 600));
}

TEST_CASE("both: a prompt goes where its prefix is, be it the own engine or the other process") {
  fleet_town t(5, "rate=2000,prefill=20000");
  auto& a = t.add_both();
  auto& b = t.add_both();
  t.wait(std::chrono::seconds(1));
  const auto run = [&](fleet_town::both& on, int n, std::size_t bytes) {
    const auto s =
        on.service->submit(ask(fleet_town::prompt_of(n, bytes), 3, 7), t.here.get_executor(), [] {});
    REQUIRE(t.here.run([&] { return fleet_town::over(s); }, std::chrono::seconds(10)));
    REQUIRE(s->state() == phase::done);
    t.wait(std::chrono::milliseconds(500));  // until a board without the job is there
    return s->ended().cached_tokens;
  };
  constexpr int prompts = 12;
  for (int n = 0; n < prompts; ++n) run(a, n, 300);
  t.wait(std::chrono::seconds(2));
  std::uint64_t by_a = 0, by_b = 0;
  for (int n = 0; n < prompts; ++n) by_a += run(a, n, 400);
  t.wait(std::chrono::seconds(2));
  for (int n = 0; n < prompts; ++n) by_b += run(b, n, 400);
  CHECK(by_a >= prompts * 256);
  CHECK(by_b >= prompts * 256);
}

}  // namespace weir::tests::fleet_both_test
