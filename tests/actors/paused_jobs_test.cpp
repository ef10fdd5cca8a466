// Paused jobs of one key beside jobs of others, in virtual time: who is admitted, how long who waits, what is
// predicted, and how many jobs may pause.
#include <vector>

#include "actors/admission_control.h"
#include "tests/actors/service_fixture.h"
#include "tests/support/world.h"

namespace weir::tests::paused_jobs_test {

using namespace std::chrono_literals;
using stream = std::shared_ptr<job_stream>;

namespace {

constexpr std::uint64_t key_a = 1, key_b = 2;

struct rig {
  explicit rig(std::uint64_t seed, std::uint32_t batch = 64, std::uint32_t queue = 256,
               std::uint64_t kv_tokens = 0)
      : here(seed) {
    actors::service_options o;
    o.models.push_back({"sim", "sim:rate=100,prefill=100000"});
    o.owner.device = "sim";
    o.owner.max_batch = batch;
    o.owner.queue = queue;
    o.owner.kv_tokens = kv_tokens;
    o.owner.audit = true;
    service = here.make_service(std::move(o));
  }

  stream submit(
      std::uint64_t key, std::int64_t tokens, bool may_pause = false, std::function<void()> changed = [] {}) {
    const auto seed = static_cast<std::uint64_t>(++submitted);
    auto r = ask("x" + std::to_string(seed), tokens, seed);
    r.who.key = key;
    r.may_pause = may_pause;
    auto s = service->submit(std::move(r), here.get_executor(), std::move(changed));
    until([&] { return s->state() != phase::pending; });
    return s;
  }

  // Submits a job that pauses once it has a token, as one does whose client has a window of one token and
  // acknowledges none.
  stream submit_stalled(std::uint64_t key, std::int64_t tokens = 100) {
    const auto late = std::make_shared<std::weak_ptr<job_stream>>();
    auto s = submit(key, tokens, true, [this, late, paused = false]() mutable {
      const auto s = late->lock();
      if (!s || paused || s->published() == 0) return;
      paused = true;
      s->pause(here.now() + 60s);
    });
    *late = s;
    return s;
  }
  std::vector<stream> stall(std::uint64_t key, std::uint32_t jobs, std::int64_t tokens = 100) {
    std::vector<stream> all;
    const auto before = paused();
    for (std::uint32_t i = 0; i < jobs; ++i) all.push_back(submit_stalled(key, tokens));
    until([&] { return paused() == before + jobs; });
    return all;
  }

  void until(const std::function<bool()>& holds) { REQUIRE(here.run(holds)); }
  void finish(const std::vector<stream>& all) {
    for (const auto& s : all) until([&] { return s->state() == phase::done; });
  }
  void wait(core::duration d) {
    bool over = false;
    here.after(d, [&] { over = true; });
    until([&] { return over; });
  }
  std::uint32_t paused() const { return service->stats().engine.paused; }
  double predicted_ms() const { return service->stats().predicted_wait_ms; }

