// An engine whose model sleeps and wakes: what becomes of cached pages, and that tokens are what they were.
#include "tests/support/engine_rig.h"
#include "tests/support/seed.h"

namespace weir::tests::engine_sleep_test {

using namespace weir::core;

namespace {

engine_config pools(std::uint32_t pages, std::uint32_t host) {
  auto c = small_config();
  c.kv_pages = pages;
  c.host_pages = host;
  return c;
}

void nap(engine_rig& rig) {
  REQUIRE(rig.engine->idle());
  REQUIRE(rig.engine->sleep().has_value());
  CHECK(rig.engine->check_integrity().empty());
  REQUIRE(rig.engine->wake().has_value());
}

}  // namespace

TEST_CASE("sleep: cached pages are lost without a host tier, and prompts are computed again") {
  engine_rig rig(pools(64, 0));
  const auto first = rig.submit(rig.job(1, 10, 5 * page_tokens));
  rig.run();
  CHECK(rig.engine->counts().pages_cached >= 5);
  nap(rig);
  CHECK(rig.engine->counts().pages_cached == 0);
  CHECK(rig.engine->counts().pages_free == 64);
  const auto second = rig.submit(rig.job(1, 10, 5 * page_tokens));
  rig.run();
  CHECK(first->ids() == second->ids());
  CHECK(rig.engine->counts().prefix_hits == 0);
}

TEST_CASE("sleep: cached pages go to the host tier, and are restored when a prompt asks for them") {
  engine_rig rig(pools(64, 32));
  const auto first = rig.submit(rig.job(1, 10, 5 * page_tokens));
  rig.run();
  nap(rig);
  CHECK(rig.engine->counts().host_used >= 5);
  const auto second = rig.submit(rig.job(1, 10, 5 * page_tokens));
  rig.run();
  CHECK(first->ids() == second->ids());
  CHECK(rig.engine->counts().restored >= 4);
  CHECK(rig.engine->counts().prefix_hits == 1);
}

TEST_CASE("sleep: a small host tier keeps the beginnings of what was cached") {
  engine_rig rig(pools(64, 2));
  rig.submit(rig.job(1, 10, 5 * page_tokens));
  rig.run();
  nap(rig);
  CHECK(rig.engine->counts().host_used == 2);
  rig.submit(rig.job(1, 10, 5 * page_tokens));
  rig.run();
  CHECK(rig.engine->counts().restored == 2);
}

TEST_CASE("sleep: an engine whose sleep fails is awake, and computes as before") {
  engine_rig rig(pools(64, 32));
  const auto first = rig.submit(rig.job(1, 10, 5 * page_tokens));
  rig.run();
  rig.toy->no_sleep = true;
  CHECK(rig.engine->sleep_bytes() == 1000u);
  CHECK(rig.engine->sleep().error().code == errc::does_not_fit);
  const auto second = rig.submit(rig.job(1, 10, 5 * page_tokens));
  rig.run();
  CHECK(first->ids() == second->ids());
}

TEST_CASE("sleep: whatever was cached and whatever sleeps, a job's tokens are those it has alone") {
  std::mt19937_64 random(drawn_seed(5));
  engine_rig rig(pools(40, 24)), calm(pools(200, 0));
  std::uint64_t naps = 0;
  for (int i = 0; i < 100; ++i) {
    const auto kind = 1 + random() % 5;
    const auto tokens = static_cast<std::uint32_t>(1 + random() % 40);
    const auto prompt = 1 + random() % (4 * page_tokens);
    REQUIRE(rig.solo(rig.job(kind, tokens, prompt)) == calm.solo(calm.job(kind, tokens, prompt)));
    if (random() % 3 != 0) continue;
    nap(rig);
    ++naps;
  }
  CHECK(naps > 10);
  CHECK(rig.engine->counts().restored > 0);
}

}  // namespace weir::tests::engine_sleep_test
