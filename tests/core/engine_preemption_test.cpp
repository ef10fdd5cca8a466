// What happens when there are fewer pages than the running jobs would like: growth, preemption, waiting,
// passing.
#include "core/engine.h"
#include "core/schedule/scheduler.h"
#include "tests/support/engine_rig.h"

namespace weir::tests::engine_preemption_test {

using namespace weir::core;
using namespace std::chrono_literals;

namespace {

engine_config pages(std::uint32_t n) {
  auto c = small_config();
  c.kv_pages = n;
  return c;
}

std::vector<token_id> fresh(job j) {
  engine_rig rig;
  return rig.solo(std::move(j));
}

sequence_view view_of(const engine_rig& rig, std::uint64_t n) {
  std::vector<sequence_view> all;
  rig.engine->list(all);
  for (const auto& v : all)
    if (v.id == rig.id(n)) return v;
  return {};
}

}  // namespace

TEST_CASE("a sequence takes pages as it grows") {
  engine_rig rig(pages(16));
  rig.submit(rig.job(1, 200, 60));
  rig.step();
  CHECK(rig.engine->counts().pages_used == 1);
  for (int i = 0; i < 4; ++i) rig.step();
  CHECK(rig.engine->counts().pages_used == 1);  // 64 rows
  rig.step();
  CHECK(rig.engine->counts().pages_used == 2);
  for (int i = 0; i < 64; ++i) rig.step();
  CHECK(rig.engine->counts().pages_used == 3);
}

TEST_CASE("where pages run out the youngest waits, and every job gets the tokens it gives alone") {
  engine_rig rig(pages(8));
  std::vector<job> jobs;
  std::vector<std::shared_ptr<recording_sink>> sinks;
  for (std::uint64_t n = 0; n < 6; ++n) {
    jobs.push_back(rig.job(n, 250, 40 + n));
    sinks.push_back(rig.submit(jobs.back()));
  }
  while (rig.engine->counts().preemptions == 0) rig.step();
  CHECK(rig.engine->counts().queued > 0);
  CHECK(view_of(rig, 0).preemptions == 0);
  rig.run(1000000);
  CHECK(rig.engine->counts().preemptions > 2);
  for (std::size_t n = 0; n < jobs.size(); ++n) {
    INFO("job " << n);
    CHECK(sinks[n]->finishes == 1);
    CHECK(sinks[n]->end->reason == finish_reason::length);
    CHECK(sinks[n]->ids() == fresh(jobs[n]));
    CHECK(sinks[n]->end->cached_tokens <= jobs[n].prompt.size());
  }
}

TEST_CASE("the lowest priority is preempted first, however old it is, and the highest never for it") {
  engine_rig rig(pages(6));
  auto low = rig.job(1, 300, 50);
  low.priority = -1;
  auto high = rig.job(2, 300, 50);
  auto a = rig.submit(low);
  rig.step();
  auto b = rig.submit(high);
  while (!b->end) rig.step();
  CHECK(rig.engine->counts().preemptions > 0);
  CHECK(b->end->max_gap <= 2us);
  rig.run();
  CHECK(a->ids() == fresh(low));
  CHECK(b->ids() == fresh(high));
}

TEST_CASE("a preempted job keeps its tokens and its place: its client sees a gap, and nothing else") {
  engine_rig rig(pages(4));
  auto old = rig.job(1, 190, 50), young = rig.job(2, 150, 50);
  rig.submit(old);
  auto sink = rig.submit(young);
  while (rig.engine->counts().preemptions == 0) rig.step();
  const auto had = sink->tokens.size();
  CHECK(had > 10);
  CHECK(view_of(rig, 2).state == sequence_state::queued);
  CHECK(view_of(rig, 2).output_tokens == had);
  CHECK(view_of(rig, 2).pages == 0);
  auto later = rig.submit(rig.job(3, 5, 5));
  SECTION("and goes on before those that came after it") {
    rig.run();
    CHECK(sink->ids() == fresh(young));
    CHECK(sink->end->max_gap > 20us);
    CHECK(sink->end->scheduled);
    CHECK(sink->end->cached_tokens == 0);  // its own pages, found again, do not count
  }
  SECTION("or is cancelled where it waits") {
    CHECK(rig.engine->cancel(rig.id(2)));
    CHECK(sink->end->reason == finish_reason::cancel);
    CHECK(sink->end->output_tokens == had);
    rig.run();
  }
  SECTION("or finds its deadline there") {
    CHECK(rig.engine->cancel(rig.id(2)));
    young.deadline = rig.clock.now() + 120us;
    young.id = rig.id(9);
    auto late = rig.submit(young);
    rig.run();
    CHECK(late->finishes == 1);
  }
}

TEST_CASE("a preempted job's last tokens reach a slow sink while it waits") {
  engine_rig rig(pages(4));
  auto sink = std::make_shared<recording_sink>();
  sink->room = 0;
  rig.submit(rig.job(1, 190, 50));
  auto young = rig.job(2, 150, 50);
  young.sink = sink;
  rig.engine->submit(young);
  while (rig.engine->counts().preemptions == 0) rig.step();
  CHECK(sink->tokens.empty());
  sink->room = 3;
  rig.step();
  CHECK(sink->tokens.size() == 3);
  sink->room = 1000;
  rig.run();
  CHECK(sink->ids() == fresh(young));
}

TEST_CASE("two jobs that need the whole pool do not evict each other for ever") {
  engine_rig rig(pages(4));
  std::vector<std::shared_ptr<recording_sink>> sinks;
  for (std::uint64_t n = 0; n < 4; ++n) sinks.push_back(rig.submit(rig.job(n, 200, 50)));
  rig.run(4000);  // one after the other, the jobs would need 4 * 200 steps
  for (const auto& s : sinks) CHECK(s->tokens.size() == 200);
  CHECK(rig.engine->counts().preemptions <= 12);
}

TEST_CASE("a small job passes a big one that finds no room, but not more than four do") {
  auto c = pages(8);
  engine_rig rig(c);
  auto first = rig.submit(rig.job(1, 100, 200));  // four pages, then five
  rig.step();
  auto big = rig.submit(rig.job(2, 5, 400));  // seven pages
  std::vector<std::shared_ptr<recording_sink>> small;
  for (std::uint64_t n = 10; n < 20; ++n) small.push_back(rig.submit(rig.job(n, 3, 10)));
  while (!first->end) {
    rig.step();
    CHECK(big->tokens.empty());
  }
  const auto passed =
      std::count_if(small.begin(), small.end(), [](const auto& s) { return s->end.has_value(); });
  CHECK(passed == scheduler::most_passes);
  rig.run();
  CHECK(big->end->scheduled < small.back()->end->scheduled);
}

TEST_CASE("keys alternate, however many jobs one of them has") {
  auto c = pages(64);
  c.max_batch = 1;
  engine_rig rig(c);
  std::vector<std::pair<std::uint64_t, std::shared_ptr<recording_sink>>> sinks;
  const auto submit = [&](std::uint64_t key) {
    auto j = rig.job(100 + sinks.size(), 2);
    j.key = key;
    sinks.emplace_back(key, rig.submit(j));
  };
  for (int i = 0; i < 20; ++i) submit(1);
  submit(2);
  submit(3);
  submit(2);
  std::vector<std::uint64_t> order;
  std::vector<bool> seen(sinks.size());
  while (!rig.engine->idle()) {
    rig.step();
    for (std::size_t i = 0; i < sinks.size(); ++i) {
      if (seen[i] || !sinks[i].second->end) continue;
      seen[i] = true;
      order.push_back(sinks[i].first);
    }
  }
  CHECK(std::vector(order.begin(), order.begin() + 6) == std::vector<std::uint64_t>{1, 2, 3, 1, 2, 1});
  CHECK(std::count(order.begin(), order.end(), 1u) == 20);
}

TEST_CASE("of several prompts the shortest is computed first, and a long one is not overtaken for ever") {
  auto c = pages(256);
  c.prefill_rows = 64;
  engine_rig rig(c);
  auto longest = rig.submit(rig.job(1, 1, 640));
  rig.step();
  auto quick = rig.submit(rig.job(2, 1, 60));
  rig.step();
  CHECK(quick->end);
  CHECK_FALSE(longest->end);
  std::uint64_t short_ones = 0;
  for (std::uint64_t n = 10; !longest->end; ++n) {  // one more every step, for ever
    REQUIRE(n < 100);
    rig.submit(rig.job(n, 1, 64));
    rig.step();
    ++short_ones;
  }
  CHECK(short_ones <= 2 * 640 / 64);
  rig.run();
}

TEST_CASE(
    "ten times more demand than the pool holds: everybody is served in the end, with the right tokens") {
  engine_rig rig(pages(10));
  std::vector<job> jobs;
  std::vector<std::shared_ptr<recording_sink>> sinks;
  for (std::uint64_t n = 0; n < 50; ++n) {  // some 115 pages
    jobs.push_back(rig.job(n, 80 + static_cast<std::uint32_t>(n * 7 % 60), 20 + n * 3 % 40));
    sinks.push_back(rig.submit(jobs.back()));
  }
  rig.run();
  CHECK(rig.engine->counts().preemptions > 5);
  for (std::size_t n = 0; n < jobs.size(); ++n) {
    INFO("job " << n);
    REQUIRE(sinks[n]->finishes == 1);
    CHECK(sinks[n]->ids() == fresh(jobs[n]));
  }
}

}  // namespace weir::tests::engine_preemption_test
