// Pauses, in both loops: a job can be paused in any state, then holds no place in the batch, is preempted
// first, and gives the tokens that it gives alone.
#include "core/engine.h"
#include "tests/support/engine_rig.h"

namespace weir::tests::engine_pause_test {

using namespace weir::core;
using namespace std::chrono_literals;

namespace {

constexpr loop_kind loops[] = {loop_kind::plain, loop_kind::overlapped};
constexpr time_point never = time_point::max();

sequence_view view_of(const engine_rig& rig, std::uint64_t n) {
  std::vector<sequence_view> all;
  rig.engine->list(all);
  for (const auto& v : all)
    if (v.id == rig.id(n)) return v;
  return {};
}

engine_config tight(std::uint32_t max_batch, std::uint32_t pages) {
  auto c = small_config();
  c.max_batch = max_batch;
  c.kv_pages = pages;
  return c;
}

}  // namespace

TEST_CASE("pause: at every step of a life, for any number of steps, the tokens stay the same") {
  for (const auto how : loops) {
    const auto alone = engine_rig().solo(engine_rig().job(1, 20, 150));
    for (int at = 0; at < 28; ++at) {
      for (const int rest : {0, 1, 4}) {
        INFO("paused at " << at << " for " << rest);
        engine_rig rig(small_config(), how);
        auto a = rig.submit(rig.job(1, 20, 150));
        auto b = rig.submit(rig.job(2, 40, 3));
        for (int i = 0; i < at; ++i) rig.step();
        const bool over = a->end.has_value();
        CHECK(rig.engine->pause(rig.id(1), never) == !over);
        CHECK(rig.engine->counts().paused == (over ? 0 : 1));
        for (int i = 0; i < rest; ++i) rig.step();
        CHECK(rig.engine->resume(rig.id(1)) == !a->end.has_value());
        rig.run();
        CHECK(a->ids() == alone);
        CHECK(b->ids() == engine_rig().solo(rig.job(2, 40, 3)));
      }
    }
  }
}

TEST_CASE("pause: it takes the token in flight, then rests with its pages, and goes on by itself") {
  for (const auto how : loops) {
    engine_rig rig(small_config(), how);
    auto a = rig.submit(rig.job(1, 20));
    while (a->tokens.size() < 4) rig.step();
    const time_point until = rig.clock.now() + 1s;
    REQUIRE(rig.engine->pause(rig.id(1), until));
    rig.step();
    CHECK(a->tokens.size() == (how == loop_kind::plain ? 4 : 5));
    const auto report = rig.step();
    CHECK(report.rows == 0);
    CHECK(report.wait_until == until);
    CHECK_FALSE(rig.engine->idle());
    CHECK(view_of(rig, 1).state == sequence_state::paused);
    CHECK(view_of(rig, 1).pages == 1);
    CHECK(rig.engine->counts().paused == 1);
    CHECK(rig.engine->counts().decoding == 0);
    rig.run();
    CHECK(rig.clock.now() > until);
    CHECK(a->ids() == engine_rig().solo(rig.job(1, 20)));
    CHECK_FALSE(rig.engine->pause(rig.id(1), never));
    CHECK_FALSE(rig.engine->resume(rig.id(1)));
  }
}

TEST_CASE("pause: another job takes its place, and it returns before those that wait") {
  for (const auto how : loops) {
    engine_rig rig(tight(1, 16), how);
    auto a = rig.submit(rig.job(1, 20)), b = rig.submit(rig.job(2, 20)), c = rig.submit(rig.job(3, 20));
    while (a->tokens.size() < 4) rig.step();
    REQUIRE(rig.engine->pause(rig.id(1), never));
    while (b->tokens.empty()) rig.step();
    REQUIRE(rig.engine->resume(rig.id(1)));
    while (!a->end) rig.step();
    CHECK(b->end.has_value());
    CHECK(c->tokens.empty());
    rig.run();
    CHECK(a->ids() == engine_rig().solo(rig.job(1, 20)));
    CHECK(c->ids() == engine_rig().solo(rig.job(3, 20)));
    CHECK(rig.engine->counts().preemptions == 0);
  }
}

TEST_CASE("pause: a job that waits does not enter until it is resumed") {
  for (const auto how : loops) {
    engine_rig rig(small_config(), how);
    auto a = rig.submit(rig.job(1, 5));
    REQUIRE(rig.engine->pause(rig.id(1), never));
    CHECK_FALSE(rig.engine->idle());
    for (int i = 0; i < 3; ++i) CHECK(rig.step().rows == 0);
    CHECK(rig.engine->counts().queued == 0);
    REQUIRE(rig.engine->resume(rig.id(1)));
    rig.run();
    CHECK(a->ids() == engine_rig().solo(rig.job(1, 5)));
  }
}

TEST_CASE("pause: where pages are short the paused job loses its own first, whatever its priority") {
  for (const auto how : loops) {
    engine_rig rig(tight(8, 6), how);
    auto first = rig.job(1, 60, 100);
    first.priority = 9;
    auto a = rig.submit(first);
    while (a->tokens.size() < 4) rig.step();
    REQUIRE(rig.engine->pause(rig.id(1), never));
    auto b = rig.submit(rig.job(2, 100, 60)), c = rig.submit(rig.job(3, 100, 60));
    while (!b->end || !c->end) rig.step();
    CHECK(view_of(rig, 1).preemptions == 1);
    CHECK(view_of(rig, 1).pages == 0);
    CHECK(rig.engine->counts().preemptions == 1);
    REQUIRE(rig.engine->resume(rig.id(1)));
    rig.run();
    CHECK(a->ids() == engine_rig().solo(first));
    CHECK(b->ids() == engine_rig().solo(rig.job(2, 100, 60)));
  }
}

TEST_CASE("pause: cancel, deadline and a fault end a paused job as any other") {
  for (const auto how : loops) {
    engine_rig rig(small_config(), how);
    auto late = rig.job(2, 50);
    late.deadline = rig.clock.now() + 1ms;
    auto a = rig.submit(rig.job(1, 50)), b = rig.submit(late), c = rig.submit(rig.job(3, 50));
    while (a->tokens.size() < 4) rig.step();
    for (const std::uint64_t n : {1, 2, 3}) REQUIRE(rig.engine->pause(rig.id(n), never));
    REQUIRE(rig.engine->cancel(rig.id(1)));
    CHECK(a->end->reason == finish_reason::cancel);
    CHECK(rig.engine->counts().pages_used == 2);
    rig.step();
    const auto report = rig.step();
    CHECK(report.wait_until == *late.deadline);
    rig.clock.set(report.wait_until);
    rig.step();
    CHECK(b->end->reason == finish_reason::timeout);
    rig.engine->fail(make_error(errc::internal, "gone"));
    rig.run();
    CHECK(c->end->reason == finish_reason::error);
  }
}

}  // namespace weir::tests::engine_pause_test
