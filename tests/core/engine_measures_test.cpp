// What the engine measures of each job and each step: exact times in a small script, and over a random crowd
// the sums that follow from the endings of its jobs and the reports of its steps.
#include "core/engine_measures.h"

#include <random>

#include "core/engine.h"
#include "tests/support/engine_rig.h"

namespace weir::tests::engine_measures_test {

using namespace weir::core;
using namespace std::chrono_literals;

TEST_CASE("measures: a job's times are those to its tokens, and a step's those of its rows") {
  engine_rig rig;  // 64 rows of a prompt in a step
  const auto sink = rig.submit(rig.job(1, 4, 130));
  while (!rig.engine->idle()) {
    rig.clock.advance(10ms);
    rig.engine->step();
  }
  REQUIRE(sink->tokens.size() == 4);
  const engine_measures& m = rig.engine->measures();
  CHECK(m.queue.count() == 1);
  CHECK(duration(m.queue.sum()) == 10ms);
  CHECK(duration(m.prefill.sum()) == 20ms);  // 64 rows, 64 and 2
  CHECK(duration(m.ttft.sum()) == 30ms);
  CHECK(m.gap.count() == 3);
  CHECK(duration(m.gap.sum()) == 30ms);
  CHECK(m.gap.view().counts[token_gap_bounds.bucket_of(std::chrono::nanoseconds(10ms).count())] == 3);
  CHECK(m.step_time.count() == 6);
  CHECK(m.step_tokens.sum() == 64 + 64 + 2 + 3);
  CHECK(m.step_tokens.view().counts[step_tokens_bounds.bucket_of(64)] == 2);
  CHECK(rig.engine->counts().prompt_tokens == 130);
}

TEST_CASE("measures: a job that ends before its first token is in none of a job's times") {
  engine_rig rig;
  rig.submit(rig.job(1, 4, 200));
  rig.step();
  rig.engine->cancel(engine_rig::id(1));
  rig.run();
  const engine_measures& m = rig.engine->measures();
  CHECK(m.ttft.count() + m.queue.count() + m.prefill.count() + m.gap.count() == 0);
  CHECK(rig.engine->counts().prompt_tokens == 0);
  CHECK(m.step_time.count() == 1);
}

TEST_CASE("measures: over a crowd they are the sums of its endings and of the engine's steps") {
  const auto how = GENERATE(loop_kind::plain, loop_kind::overlapped);
  CAPTURE(static_cast<int>(how));
  auto c = small_config();
  c.max_batch = 8;
  c.kv_pages = 6;  // so few that jobs are preempted
  engine_rig rig(c, how);
  std::mt19937_64 random(11);
  std::vector<std::shared_ptr<recording_sink>> sinks;
  std::vector<time_point> created;
  std::uint64_t steps = 0, rows = 0;
  duration took{};
  for (std::uint64_t n = 0; n < 200 || !rig.engine->idle(); ++n) {
    if (n < 200) {
      auto j =
          rig.job(n % 3 == 0 ? n : n % 7, 1 + static_cast<std::uint32_t>(random() % 80), 1 + random() % 200);
      j.id = engine_rig::id(n);
      if (random() % 6 == 0) j.deadline = rig.clock.now() + std::chrono::milliseconds(random() % 400);
      created.push_back(j.created);
      sinks.push_back(rig.submit(std::move(j)));
    }
    if (random() % 20 == 0 && n < 200) rig.engine->cancel(engine_rig::id(random() % (n + 1)));
    for (int i = 0; i < 5; ++i) {
      rig.clock.advance(std::chrono::microseconds(random() % 20000));
      const auto report = rig.step();
      if (report.rows == 0) continue;
      ++steps;
      rows += report.rows;
      took += report.took;
    }
  }

  std::uint64_t begun = 0, gaps = 0, prompt = 0, cached = 0, found = 0;
  duration queue{}, prefill{}, decode{};
  for (std::size_t i = 0; i < sinks.size(); ++i) {
    const ending& e = *sinks[i]->end;
    if (!e.first_token) continue;
    ++begun;
    gaps += e.output_tokens - 1;
    prompt += e.input_tokens;
    cached += e.cached_tokens;
    found += e.cached_tokens > 0 ? 1 : 0;
    queue += *e.scheduled - created[i];
    prefill += *e.first_token - *e.scheduled;
    decode += *e.last_token - *e.first_token;
  }
  const auto counts = rig.engine->counts();
  REQUIRE(begun > 100);
  REQUIRE(begun < sinks.size());
  REQUIRE(counts.preemptions > 0);
  REQUIRE(found > 0);
  const engine_measures& m = rig.engine->measures();
  CHECK(m.ttft.count() == begun);
  CHECK(m.queue.count() == begun);
  CHECK(m.prefill.count() == begun);
  CHECK(duration(m.queue.sum()) == queue);
  CHECK(duration(m.prefill.sum()) == prefill);
  CHECK(duration(m.ttft.sum()) == queue + prefill);
  CHECK(m.gap.count() == gaps);
  CHECK(duration(m.gap.sum()) == decode);
  CHECK(counts.tokens == begun + gaps);
  CHECK(counts.prompt_tokens == prompt);
  CHECK(counts.cached_tokens == cached);
  CHECK(counts.prefix_hits == found);
  CHECK(m.step_time.count() == steps);
  CHECK(m.step_time.count() == counts.steps);
  CHECK(duration(m.step_time.sum()) == took);
  CHECK(m.step_tokens.count() == steps);
  CHECK(m.step_tokens.sum() == static_cast<std::int64_t>(rows));
}

}  // namespace weir::tests::engine_measures_test
