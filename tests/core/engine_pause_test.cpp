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

TEST_CASE("pause: the sink hears of each pause once, and of its end, however it ends") {
  for (const auto how : loops) {
    engine_rig rig(small_config(), how);
    auto a = rig.submit(rig.job(1, 20));
    while (a->tokens.size() < 4) rig.step();
    REQUIRE(rig.engine->pause(rig.id(1), never));
    CHECK(a->rests);
    const time_point until = rig.clock.now() + 1s;
    REQUIRE(rig.engine->pause(rig.id(1), until));
    rig.step();
    CHECK(a->rests);
    rig.clock.set(until);
    rig.step();
    CHECK_FALSE(a->rests);
    REQUIRE(rig.engine->pause(rig.id(1), never));
    CHECK(a->rests);
    REQUIRE(rig.engine->resume(rig.id(1)));
    CHECK_FALSE(a->rests);
    CHECK_FALSE(rig.engine->resume(rig.id(1)));
    rig.run();
    CHECK_FALSE(a->told_twice);
  }
}

TEST_CASE("pause: a job whose pause is over and that has no place waits, and is listed as one that does") {
  for (const auto how : loops) {
    engine_rig rig(tight(1, 16), how);
    auto a = rig.submit(rig.job(1, 20)), b = rig.submit(rig.job(2, 20));
    while (a->tokens.size() < 4) rig.step();
    REQUIRE(rig.engine->pause(rig.id(1), never));
    while (b->tokens.empty()) rig.step();
    REQUIRE(rig.engine->resume(rig.id(1)));
    const auto report = rig.step();
    CHECK(view_of(rig, 1).state == sequence_state::queued);
    CHECK(rig.engine->counts().paused == 0);
    CHECK(rig.engine->counts().queued == 1);
    CHECK(report.waiting == 1);
    CHECK(report.returning == 1);
    rig.run();
    CHECK(a->ids() == engine_rig().solo(rig.job(1, 20)));
  }
}

TEST_CASE("pause: the pages of 320 paused jobs go where others need them, and no running job loses its own") {
  for (const auto how : loops) {
    engine_rig rig(tight(32, 352), how);
    std::vector<std::shared_ptr<recording_sink>> paused;
    for (std::uint64_t n = 1; n <= 320; ++n) {
      paused.push_back(rig.submit(rig.job(n, 30, 40)));
      while (paused.back()->tokens.empty()) rig.step();
      REQUIRE(rig.engine->pause(rig.id(n), never));
    }
    for (int i = 0; i < 2; ++i) rig.step();
    REQUIRE(rig.engine->counts().paused == 320);
    REQUIRE(rig.engine->counts().pages_used == 320);
    auto b = rig.submit(rig.job(900, 300, 3000)), c = rig.submit(rig.job(901, 300, 3000));
    CHECK(rig.step().entered == 2);
    while (!b->end || !c->end) rig.step();
    CHECK(view_of(rig, 900).preemptions == 0);
    CHECK(b->ids() == engine_rig().solo(rig.job(900, 300, 3000)));
    for (std::uint64_t n = 1; n <= 320; ++n) REQUIRE(rig.engine->resume(rig.id(n)));
    rig.run();
    for (std::uint64_t n = 1; n <= 320; ++n)
      CHECK(paused[n - 1]->ids() == engine_rig().solo(rig.job(n, 30, 40)));
  }
}

TEST_CASE("pause: a job gets its turn beside jobs that pause at each token and return at once") {
  for (const auto how : loops) {
    engine_rig rig(tight(2, 64), how);
    std::vector<std::shared_ptr<recording_sink>> restless;
    for (std::uint64_t n = 1; n <= 8; ++n) {
      auto j = rig.job(n, 1000);
      j.key = 1;
      restless.push_back(rig.submit(std::move(j)));
    }
    std::vector<std::size_t> seen(restless.size());
    std::vector<int> rests(restless.size());
    const auto step = [&] {
      for (std::size_t i = 0; i < restless.size(); ++i) {
        if (rests[i] > 0 && --rests[i] == 0) REQUIRE(rig.engine->resume(rig.id(i + 1)));
        if (restless[i]->tokens.size() == seen[i]) continue;
        seen[i] = restless[i]->tokens.size();
        if (restless[i]->rests) continue;
        REQUIRE(rig.engine->pause(rig.id(i + 1), never));
        rests[i] = 2;
      }
      rig.step();
    };
    for (int i = 0; i < 100; ++i) step();
    auto j = rig.job(99, 10);
    j.key = 2;
    auto b = rig.submit(std::move(j));
    int steps = 0;
    while (b->tokens.empty() && steps < 50) step(), ++steps;
    CHECK(steps < 8);
    const auto together = restless[0]->tokens.size();
    for (int i = 0; i < 200; ++i) step();
    CHECK(restless[0]->tokens.size() > together);
    for (std::uint64_t n = 1; n <= 8; ++n) rig.engine->cancel(rig.id(n));
    rig.run();
  }
}

}  // namespace weir::tests::engine_pause_test
