// Owners that find no memory in the middle of steps: every job ends once, and what it wrote is right.
#include <mutex>

#include "tests/actors/service_fixture.h"
#include "tests/support/memory_shortage.h"

namespace weir::tests::device_restart_memory_test {

using namespace std::chrono_literals;

namespace {

constexpr const char* owner_thread = "weir-sim";

// Two models on one device, and their jobs: those with odd numbers are of model "sim".
struct neighbours : service_fixture {
  neighbours(const std::string& spec, const std::string& other_spec)
      : service_fixture(spec, [&](auto& o) {
          o.models.push_back({"other", "sim:" + other_spec});
          o.owner.models = 2;
        }) {
    load();
  }

  void send(std::uint64_t count, std::int64_t tokens) {
    for (std::uint64_t n = 0; n < count; ++n) {
      auto r = ask("x", tokens, n);
      r.model = n % 2 ? "sim" : "other";
      jobs.push_back(submit(std::move(r)));
    }
    run_until([&] { return jobs.back()->published() > 0; });
  }

  // Whether job `n` ended whole; else it ended with an error.
  bool whole(std::uint64_t n) {
    run_to_end(jobs[n]);
    REQUIRE(jobs[n]->state() == phase::done);
    CHECK(text_of(*jobs[n]) == sim_text(n, jobs[n]->published()));
    const auto& end = jobs[n]->ended();
    if (end.reason == core::finish_reason::length) return true;
    CHECK(end.reason == core::finish_reason::error);
    REQUIRE(end.fault);
    return false;
  }

  std::vector<std::shared_ptr<job_stream>> jobs;
};

}  // namespace

TEST_CASE("no memory: an engine that throws in a step ends its own jobs, and its neighbour's go on") {
  unsigned threw = 0;
  for (std::uint64_t round = 0; round < 40 && threw < 3; ++round) {
    CAPTURE(round);
    neighbours f("step=200/1/1", "step=200/1/1");  // no timers, which allocate
    f.send(6, 300);
    auto r = ask("x", 300, 6);
    r.model = "sim";
    r.deadline = 30ms;
    const auto deadline = std::chrono::steady_clock::now() + *r.deadline;
    const auto late = f.submit(std::move(r));
    f.run_until([&] { return std::chrono::steady_clock::now() > deadline - 3ms; });
    {
      const memory_short now(owner_thread, 1, 1,
                             1);  // most often what the step needs where a deadline passes
      f.run_until([&] { return f.service->seen().count() > 0 || late->state() == phase::done; });
    }
    f.run_to_end(late);
    const bool thrown = !f.whole(1);
    threw += thrown;
    for (std::uint64_t n = 0; n < f.jobs.size(); ++n) {
      CAPTURE(n);
      CHECK(f.whole(n) == (n % 2 == 0 || !thrown));
      if (n % 2 && thrown) CHECK(f.jobs[n]->ended().fault->message == "a step could not be finished");
    }
    if (!thrown) continue;
    f.await_stats([](const auto& now) { return now.engine.continued == 3 && now.engine.pages_used == 0; });
    CHECK(f.service->ready().ready);
  }
  CHECK(threw > 0);
}

TEST_CASE("no memory: where allocations of an owner fail at random, every job ends once") {
  for (std::uint64_t seed = 1; seed <= 40; ++seed) {
    CAPTURE(seed);
    neighbours f("rate=3000", "rate=2000");
    f.send(12, 150);
    {
      const memory_short now(owner_thread, 10 + 20 * (seed % 7), seed);
      auto r = ask("x", 5);
      r.model = "sim";
      const auto late = f.submit(std::move(r));  // makes the owner allocate
      f.run_until([&] {
        return f.service->seen().count() > 0 || late->state() == phase::done ||
               late->state() == phase::refused;
      });
    }
    for (std::uint64_t n = 0; n < f.jobs.size(); ++n) (void)f.whole(n);
  }
}

}  // namespace weir::tests::device_restart_memory_test
