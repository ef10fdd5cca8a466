// What jobs share: pages of live and of ended jobs, and copies of pages that agree in part. No job's tokens
// show it.
#include "core/engine.h"
#include "tests/support/engine_rig.h"

namespace weir::tests::engine_prefix_test {

using namespace weir::core;

namespace {

std::vector<token_id> text(std::size_t tokens, std::uint64_t seed) {
  std::vector<token_id> ids;
  for (std::size_t i = 0; i < tokens; ++i)
    ids.push_back(static_cast<token_id>((seed * 31 + i * i * 7 + i) % 60));
  return ids;
}

job asking(const engine_rig& rig, std::uint64_t n, std::vector<token_id> prompt,
           std::uint32_t max_tokens = 20) {
  auto j = rig.job(n, max_tokens);
  j.prompt = std::move(prompt);
  return j;
}

// The job's tokens in a new engine, whose cache is empty.
std::vector<token_id> fresh(job j) {
  engine_rig rig;
  return rig.solo(std::move(j));
}

std::uint64_t rows_of(engine_rig& rig) {
  std::uint64_t rows = 0;
  while (!rig.engine->idle()) rows += rig.step().rows;
  return rows;
}

}  // namespace

TEST_CASE("a prompt that was computed before is not computed again, but for its last token") {
  engine_rig rig;
  const auto first = asking(rig, 1, text(200, 1));
  auto a = rig.submit(first);
  CHECK(rows_of(rig) == 200 + 19);
  CHECK(rig.engine->counts().pages_used == 0);
  CHECK(rig.engine->counts().pages_cached == 3);
  CHECK(a->end->cached_tokens == 0);

  auto again = rig.submit(asking(rig, 1, text(200, 1)));
  CHECK(rows_of(rig) == 8 + 19);  // three pages of 64 are there
  CHECK(again->end->cached_tokens == 192);
  CHECK(again->ids() == a->ids());
  CHECK(rig.engine->counts().prefix_hits == 1);
  CHECK(rig.engine->counts().cached_tokens == 192);
}

TEST_CASE("the last token of a prompt is computed even where all its pages are there") {
  engine_rig rig;
  auto a = rig.submit(asking(rig, 1, text(128, 1)));
  rig.run();
  auto b = rig.submit(asking(rig, 1, text(128, 1)));
  rig.run();
  CHECK(b->end->cached_tokens == 127);  // one page shared, all but the last row of the other copied
  CHECK(a->ids() == b->ids());
}

TEST_CASE("an answer is part of the prefix of what follows it") {
  engine_rig rig;
  auto a = rig.submit(asking(rig, 1, text(100, 1), 60));
  rig.run();
  auto talk = text(100, 1);
  for (const auto id : a->ids()) talk.push_back(id);
  for (const auto id : text(30, 2)) talk.push_back(id);
  const auto next = asking(rig, 2, talk);
  auto b = rig.submit(next);
  rig.run();
  CHECK(b->end->cached_tokens == 128);
  CHECK(b->ids() == fresh(next));
}

TEST_CASE("of a page that agrees in part a copy is taken, and the original stays as it is") {
  engine_rig rig;
  auto a = rig.submit(asking(rig, 1, text(128, 1)));
  rig.run();
  for (const std::uint32_t equal : {1u, 40u, 63u, 65u, 100u, 127u}) {
    INFO("equal " << equal);
    auto prompt = text(128, 1);
    for (std::size_t i = equal; i < prompt.size(); ++i) prompt[i] = (prompt[i] + 1) % 60;
    prompt.resize(std::max<std::size_t>(equal + 10, 20));
    const auto next = asking(rig, 10 + equal, prompt);
    auto b = rig.submit(next);
    rig.run();
    CHECK(b->end->cached_tokens == equal);
    CHECK(b->ids() == fresh(next));
  }
  auto again = rig.submit(asking(rig, 1, text(128, 1)));
  rig.run();
  CHECK(again->ids() == a->ids());
}

TEST_CASE("jobs that run at once share the pages of their common beginning") {
  engine_rig rig;
  std::vector<job> jobs;
  std::vector<std::shared_ptr<recording_sink>> sinks;
  for (std::uint64_t n = 0; n < 16; ++n) {
    auto prompt = text(640, 1);
    for (const auto id : text(30 + n, 50 + n)) prompt.push_back(id);
    jobs.push_back(asking(rig, n, prompt));
    sinks.push_back(rig.submit(jobs.back()));
  }
  std::uint64_t rows = 0;
  std::uint32_t most_pages = 0;
  while (!rig.engine->idle()) {
    rows += rig.step().rows;
    most_pages = std::max(most_pages, rig.engine->counts().pages_used);
  }
  std::uint64_t own = 0;
  for (const auto& j : jobs) own += j.prompt.size() - 640;
  const std::uint64_t decoded = jobs.size() * (jobs[0].max_tokens - 1);  // rows of outputs
  CHECK(rows <= 640 + own + decoded);                                   // the common part once
  for (std::size_t n = 0; n < jobs.size(); ++n) {
    INFO("job " << n);
    CHECK(sinks[n]->ids() == fresh(jobs[n]));
    CHECK((n == 0 || sinks[n]->end->cached_tokens >= 640));
  }
}

TEST_CASE("who waits for a page that another computes goes on when that one is cancelled") {
  engine_rig rig;
  const auto one = asking(rig, 1, text(600, 1)), two = asking(rig, 2, text(600, 1));
  auto a = rig.submit(one);
  auto b = rig.submit(two);
  for (int i = 0; i < 3; ++i) rig.step();
  CHECK(rig.engine->cancel(one.id));
  rig.run();
  CHECK(b->ids() == fresh(two));
  CHECK(b->end->cached_tokens >= 128);
}

TEST_CASE("jobs of different salts share nothing") {
  engine_rig rig;
  auto j = asking(rig, 1, text(200, 1));
  j.cache_salt = "one";
  rig.submit(j);
  rig.run();
  j.cache_salt = "two";
  auto other = rig.submit(j);
  rig.run();
  CHECK(other->end->cached_tokens == 0);
  j.cache_salt.clear();
  auto none = rig.submit(j);
  rig.run();
  CHECK(none->end->cached_tokens == 0);
  j.cache_salt = "one";
  auto same = rig.submit(j);
  rig.run();
  CHECK(same->end->cached_tokens == 192);
  CHECK(same->ids() == other->ids());
}

TEST_CASE("cached pages give way to jobs that need them, and a full pool of them refuses nobody") {
  auto c = small_config();
  c.kv_pages = 8;
  engine_rig rig(c);
  for (std::uint64_t n = 0; n < 30; ++n) {
    const auto j = asking(rig, n, text(100 + 13 * n % 300, n));
    auto sink = rig.submit(j);
    rig.run();
    INFO("job " << n);
    CHECK(sink->ids() == fresh(j));
  }
  CHECK(rig.engine->counts().pages_cached > 0);
}

}  // namespace weir::tests::engine_prefix_test
