#include "core/engine.h"

#include "tests/support/engine_rig.h"

using namespace weir::core;
using namespace weir::test;
using namespace std::chrono_literals;

TEST_CASE("a job gets max_tokens tokens, one a step, then length") {
  engine_rig rig;
  auto sink = rig.submit(rig.job(1, 10));
  int steps = 0;
  while (!rig.engine->idle()) {
    CHECK(rig.step().tokens == 1);
    ++steps;
  }
  CHECK(steps == 10);
  CHECK(sink->tokens.size() == 10);
  CHECK(sink->finishes == 1);
  CHECK(sink->end->reason == finish_reason::length);
  CHECK(sink->end->input_tokens == 5);
  CHECK(sink->end->output_tokens == 10);
}

TEST_CASE("32 jobs at once give, job by job, what each gives alone") {
  engine_rig rig;
  std::vector<std::vector<token_id>> alone;
  const auto make = [&](std::uint64_t n) {
    auto j = rig.job(n, 20 + static_cast<std::uint32_t>(n), 1 + n * 11);
    j.sampling.temperature = n % 4 == 0 ? 0.0f : 0.9f;
    if (n % 3 == 0) j.sampling.top_k = 20;
    if (n % 5 == 0) j.sampling.top_p = 0.8f;
    if (n % 7 == 0) j.sampling.repetition_penalty = 1.3f;
    return j;
  };
  for (std::uint64_t n = 0; n < 32; ++n) alone.push_back(rig.solo(make(n)));
  std::vector<std::shared_ptr<recording_sink>> sinks;
  for (std::uint64_t n = 0; n < 32; ++n) sinks.push_back(rig.submit(make(n)));
  rig.run();
  for (std::uint64_t n = 0; n < 32; ++n) {
    INFO("job " << n);
    CHECK(alone[n].size() == 20 + n);
    CHECK(sinks[n]->ids() == alone[n]);
    CHECK(sinks[n]->finishes == 1);
  }
}

TEST_CASE("a simulated job's text follows from its seed") {
  engine_rig rig(sim_spec{});
  auto sink = rig.submit(rig.job(42, 50, 100));
  rig.run();
  REQUIRE(sink->tokens.size() == 50);
  for (std::uint32_t i = 0; i < 50; ++i) CHECK(sink->tokens[i].id == sim_token(42, i));
  CHECK(sink->end->max_gap <= 20ms + 10us);
  CHECK(sink->end->max_gap >= 20ms - 10us);
}