  world here;
  std::unique_ptr<actors::service> service;
  int submitted = 0;
};

}  // namespace

TEST_CASE("paused jobs: beside 320 of one key a job of another is admitted at once, and waits for nothing") {
  rig r(1);
  const auto stalled = r.stall(key_a, 320);
  r.wait(20s);
  CHECK(r.predicted_ms() == 0);
  const auto b = r.submit(key_b, 100);
  REQUIRE(b->state() == phase::running);
  CHECK(b->queue_position() == 0);
  r.finish({b});
  CHECK(b->ended().queue_ms <= 10);  // until the next point of the grid of tokens
  CHECK(text_of(*b) == sim_text(321, 100));
  CHECK(r.paused() == 320);
}

TEST_CASE("paused jobs: once resumed, or after their minute, they end with the tokens that they have alone") {
  const bool few_pages = GENERATE(false, true);
  const bool by_themselves = GENERATE(false, true);
  CAPTURE(few_pages, by_themselves);
  rig r(2, 16, 64, few_pages ? 24 * core::page_tokens : 0);
  const auto stalled = r.stall(key_a, 80);
  if (!by_themselves)
    for (const auto& s : stalled) s->resume();
  r.finish(stalled);
  for (std::uint64_t i = 0; i < stalled.size(); ++i) {
    CHECK(text_of(*stalled[i]) == sim_text(i + 1, 100));
    CHECK(stalled[i]->ended().reason == core::finish_reason::length);
  }
  CHECK(r.paused() == 0);
  CHECK(r.predicted_ms() == 0);
}

TEST_CASE("paused jobs: jobs that return keep no other key out, and B's wait is as predicted") {
  for (std::uint64_t seed = 1; seed <= 5; ++seed) {
    CAPTURE(seed);
    rig r(seed, 4, 36);
    const auto stalled = r.stall(key_a, 40);
    for (const auto& s : stalled) s->resume();
    r.wait(5s);  // four run, and a few have ended
    std::vector<stream> mine;
    for (int i = 0; i < 5; ++i) mine.push_back(r.submit(key_b, 100));
    r.wait(100ms);
    const double predicted = r.predicted_ms();
    mine.push_back(r.submit(key_b, 100));
    REQUIRE(mine.back()->state() == phase::running);  // admitted, although 40 jobs run or wait beside it
    r.finish(mine);
    const double waited = mine.back()->ended().queue_ms;
    CAPTURE(predicted, waited);
    CHECK(waited > 2000);  // six of B and as many of A, four at a time, each a second
    CHECK(waited < 4500);
    CHECK(predicted == Approx(waited).epsilon(0.3));
    r.finish(stalled);
  }
}

TEST_CASE("paused jobs: B's wait for B's own jobs is as predicted after A's have been paused for a while") {
  for (std::uint64_t seed = 1; seed <= 5; ++seed) {
    CAPTURE(seed);
    rig r(seed, 4, 76);
    std::vector<stream> before;
    for (int i = 0; i < 60; ++i) before.push_back(r.submit(key_b, 100));
    r.finish(before);
    const auto stalled = r.stall(key_a, 80);
    r.wait(50s);  // the device is idle: its pace is still the same
    std::vector<stream> mine;
    for (int i = 0; i < 24; ++i) mine.push_back(r.submit(key_b, 100));
    r.wait(500ms);
    const double predicted = r.predicted_ms();
    mine.push_back(r.submit(key_b, 100));
    CHECK(mine.back()->queue_position() == 21);
    r.finish(mine);
    const double waited = mine.back()->ended().queue_ms;
    CAPTURE(predicted, waited);
    CHECK(predicted == Approx(waited).epsilon(0.25));
  }
}

TEST_CASE("paused jobs: a full line beside them says when a place becomes free") {
  rig r(3, 4, 8);
  std::vector<stream> before;
  for (int i = 0; i < 12; ++i) before.push_back(r.submit(key_b, 1000));
  r.finish(before);
  const auto stalled = r.stall(key_a, 12);
  r.wait(30s);
  std::vector<stream> mine;
  for (int i = 0; i < 12; ++i) mine.push_back(r.submit(key_b, 1000));
  const auto no = r.submit(key_b, 1000);
  REQUIRE(no->state() == phase::refused);
  CHECK(no->refusal().message == "sim has 12 jobs running or waiting, and takes no more for now");
  CHECK(no->refusal().retry_after_ms == Approx(2500).epsilon(0.1));  // four answers of 1000 tokens in 10 s
  r.finish(mine);
}

TEST_CASE("paused jobs: more than a key, or all keys together, may have are refused by name") {
  rig r(4, 2, 3);
  std::vector<std::vector<stream>> stalled;
  for (std::uint64_t key = 1; key <= 4; ++key) stalled.push_back(r.stall(key, 5));
  const auto of_key = r.submit_stalled(1);
  REQUIRE(of_key->state() == phase::refused);
  CHECK(of_key->refusal().code == core::errc::overloaded);
  CHECK(of_key->refusal().retry_after_ms == 1000);
  CHECK(of_key->refusal().message ==
        "this key has 5 unfinished jobs of sim with on_lag \"pause\", and may have no more");
  const auto no = r.submit_stalled(5);
  REQUIRE(no->state() == phase::refused);
  CHECK(no->refusal().code == core::errc::overloaded);
  CHECK(no->refusal().message ==
        "sim has 20 unfinished jobs with on_lag \"pause\", and takes no more for now");
  CHECK(r.submit(5, 10)->state() == phase::running);  // it cannot pause
  stalled[0][0]->cancel();
  r.finish({stalled[0][0]});
  CHECK(r.submit_stalled(1)->state() == phase::running);
}

TEST_CASE("paused jobs: a job that did not ask to pause is not paused") {
  rig r(5);
  const auto s = r.submit(key_a, 100);
  s->pause(r.here.now() + 60s);
  r.finish({s});
  CHECK(s->ended().decode_ms < 1100);
}

TEST_CASE("paused jobs: the service is ready while all jobs are paused, and when they go on") {
  rig r(6);
  const auto stalled = r.stall(key_a, 3);
  r.wait(30s);
  CHECK(r.service->ready().ready);
  r.finish(stalled);
  CHECK(r.service->ready().ready);
}

}  // namespace weir::tests::paused_jobs_test
