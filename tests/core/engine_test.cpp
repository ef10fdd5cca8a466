#include "core/engine.h"

#include "tests/support/engine_rig.h"

namespace weir::tests::engine_test {

using namespace weir::core;
using namespace std::chrono_literals;

namespace {

// A mixture of what jobs ask for, by number.
job varied(const engine_rig& rig, std::uint64_t n) {
  auto j = rig.job(n, 20 + static_cast<std::uint32_t>(n), 1 + n * 11);
  j.sampling.temperature = n % 4 == 0 ? 0.0f : 0.9f;
  if (n % 3 == 0) j.sampling.top_k = 20;
  if (n % 5 == 0) j.sampling.top_p = 0.8f;
  if (n % 7 == 0) j.sampling.repetition_penalty = 1.3f;
  if (n % 6 == 1) j.sampling.min_p = 0.2f;
  if (n % 8 == 3) j.sampling.logit_bias = {{5, 2.0f}, {6, -100.0f}};
  if (n % 9 == 2) j.stop = {"ab", "xyz"};
  return j;
}

}  // namespace

TEST_CASE("a job gets max_tokens tokens, one a step, then length") {
  engine_rig rig;
  auto sink = rig.submit(rig.job(1, 10));
  int steps = 0;
  while (!rig.engine->idle()) {
    CHECK(rig.step().tokens == 1);
    CHECK(rig.engine->check_idle().empty() == rig.engine->idle());  // the job holds a page
    ++steps;
  }
  CHECK(steps == 10);
  CHECK(sink->tokens.size() == 10);
  CHECK(sink->finishes == 1);
  CHECK(sink->end->reason == finish_reason::length);
  CHECK(sink->end->input_tokens == 5);
  CHECK(sink->end->output_tokens == 10);
  CHECK(sink->end->scheduled.has_value());
  CHECK(sink->end->first_token == sink->tokens.front().at);
  CHECK(sink->end->last_token == sink->tokens.back().at);
}

TEST_CASE("32 jobs at once give, job by job, what each gives alone") {
  engine_rig rig;
  std::vector<std::vector<token_id>> alone;
  for (std::uint64_t n = 0; n < 32; ++n) alone.push_back(rig.solo(varied(rig, n)));
  std::vector<std::shared_ptr<recording_sink>> sinks;
  for (std::uint64_t n = 0; n < 32; ++n) sinks.push_back(rig.submit(varied(rig, n)));
  rig.run();
  for (std::uint64_t n = 0; n < 32; ++n) {
    INFO("job " << n);
    CHECK(alone[n].size() > 5);
    CHECK(sinks[n]->ids() == alone[n]);
    CHECK(sinks[n]->finishes == 1);
  }
}

TEST_CASE("32 simulated jobs at once give what each gives alone, together and staggered") {
  for (const bool staggered : {false, true}) {
    engine_rig rig(sim_spec{.staggered = staggered});
    std::vector<std::shared_ptr<recording_sink>> sinks;
    for (std::uint64_t n = 0; n < 32; ++n) sinks.push_back(rig.submit(rig.job(n, 10 + n, 1 + 9 * n)));
    rig.run();
    for (std::uint64_t n = 0; n < 32; ++n) {
      REQUIRE(sinks[n]->tokens.size() == 10 + n);
      for (std::uint32_t i = 0; i < 10 + n; ++i) CHECK(sinks[n]->tokens[i].id == sim_token(n, i));
    }
  }
}

TEST_CASE("how a prompt is cut into slices changes no token") {
  std::vector<std::vector<token_id>> seen;
  for (const std::uint32_t rows : {1u, 7u, 64u, 65u, 512u}) {
    auto c = small_config();
    c.prefill_rows = rows;
    engine_rig rig(c);
    auto a = rig.submit(rig.job(1, 20, 200));
    auto b = rig.submit(rig.job(2, 20, 129));
    rig.run();
    auto both = a->ids();
    for (const auto id : b->ids()) both.push_back(id);
    seen.push_back(both);
  }
  for (const auto& s : seen) CHECK(s == seen[0]);
}

TEST_CASE("a step is one forward for the whole batch, and prompts share it with running streams") {
  engine_rig rig;
  std::uint32_t most_prompt_rows = 0;
  rig.toy->before_forward = [&](const batch& b) -> result<void> {
    std::uint32_t prompt_rows = 0;
    for (const auto& s : b.slices) {
      if (s.rows > 1 || s.logits_row < 0) prompt_rows += s.rows;
    }
    most_prompt_rows = std::max(most_prompt_rows, prompt_rows);
    return {};
  };
  std::vector<std::shared_ptr<recording_sink>> sinks;
  for (std::uint64_t n = 0; n < 8; ++n) sinks.push_back(rig.submit(rig.job(n, 50, 3)));
  rig.step();
  auto late = rig.submit(rig.job(100, 5, 300));
  for (int i = 0; i < 4; ++i) {
    CHECK(rig.step().tokens == 8);  // nobody waits while 64 rows a step of the long prompt are computed
    CHECK(late->tokens.empty());
  }
  CHECK(rig.step().tokens == 9);
  CHECK(rig.toy->forwards == 6);
  CHECK(most_prompt_rows == 64);
  rig.run();
}

TEST_CASE("jobs join and leave between steps, and freed places are taken at once") {
  auto c = small_config();
  c.max_batch = 2;
  engine_rig rig(c);
  auto a = rig.submit(rig.job(1, 3));
  auto b = rig.submit(rig.job(2, 6));
  auto d = rig.submit(rig.job(3, 2));
  CHECK(rig.step().sequences == 2);
  CHECK(rig.engine->counts().queued == 1);
  rig.step();
  rig.step();
  CHECK(a->end);
  CHECK(d->tokens.empty());
  rig.step();
  CHECK(d->tokens.size() == 1);
  rig.run();
  CHECK(b->tokens.size() == 6);
}

TEST_CASE("waiting jobs enter by priority, then age") {
  auto c = small_config();
  c.max_batch = 1;
  engine_rig rig(c);
  std::vector<std::shared_ptr<recording_sink>> sinks;
  for (const auto& [n, priority] : {std::pair{0, 0}, {1, 0}, {2, 5}, {3, -1}, {4, 5}}) {
    auto j = rig.job(static_cast<std::uint64_t>(n), 1);
    j.priority = priority;
    sinks.push_back(rig.submit(j));
  }
  std::vector<int> order;
  while (!rig.engine->idle()) {
    rig.step();
    for (int n = 0; n < 5; ++n) {
      if (sinks[n]->end && std::find(order.begin(), order.end(), n) == order.end()) order.push_back(n);
    }
  }
  CHECK(order == std::vector<int>{2, 4, 0, 1, 3});
}

TEST_CASE("a job waits until its pages are free, and one for each that runs") {
  auto c = small_config();
  c.kv_pages = 4;
  engine_rig rig(c);
  auto a = rig.submit(rig.job(1, 10, 129));  // 3 pages
  auto b = rig.submit(rig.job(2, 60, 64));   // 1 page, and 1 that the other may grow into
  rig.step();
  rig.step();
  CHECK(rig.engine->counts().pages_used == 3);
  CHECK(rig.engine->counts().queued == 1);
  CHECK(rig.engine->counts().queued_tokens == 64);
  while (!a->end) rig.step();
  CHECK(b->tokens.empty());
  rig.run();
  CHECK(a->tokens.size() == 10);
  CHECK(b->tokens.size() == 60);
}

TEST_CASE("a prompt that can never fit is refused with the numbers") {
  auto c = small_config();
  c.kv_pages = 2;
  SECTION("the pool") {
    engine_rig rig(c);
    auto sink = rig.submit(rig.job(1, 1, 128));
    REQUIRE(sink->end);
    CHECK(sink->end->reason == finish_reason::error);
    CHECK(sink->end->fault->code == errc::does_not_fit);
    CHECK(sink->end->fault->message.find("128 tokens and needs 3 pages") != std::string::npos);
    CHECK(rig.engine->idle());
  }
  SECTION("the context") {
    engine_rig rig(c, letters(61), 100);
    auto sink = rig.submit(rig.job(1, 1, 100));
    REQUIRE(sink->end);
    CHECK(sink->end->fault->code == errc::prompt_too_long);
    CHECK(sink->end->fault->message.find("100 tokens") != std::string::npos);
    auto fits = rig.submit(rig.job(2, 50, 99));
    rig.run();
    CHECK(fits->tokens.size() == 1);
    CHECK(fits->end->reason == finish_reason::length);
  }
}

TEST_CASE("the context, --max-seq-len and the pool end a sequence with length") {
  auto c = small_config();
  SECTION("context") {
    engine_rig rig(c, letters(61), 40);
    auto sink = rig.submit(rig.job(1, 1000, 10));
    rig.run();
    CHECK(sink->tokens.size() == 30);
    CHECK(sink->end->reason == finish_reason::length);
  }
  SECTION("max_seq_len") {
    c.max_seq_len = 50;
    engine_rig rig(c);
    auto sink = rig.submit(rig.job(1, 1000, 10));
    rig.run();
    CHECK(sink->tokens.size() == 40);
  }
  SECTION("pool") {
    c.kv_pages = 1;
    engine_rig rig(c);
    auto sink = rig.submit(rig.job(1, 1000, 10));
    rig.run();
    CHECK(sink->tokens.size() == 54);
    CHECK(sink->end->reason == finish_reason::length);
  }
}

TEST_CASE("the list names every job with its state") {
  auto c = small_config();
  c.max_batch = 2;
  engine_rig rig(c);
  rig.submit(rig.job(1, 10));
  rig.step();
  rig.submit(rig.job(2, 10, 100));
  rig.submit(rig.job(3, 10));
  rig.step();
  std::vector<sequence_view> jobs;
  rig.engine->list(jobs);
  REQUIRE(jobs.size() == 3);
  CHECK(jobs[0].state == sequence_state::decoding);
  CHECK(jobs[0].output_tokens == 2);
  CHECK(jobs[0].pages == 1);
  CHECK(jobs[1].state == sequence_state::prefilling);
  CHECK(jobs[1].prompt_tokens == 100);
  CHECK(jobs[2].state == sequence_state::queued);
  CHECK(jobs[2].pages == 0);
  const auto n = rig.engine->counts();
  CHECK(n.decoding == 1);
  CHECK(n.prefilling == 1);
  CHECK(n.queued == 1);
  CHECK(n.steps == 2);
  CHECK(n.tokens == 2);
  CHECK(n.pages_used + n.pages_free == n.pages_total);
}

TEST_CASE("an engine that is destroyed ends what is left with an error") {
  std::vector<std::shared_ptr<recording_sink>> sinks;
  {
    auto c = small_config();
    c.max_batch = 1;
    engine_rig rig(c);
    sinks.push_back(rig.submit(rig.job(1, 10)));
    sinks.push_back(rig.submit(rig.job(2, 10)));
    rig.step();
  }
  for (const auto& s : sinks) {
    CHECK(s->finishes == 1);
    CHECK(s->end->reason == finish_reason::error);
    CHECK(s->end->fault->code == errc::unavailable);
  }
}

}  // namespace weir::tests::engine_test
