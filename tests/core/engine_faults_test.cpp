// Cancelling in every state, slow and departed readers, and faults.
#include <new>
#include <numeric>

#include "core/engine.h"
#include "tests/support/constraints.h"
#include "tests/support/engine_rig.h"

namespace weir::tests::engine_faults_test {

using namespace weir::core;
using namespace std::chrono_literals;

TEST_CASE("cancel ends a job in every state at once, with its pages free before the next forward") {
  auto c = small_config();
  c.max_batch = 1;
  engine_rig rig(c);
  SECTION("queued") {
    auto a = rig.submit(rig.job(1, 100));
    auto b = rig.submit(rig.job(2, 100));
    rig.step();
    CHECK(rig.engine->cancel(rig.id(2)));
    CHECK(b->end->reason == finish_reason::cancel);
    CHECK(b->end->output_tokens == 0);
    CHECK_FALSE(b->end->scheduled);
    CHECK_FALSE(a->end);
    rig.run();
    CHECK(a->tokens.size() == 100);
  }
  SECTION("before any step") {
    auto a = rig.submit(rig.job(1, 100));
    CHECK(rig.engine->cancel(rig.id(1)));
    CHECK(a->finishes == 1);
    CHECK(rig.step().rows == 0);
  }
  SECTION("mid-prefill") {
    auto a = rig.submit(rig.job(1, 100, 500));
    rig.step();
    CHECK(rig.engine->counts().prefilling == 1);
    CHECK(rig.engine->counts().pages_used > 0);
    CHECK(rig.engine->cancel(rig.id(1)));
    CHECK(rig.engine->counts().pages_used == 0);
    CHECK(a->end->scheduled);
    CHECK(a->end->output_tokens == 0);
  }
  SECTION("decoding") {
    auto a = rig.submit(rig.job(1, 100));
    for (int i = 0; i < 5; ++i) rig.step();
    CHECK(rig.engine->cancel(rig.id(1)));
    CHECK(rig.engine->counts().pages_used == 0);
    CHECK(a->tokens.size() == 5);
    CHECK(a->end->output_tokens == 5);
  }
  SECTION("its tail waiting for room") {
    auto sink = std::make_shared<recording_sink>();
    sink->room = 3;
    auto j = rig.job(1, 10);
    j.sink = sink;
    rig.engine->submit(j);
    for (int i = 0; i < 20; ++i) rig.step();
    CHECK_FALSE(rig.engine->idle());
    CHECK(rig.engine->counts().finishing == 1);
    CHECK(rig.engine->counts().pages_used == 0);
    CHECK_FALSE(sink->end);
    sink->room = 2;
    CHECK(rig.engine->cancel(rig.id(1)));
    CHECK(sink->tokens.size() == 5);
    CHECK(sink->finishes == 1);
    CHECK(sink->end->reason == finish_reason::cancel);
    CHECK(sink->end->output_tokens == 10);
  }
  CHECK_FALSE(rig.engine->cancel(rig.id(1)));
  CHECK_FALSE(rig.engine->cancel(rig.id(99)));
  CHECK(rig.engine->idle());
  CHECK(rig.engine->counts().pages_used == 0);
}

TEST_CASE("cancel between the due moments of a simulated device needs no step to take effect") {
  engine_rig rig(sim_spec{.rate = 0.1});
  auto sink = rig.submit(rig.job(1, 100));
  const auto report = rig.step();
  CHECK(report.rows == 0);
  CHECK(report.wait_until > rig.clock.now());
  CHECK(rig.engine->cancel(rig.id(1)));
  CHECK(sink->end->reason == finish_reason::cancel);
  CHECK(rig.engine->counts().pages_used == 0);
}

TEST_CASE("a job that nobody wants any more goes no further than the queue") {
  engine_rig rig;
  auto gone = std::make_shared<recording_sink>();
  gone->left = true;
  auto j = rig.job(1, 100);
  j.sink = gone;
  rig.engine->submit(j);
  auto other = rig.submit(rig.job(2, 4));
  rig.step();
  CHECK(gone->end->reason == finish_reason::cancel);
  CHECK(gone->end->output_tokens == 0);
  CHECK(other->tokens.size() == 1);
}

TEST_CASE("what a sink has no room for is offered again, and delays no other job") {
  engine_rig rig;
  auto slow = std::make_shared<recording_sink>();
  slow->room = 0;
  const auto alone = rig.solo(rig.job(1, 10));
  auto j = rig.job(1, 10);
  j.sink = slow;
  rig.engine->submit(j);
  auto quick = rig.submit(rig.job(2, 20));
  for (int i = 0; i < 10; ++i) {
    rig.step();
    CHECK(quick->tokens.size() == static_cast<std::size_t>(i) + 1);
  }
  CHECK(slow->tokens.empty());
  rig.step();
  CHECK(rig.engine->counts().decoding == 1);  // the slow one has ended and gave its place and pages back
  CHECK(rig.engine->counts().finishing == 1);
  slow->room = 4;
  rig.step();
  CHECK(slow->tokens.size() == 4);
  CHECK_FALSE(slow->end);
  for (int i = 0; i < 8; ++i) rig.step();
  CHECK(quick->end);
  const auto report = rig.step();
  CHECK(report.wait_until > rig.clock.now());  // nothing but the slow sink to wait for
  slow->room = 100;
  rig.run();
  CHECK(slow->ids() == alone);
  CHECK(slow->finishes == 1);
  CHECK(slow->end->reason == finish_reason::length);
}

TEST_CASE("a sampler's fault ends that job alone") {
  engine_rig rig;
  const auto alone = rig.solo(rig.job(2, 20));
  rig.toy->broken = [](std::uint64_t seed, std::uint32_t i) { return seed == 1 && i == 3; };
  auto bad = rig.submit(rig.job(1, 20));
  auto good = rig.submit(rig.job(2, 20));
  rig.run();
  CHECK(bad->finishes == 1);
  CHECK(bad->end->reason == finish_reason::error);
  CHECK(bad->end->fault->code == errc::internal);
  CHECK(bad->tokens.size() == 3);
  CHECK(good->ids() == alone);
  CHECK(good->end->reason == finish_reason::length);
  CHECK_FALSE(rig.engine->fault());
}

TEST_CASE("jobs that end in bad logits are counted until one comes to its own end") {
  engine_rig rig(sim_spec{.rate = 1e6, .sampler_fault = 3, .last_sampler_fault = 5});
  const auto run = [&](std::uint64_t n, std::uint32_t tokens) {
    auto sink = rig.submit(rig.job(n, tokens));
    while (!rig.engine->idle()) {
      rig.clock.advance(std::chrono::milliseconds(1));
      rig.step();
    }
    return sink->end->reason;
  };
  CHECK(run(1, 2) == finish_reason::length);
  for (std::uint32_t n = 1; n <= 3; ++n) {
    CHECK(run(n + 1, 10) == finish_reason::error);
    CHECK(rig.engine->bad_endings() == n);
  }
  rig.submit(rig.job(8, 10));  // a job that is cancelled says nothing of the model
  rig.step();
  CHECK(rig.engine->cancel(rig.id(8)));
  CHECK(rig.engine->bad_endings() == 3);
  CHECK(run(9, 1) == finish_reason::length);
  CHECK(rig.engine->bad_endings() == 0);
}

namespace {

// Jobs that forbid every token, each in its own way, beyond what can be seen before they are computed.
std::vector<job> impossible_jobs(const engine_rig& rig) {
  std::vector<token_id> all(61), letters_ab{0, 1};
  std::iota(all.begin(), all.end(), 0);
  std::vector<job> out;
  out.reserve(5);  // references stay valid
  const auto add = [&]() -> job& { return out.emplace_back(rig.job(100 + out.size(), 20)); };
  job& everything = add();
  everything.stop_token_ids = all;
  everything.min_tokens = 1;
  job& later = add();
  later.stop_token_ids = all;
  later.min_tokens = 20;
  later.top_logprobs = 3;
  job& clash = add();
  clash.constraint = fresh_constraint("[ab]", views_of(letters(61)));
  clash.stop_token_ids = letters_ab;
  clash.min_tokens = 2;
  job& forced = add();
  forced.constraint = fresh_constraint("a", views_of(letters(61)));
  forced.stop_token_ids = letters_ab;
  forced.min_tokens = 2;
  job& forced_and_told = add();
  forced_and_told = forced;
  forced_and_told.id = rig.id(100 + out.size());
  forced_and_told.top_logprobs = 2;
  return out;
}

}  // namespace

TEST_CASE("a job that forbids every token ends with an error of its own, and says nothing of the model") {
  for (const auto how : {loop_kind::plain, loop_kind::overlapped}) {
    CAPTURE(how == loop_kind::plain);
    engine_rig rig(small_config(), how);
    rig.toy->some_rows_unwanted = true;
    const auto alone = rig.solo(rig.job(1, 20));
    for (int round = 0; round < 8; ++round) {
      const auto good = rig.submit(rig.job(1, 20));
      std::vector<std::shared_ptr<recording_sink>> bad;
      for (job& j : impossible_jobs(rig)) bad.push_back(rig.submit(std::move(j)));
      rig.run();
      for (const auto& sink : bad) {
        CAPTURE(&sink - bad.data());
        CHECK(sink->end->reason == finish_reason::error);
        REQUIRE(sink->end->fault);
        INFO(sink->end->fault->message);
        CHECK(sink->end->fault->code == errc::invalid_param);
        CHECK(sink->end->fault->param == "min_tokens");
        CHECK(sink->end->fault->message.find("min_tokens") != std::string::npos);
        CHECK(sink->tokens.empty());
      }
      CHECK(good->ids() == alone);
      CHECK(rig.engine->bad_endings() == 0);
    }
  }
}

TEST_CASE("logits that are not finite are the model's fault, whatever their job forbids") {
  engine_rig rig;
  rig.toy->broken = [](std::uint64_t, std::uint32_t) { return true; };
  std::uint32_t counted = 0;
  for (job& j : impossible_jobs(rig)) {
    if (j.constraint) continue;
    const auto sink = rig.submit(std::move(j));
    rig.run();
    CHECK(sink->end->fault->code == errc::internal);
    CHECK(rig.engine->bad_endings() == ++counted);
  }
  CHECK(counted == 2);
}

TEST_CASE("a device's fault ends every job with it, and every later one") {
  auto c = small_config();
  c.max_batch = 2;
  engine_rig rig(c);
  std::vector<std::shared_ptr<recording_sink>> sinks;
  for (std::uint64_t n = 0; n < 4; ++n) sinks.push_back(rig.submit(rig.job(n, 20)));
  for (int i = 0; i < 3; ++i) rig.step();
  CHECK_FALSE(rig.engine->fault());
  rig.toy->before_forward = [](const batch&) -> result<void> {
    return make_error(errc::internal, "the device is on fire");
  };
  rig.step();
  REQUIRE(rig.engine->fault());
  CHECK(rig.engine->fault()->message == "the device is on fire");
  CHECK(rig.engine->idle());
  CHECK(rig.engine->counts().pages_used == 0);
  sinks.push_back(rig.submit(rig.job(9, 20)));
  CHECK(rig.engine->idle());
  for (const auto& s : sinks) {
    CHECK(s->finishes == 1);
    CHECK(s->end->reason == finish_reason::error);
    CHECK(s->end->fault->message == "the device is on fire");
  }
  CHECK(sinks[0]->tokens.size() == 3);
}

TEST_CASE("a device that somebody else found gone ends every job as if a step had found it") {
  for (const auto how : {loop_kind::plain, loop_kind::overlapped}) {
    auto c = small_config();
    c.max_batch = 2;
    engine_rig rig(c, how);
    std::vector<std::shared_ptr<recording_sink>> sinks;
    for (std::uint64_t n = 0; n < 4; ++n) sinks.push_back(rig.submit(rig.job(n, 20)));
    sinks[0]->room = 1;
    for (int i = 0; i < 5; ++i) rig.step();
    rig.engine->fail(make_error(errc::internal, "the neighbour fell"));
    CHECK(rig.engine->counts().pages_used == 0);
    rig.engine.reset();
    for (const auto& s : sinks) {
      CHECK(s->finishes == 1);
      CHECK(s->end->reason == finish_reason::error);
      CHECK(s->end->fault->message == "the neighbour fell");
    }
  }
}

TEST_CASE("a job that ended before the device failed keeps its own ending") {
  engine_rig rig;
  auto done = std::make_shared<recording_sink>();
  done->room = 1;
  auto j = rig.job(1, 2);
  j.sink = done;
  rig.engine->submit(j);
  rig.submit(rig.job(2, 20));
  for (int i = 0; i < 3; ++i) rig.step();
  rig.toy->before_forward = [](const batch&) -> result<void> { return make_error(errc::internal, "gone"); };
  rig.step();
  REQUIRE(rig.engine->fault());
  done->room = 9;
  rig.run();
  CHECK(done->end->reason == finish_reason::length);
  CHECK(done->tokens.size() == 2);
}

}  // namespace weir::tests::engine_faults_test
