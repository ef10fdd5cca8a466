// A pool that gives way and grows between the steps of an engine: used pages move, cached ones leave, and no
// token is another one. A page without memory that is touched fails the test (toy_model.h).
#include <map>
#include <random>

#include "core/model/load.h"
#include "core/text/tokenizer/tokenizer.h"
#include "tests/support/budget.h"
#include "tests/support/engine_rig.h"
#include "tests/support/pool_mover.h"
#include "tests/support/seed.h"
#include "tests/support/toy_directory.h"

namespace weir::tests::engine_pool_test {

using namespace weir::core;
using namespace std::chrono_literals;
using Catch::Matchers::Contains;

namespace {

// Sequences of at most five pages.
constexpr std::uint32_t longest = 5 * page_tokens;

engine_config pools(std::uint32_t pages, std::uint32_t host) {
  auto c = small_config();
  c.kv_pages = pages;
  c.host_pages = host;
  c.max_seq_len = longest;
  return c;
}

// Lets the pool end at `pages`, whatever calls and steps it takes.
void shrink(engine_rig& rig, std::int32_t pages) {
  for (int calls = 0;; ++calls) {
    REQUIRE(calls < 100);
    const auto done = rig.engine->let_go_of_pages(pages);
    REQUIRE(done.has_value());
    REQUIRE(rig.engine->check_integrity().empty());
    if (*done) break;
    rig.step();
  }
  REQUIRE(rig.engine->set_pages(pages).has_value());
}

}  // namespace

TEST_CASE("pool: used pages above the end move below it, and tokens go on as they would have") {
  const auto how = GENERATE(loop_kind::plain, loop_kind::overlapped);
  engine_rig calm(pools(40, 0), how), rig(pools(40, 0), how);
  std::vector<std::shared_ptr<recording_sink>> wanted, found;
  for (std::uint64_t n = 1; n <= 6; ++n) wanted.push_back(calm.submit(calm.job(n, 100, 100)));
  for (std::uint64_t n = 1; n <= 6; ++n) found.push_back(rig.submit(rig.job(n, 100, 100)));
  calm.run();
  for (int i = 0; i < 40; ++i) rig.step();
  rig.engine->cancel(rig.id(1));  // frees pages at the beginning of the pool
  rig.engine->cancel(rig.id(2));
  const std::uint32_t used = rig.engine->counts().pages_used;
  shrink(rig, static_cast<std::int32_t>(used));
  CHECK(rig.engine->counts().pages_total == used);
  CHECK(rig.engine->counts().pages_used == used);
  CHECK(rig.engine->counts().moved_pages > 0);
  for (int i = 0; i < 5; ++i) rig.step();
  REQUIRE(rig.engine->set_pages(40).has_value());
  rig.engine->use_pages(40);
  CHECK(rig.engine->counts().pages_total == 40);
  rig.run();
  for (std::size_t i = 2; i < 6; ++i) CHECK(found[i]->ids() == wanted[i]->ids());
}

TEST_CASE("pool: cached pages above the end leave, to the host tier where there is one") {
  for (const std::uint32_t host : {0u, 32u}) {
    CAPTURE(host);
    engine_rig rig(pools(40, host));
    std::vector<std::vector<token_id>> before;
    for (std::uint64_t n = 1; n <= 6; ++n) before.push_back(rig.solo(rig.job(n, 10, 4 * page_tokens + 5)));
    REQUIRE(rig.engine->counts().pages_cached == 24);
    shrink(rig, 6);
    const auto after = rig.engine->counts();
    CHECK(after.pages_total == 6);
    CHECK(after.pages_free + after.pages_cached == 6);
    CHECK(after.left_pages >= 18);
    CHECK(after.host_used == (host ? after.left_pages : 0));
    for (std::uint64_t n = 1; n <= 6; ++n)
      CHECK(rig.solo(rig.job(n, 10, 4 * page_tokens + 5)) == before[n - 1]);
    CHECK((rig.engine->counts().restored > 0) == (host > 0));
  }
}

TEST_CASE("pool: a host tier gets a bounded number of pages a call") {
  engine_rig rig(pools(40, 32));
  for (std::uint64_t n = 1; n <= 6; ++n) rig.solo(rig.job(n, 10, 4 * page_tokens + 5));
  rig.toy->change_info().page_bytes = engine::most_saved_at_once / 4;
  const auto cached = rig.engine->counts().pages_cached;
  CHECK_FALSE(rig.engine->let_go_of_pages(6).value());
  CHECK(rig.engine->counts().pages_cached == cached - 4);
  CHECK(rig.engine->counts().host_used == 4);
  int calls = 1;
  while (!rig.engine->let_go_of_pages(6).value()) ++calls;
  CHECK(calls >= 4);
  CHECK(rig.engine->counts().pages_total == 6);
}

TEST_CASE("pool: what cannot be is refused by name, with the numbers, and nothing has changed") {
  engine_rig rig(pools(40, 0));
  for (std::uint64_t n = 1; n <= 6; ++n) rig.submit(rig.job(n, 200, 100));
  for (int i = 0; i < 20; ++i) rig.step();
  const std::uint32_t used = rig.engine->counts().pages_used;
  REQUIRE(used > 6);
  const auto full = rig.engine->let_go_of_pages(static_cast<std::int32_t>(used - 1));
  REQUIRE(!full);
  CHECK(full.error().code == errc::busy);
  CHECK_THAT(full.error().message, Contains(std::to_string(used) + " pages are in use"));
  for (const std::int32_t pages : {4, 0, -1, 41}) {
    const auto refused = rig.engine->let_go_of_pages(pages);
    REQUIRE(!refused);
    CHECK(refused.error().code == errc::does_not_fit);
  }
  CHECK(rig.engine->counts().pages_total == 40);
  CHECK(rig.engine->counts().moved_pages == 0);
  rig.toy->no_room = true;
  shrink(rig, static_cast<std::int32_t>(used));
  const auto no_room = rig.engine->set_pages(40);
  REQUIRE(!no_room);
  CHECK(no_room.error().code == errc::does_not_fit);
  rig.engine->use_pages(rig.engine->pages());
  rig.run();
}

TEST_CASE("pool: jobs that found no room enter once the pool has grown") {
  engine_rig rig(pools(12, 0));
  shrink(rig, 5);
  std::vector<std::shared_ptr<recording_sink>> sinks;
  for (std::uint64_t n = 1; n <= 3; ++n) sinks.push_back(rig.submit(rig.job(n, 50, 4 * page_tokens)));
  for (int i = 0; i < 10; ++i) rig.step();
  CHECK(rig.engine->counts().queued == 2);
  REQUIRE(rig.engine->set_pages(12).has_value());
  rig.engine->use_pages(12);
  rig.step();
  rig.step();
  CHECK(rig.engine->counts().queued < 2);
  rig.run();
}

TEST_CASE("pool: a device that fails while pages move ends the jobs with its fault") {
  engine_rig rig(pools(40, 0));
  rig.submit(rig.job(1, 10, 280));
  const auto last = rig.submit(rig.job(2, 100, 100));
  for (int i = 0; i < 10; ++i) rig.step();
  rig.engine->cancel(rig.id(1));
  rig.toy->copies_fail = true;
  const auto done = rig.engine->let_go_of_pages(5);
  REQUIRE(!done);
  CHECK(done.error().message == "no copy today");
  CHECK(rig.engine->fault());
  rig.run();
  CHECK(last->end->reason == finish_reason::error);
}

namespace {

constexpr std::uint64_t kinds = 30;

// Prompts of a few beginnings; every third kind is another draw of the one before it, as `n` asks for.
job of_kind(const engine_rig& rig, std::uint64_t kind, std::uint32_t vocab) {
  std::mt19937 random(static_cast<unsigned>(kind - kind % 3) * 977 + 5);
  auto j = rig.job(kind, 1 + random() % 60, 1);
  const std::uint64_t source = random() % 3;
  j.prompt = shared_prompt(random, source, 180, 40, vocab);
  j.sampling.temperature = kind % 5 == 0 ? 0.0f : 0.8f;
  if (kind % 4 == 1) j.sampling.repetition_penalty = 1.2f;
  j.ignore_eos = true;
  return j;
}

// Engines over the same model: `make` gives one of a configuration.
struct bench {
  std::function<std::unique_ptr<engine_rig>(engine_config, loop_kind)> make;
  std::uint32_t vocab = 60;
};

struct outcome {
  engine_counts counts;
  std::uint64_t shrunk = 0, grown = 0, busy = 0, taken_back = 0, waited = 0;
};

// One engine with random jobs, pauses and cancels, whose pool moves between steps.
void run_mix(engine_rig& rig, const bench& at, const std::vector<std::vector<token_id>>& alone,
             std::uint64_t seed, outcome& all) {
  std::mt19937_64 random(seed);
  pool_mover mover(*rig.engine, longest / page_tokens, random());
  std::map<std::uint64_t, std::shared_ptr<recording_sink>> sinks;
  const auto step = [&] {
    mover.move();
    const auto report = rig.step();
    if (report.wait_until > rig.clock.now()) rig.clock.set(report.wait_until);
  };
  for (int jobs = 0; jobs < 25; ++jobs) {
    const std::uint64_t kind = random() % kinds;
    if (!sinks.contains(kind)) sinks[kind] = rig.submit(of_kind(rig, kind, at.vocab));
    for (auto steps = random() % 12; steps > 0; --steps) step();
    const auto other = rig.id(random() % kinds);
    if (random() % 5 == 0) rig.engine->pause(other, rig.clock.now() + 20us);
    if (random() % 12 == 0) rig.engine->cancel(other);
  }
  for (int most = 100'000; !rig.engine->idle(); --most) {
    REQUIRE(most > 0);
    step();
  }
  REQUIRE(rig.engine->check_idle().empty());
  for (const auto& [kind, sink] : sinks) {
    INFO("job " << kind);
    REQUIRE(sink->finishes == 1);
    const auto ids = sink->ids();
    const auto& whole = alone[kind];
    REQUIRE(ids.size() <= whole.size());
    REQUIRE(std::equal(ids.begin(), ids.end(), whole.begin()));
    REQUIRE((sink->end->reason == finish_reason::cancel || ids.size() == whole.size()));
  }
  all.counts += rig.engine->counts();
  all.shrunk += mover.shrunk;
  all.grown += mover.grown;
  all.busy += mover.busy;
  all.taken_back += mover.taken_back;
  all.waited += mover.waited;
}

void check_mixes(const bench& at, loop_kind how, unsigned usual, std::uint64_t salt) {
  std::vector<std::vector<token_id>> alone;
  {
    const auto rig = at.make(pools(64, 0), loop_kind::plain);
    for (std::uint64_t k = 0; k < kinds; ++k) {
      auto j = of_kind(*rig, k, at.vocab);
      j.cache_salt = std::to_string(k);
      alone.push_back(rig->solo(std::move(j)));
    }
  }
  outcome all;
  const unsigned engines = rounds(usual);
  for (unsigned i = 0; i < engines; ++i) {
    INFO("engine " << i);
    std::mt19937_64 random(drawn_seed(salt + i));
    auto c = pools(static_cast<std::uint32_t>(8 + random() % 14), random() % 3 == 0 ? 0 : 24);
    c.max_batch = static_cast<std::uint32_t>(2 + random() % 8);
    c.prefill_rows = static_cast<std::uint32_t>(1 + random() % 100);
    const auto rig = at.make(c, how);
    run_mix(*rig, at, alone, random(), all);
  }
  if (engines < 20) return;  // what befalls a few engines is luck
  CHECK(all.shrunk > engines);
  CHECK(all.grown > engines);
  CHECK(all.counts.moved_pages > engines);
  CHECK(all.counts.left_pages > engines);
  CHECK(all.busy > 0);
  CHECK(all.taken_back > 0);
  CHECK((all.waited > 0 || how == loop_kind::plain));
  CHECK(all.counts.restored > 0);
  CHECK(all.counts.preemptions > 0);
  CHECK(all.counts.prefix_hits > engines);
}

bench toys() {
  return {[](engine_config c, loop_kind how) { return std::make_unique<engine_rig>(c, how); }};
}

bench real(const std::string& device) {
  const auto dir = std::make_shared<temporary_dir>();
  write_toy_directory(dir->path());
  const auto make = [dir, backend = make_backend(device, 1).value(),
                     words = *load_tokenizer(dir->path().string())](engine_config c, loop_kind how) {
    auto m = std::move(load_model(dir->path().string(), backend).value().weights);
    if (how == loop_kind::overlapped) m = std::make_unique<late_model>(std::move(m));
    auto rig = std::make_unique<engine_rig>(std::move(m), words, c);
    REQUIRE(rig->engine->page_step() == 1);
    return rig;
  };
  return {make, 256};
}

}  // namespace

TEST_CASE("pool: it moves at random beside random jobs, and every job's tokens are those it has alone") {
  check_mixes(toys(), loop_kind::plain, 40, 1000);
  check_mixes(toys(), loop_kind::overlapped, 40, 2000);
}

TEST_CASE("pool: the same over real layers, reference and cpu") {
  check_mixes(real("reference"), loop_kind::plain, 8, 3000);
  check_mixes(real("reference"), loop_kind::overlapped, 8, 4000);
  check_mixes(real("cpu"), loop_kind::overlapped, 8, 5000);
}

}  // namespace weir::tests::engine_pool_test
