// Jobs that go on behind a fault of their device: engine::evacuate() and adopt().
#include <algorithm>
#include <functional>
#include <map>
#include <random>

#include "core/engine.h"
#include "tests/support/budget.h"
#include "tests/support/job_kinds.h"
#include "tests/support/seed.h"

namespace weir::tests::engine_restart_test {

using namespace weir::core;
using namespace std::chrono_literals;

namespace {

const error on_fire = make_error(errc::internal, "the device is on fire");

engine_config keeping(engine_config c = small_config()) {
  c.keep_jobs = true;
  return c;
}

std::unique_ptr<engine_rig> make_rig(const engine_config& c, loop_kind how,
                                     std::shared_ptr<lazy_helpers> helpers = {}) {
  auto rig = std::make_unique<engine_rig>(c, kind_words(), 4096, how, std::move(helpers));
  rig->toy->some_rows_unwanted = true;
  return rig;
}

// Moves the jobs of an engine that failed to a new one.
void start_again(std::unique_ptr<engine_rig>& rig, const engine_config& c, loop_kind how,
                 std::shared_ptr<lazy_helpers> helpers = {}) {
  REQUIRE(rig->engine->fault());
  REQUIRE(rig->engine->counts().pages_used == 0);
  auto next = make_rig(c, how, std::move(helpers));
  next->clock.set(rig->clock.now() + 5us);
  auto jobs = rig->engine->evacuate();
  REQUIRE(rig->engine->idle());
  REQUIRE(rig->engine->check_integrity() == "");
  rig = std::move(next);
  rig->engine->adopt(jobs);
  REQUIRE(jobs.size() == 0);
  REQUIRE(rig->engine->check_integrity() == "");
}

struct known_job {
  std::uint64_t kind = 0;
  std::shared_ptr<recording_sink> sink;
  unsigned faults = 0;  // that it met: it goes on behind the first, and ends with the second
};

// Jobs of every kind that come, wait, run, rest and are slowly read, on a device that fails.
class day {
 public:
  day(loop_kind how, unsigned seed)
      : how_(how),
        random_(static_cast<unsigned>(weir::tests::drawn_seed(seed))),
        helpers_(seed % 2 ? std::make_shared<lazy_helpers>() : nullptr) {
    config_.max_batch = 2 + pick(31);
    config_.kv_pages = 6 + pick(60);
    config_.host_pages = pick(2) * 40;
    rig_ = make_rig(config_, how_, helpers_);
  }

  void live(std::size_t faults) {
    while (jobs_.size() < 64) act();
    for (; faults > 0; --faults) {
      fail();
      for (auto steps = pick(3); steps > 0; --steps) rig_->step();
      REQUIRE(rig_->engine->check_integrity() == "");
      if (pick(2)) cancel();
      count_fault();
      start_again(rig_, config_, how_, helpers_);
      for (auto acts = pick(30); acts > 0; --acts) act();
    }
    for (auto& [id, j] : jobs_) j.sink->room = std::numeric_limits<std::size_t>::max();
    rig_->run();
    for (const auto& [id, j] : jobs_) check(j);
  }

  std::size_t kept = 0, failed = 0, whole = 0, paused = 0, late = 0;

 private:
  std::uint32_t pick(std::uint32_t n) { return static_cast<std::uint32_t>(random_() % n); }

  void act() {
    switch (pick(12)) {
      case 0:
      case 1:
      case 2:
        return submit();
      case 3:
        return pick(4) ? step() : cancel();
      case 4: {
        const job_id id = any();
        if (pick(3) == 0) return void(rig_->engine->resume(id));
        paused += rig_->engine->pause(id, rig_->clock.now() + std::chrono::microseconds(pick(40)));
        return;
      }
      case 5:
        for (auto& [id, j] : jobs_)
          if (j.sink->room < 100 && pick(3) == 0) j.sink->room += pick(20);
        return;
      default:
        return step();
    }
  }

  job_id any() { return engine_rig::id(1000 + pick(64)); }

  void submit() {
    const std::uint64_t kind = pick(job_kinds);
    auto j = job_of_kind(*rig_, kind);
    j.id = engine_rig::id(1000 + jobs_.size());
    j.priority = static_cast<int>(pick(3));
    j.key = pick(3);
    if (pick(10) == 0) j.deadline = rig_->clock.now() + std::chrono::microseconds(pick(60));
    auto sink = std::make_shared<recording_sink>();
    if (pick(2) == 0) sink->room = pick(5);
    j.sink = sink;
    jobs_[j.id] = {kind, sink};
    rig_->engine->submit(std::move(j));
  }

  void cancel() {
    const job_id id = any();
    if (!jobs_.contains(id)) return;
    const auto& sink = *jobs_[id].sink;
    const bool over = sink.end.has_value();
    REQUIRE(rig_->engine->cancel(id) == !over);
    REQUIRE(sink.finishes == 1);
  }

  void step() {
    if (helpers_) helpers_->some(random_);
    const auto report = rig_->step();
    if (report.wait_until > rig_->clock.now()) rig_->clock.set(report.wait_until);
  }

  // The device fails at some call of a coming step, or somebody else finds that it failed.
  void fail() {
    if (pick(4) > 0) {
      auto left = std::make_shared<std::uint32_t>(pick(3));
      const auto call = [left]() -> result<void> {
        if (*left == 0) return on_fire;
        --*left;
        return {};
      };
      if (rig_->late) {
        rig_->late->before_call = call;
      } else {
        rig_->toy->before_forward = [call](const batch&) { return call(); };
      }
      for (int i = 0; i < 5 && !rig_->engine->fault(); ++i) step();
    }
    late += rig_->engine->counts().late_masks > 0;
    rig_->engine->fail(on_fire);
  }

  void count_fault() {
    std::vector<sequence_view> all;
    rig_->engine->list(all);
    for (const auto& s : all) {
      if (s.state == sequence_state::finished) continue;
      ++(jobs_[s.id].faults++ == 0 ? kept : failed);
    }
  }

  void check(const known_job& j) {
    CAPTURE(j.kind, j.faults);
    REQUIRE(j.sink->finishes == 1);
    REQUIRE_FALSE(j.sink->told_twice);
    static std::map<std::uint64_t, recording_sink> alone;
    if (!alone.contains(j.kind)) alone.emplace(j.kind, run_of_kind(j.kind));
    const recording_sink& undisturbed = alone.at(j.kind);
    auto ids = j.sink->ids();
    const auto all = undisturbed.ids();
    const auto& end = *j.sink->end;
    const bool second_fault = j.faults > 1;
    const bool cut =
        second_fault || end.reason == finish_reason::cancel || end.reason == finish_reason::timeout;
    // a job that is cut shows what might have become a stop string
    if (cut && undisturbed.end->stop_string) ids.resize(std::min(ids.size(), all.size()));
    if (cut && has_banned_strings(j.kind)) return;  // it shows what might have been taken back
    REQUIRE(ids.size() <= all.size());
    REQUIRE(std::equal(ids.begin(), ids.end(), all.begin()));
    if (end.fault) INFO(end.fault->message);
    if (second_fault) {
      // who cancels it meanwhile may come first
      REQUIRE((end.reason == finish_reason::cancel || end.fault->message == on_fire.message));
    }
    if (cut) return;
    ++whole;
    REQUIRE(end.reason == undisturbed.end->reason);
    REQUIRE(ids.size() == all.size());
    REQUIRE(end.output_tokens == undisturbed.end->output_tokens);
    REQUIRE(end.stop_string == undisturbed.end->stop_string);
    REQUIRE(j.sink->logprobs.size() == undisturbed.logprobs.size());
    for (std::size_t i = 0; i < ids.size() && !undisturbed.logprobs.empty(); ++i)
      REQUIRE(j.sink->logprobs[i].drawn.logprob == undisturbed.logprobs[i].drawn.logprob);
    REQUIRE((end.prompt_logprobs == nullptr) == (undisturbed.end->prompt_logprobs == nullptr));
    if (!end.prompt_logprobs) return;
    REQUIRE(end.prompt_logprobs->size() == undisturbed.end->prompt_logprobs->size());
    for (std::size_t i = 0; i < end.prompt_logprobs->size(); ++i)
      REQUIRE((*end.prompt_logprobs)[i].drawn.logprob ==
              (*undisturbed.end->prompt_logprobs)[i].drawn.logprob);
  }

  const loop_kind how_;
  std::mt19937 random_;
  std::shared_ptr<lazy_helpers> helpers_;
  engine_config config_ = keeping();
  std::unique_ptr<engine_rig> rig_;
  std::map<job_id, known_job> jobs_;
};

}  // namespace

TEST_CASE("64 jobs of every kind go on behind faults of their device, token for token") {
  for (const auto how : {loop_kind::plain, loop_kind::overlapped}) {
    std::size_t kept = 0, failed = 0, whole = 0, paused = 0, late = 0;
    const unsigned days = weir::tests::rounds(60);
    for (unsigned n = 0; n < days; ++n) {
      CAPTURE(how == loop_kind::plain, n);
      day d(how, n);
      d.live(1 + n % 3);
      kept += d.kept;
      failed += d.failed;
      whole += d.whole;
      paused += d.paused;
      late += d.late;
    }
    // in the mean a day has 29, 15, 50, 3.5 and 0.7 of them, and seven days of some seeds two thirds
    CHECK(kept > 10 * days);
    CHECK(failed > days / 2);
    CHECK(whole > 20 * days);
    CHECK(paused > days / 2);
    if (days >= 60) CHECK(late > days / 8);  // seven days may have none
  }
}

TEST_CASE("behind a fault a job waits for a new engine, and only its cancel and its deadline end it") {
  for (const auto how : {loop_kind::plain, loop_kind::overlapped}) {
    CAPTURE(how == loop_kind::plain);
    auto rig = make_rig(keeping(), how);
    const auto alone = rig->solo(rig->job(1, 20));
    const auto runs = rig->submit(rig->job(1, 20));
    const auto unwanted = rig->submit(rig->job(2, 20));
    auto short_of_time = rig->job(3, 20);
    short_of_time.deadline = rig->clock.now() + 1ms;
    const auto late = rig->submit(short_of_time);
    for (int i = 0; i < 5; ++i) rig->step();
    const auto had = runs->tokens.size();
    REQUIRE(had > 0);
    rig->engine->fail(on_fire);
    for (int i = 0; i < 3; ++i) CHECK(rig->step().rows == 0);
    CHECK_FALSE(rig->engine->idle());
    CHECK(rig->engine->counts().queued == 3);
    const auto refused = rig->submit(rig->job(9, 20));
    CHECK(refused->end->fault->message == on_fire.message);
    CHECK(rig->engine->cancel(engine_rig::id(2)));
    CHECK(unwanted->end->reason == finish_reason::cancel);
    rig->clock.advance(1s);
    rig->step();
    CHECK(late->end->reason == finish_reason::timeout);
    CHECK_FALSE(runs->end);
    start_again(rig, keeping(), how);
    CHECK(rig->engine->counts().continued == 1);
    rig->run();
    CHECK(runs->ids() == alone);
    CHECK(runs->finishes == 1);
    CHECK(runs->end->output_tokens == 20);
    CHECK(runs->end->max_gap >= 1s);  // its client sees one gap
    CHECK(rig->engine->measures().ttft.count() == 0);
  }
}

TEST_CASE("a job goes on behind one fault, and ends with the second, whether it runs, waits or rests") {
  for (const auto how : {loop_kind::plain, loop_kind::overlapped}) {
    CAPTURE(how == loop_kind::plain);
    auto c = keeping();
    c.max_batch = 2;
    auto rig = make_rig(c, how);
    const auto alone = rig->solo(rig->job(4, 20));
    std::vector<std::shared_ptr<recording_sink>> old;
    for (std::uint64_t n = 0; n < 4; ++n) old.push_back(rig->submit(rig->job(n, 30)));
    old[3]->room = 1;
    for (int i = 0; i < 5; ++i) rig->step();
    CHECK(rig->engine->pause(engine_rig::id(1), rig->clock.now() + 1h));
    rig->engine->fail(on_fire);
    start_again(rig, c, how);
    CHECK(rig->engine->counts().continued == 4);
    const auto young = rig->submit(rig->job(4, 20));
    CHECK(rig->engine->pause(engine_rig::id(0), rig->clock.now() + 1h));
    for (int i = 0; i < 5; ++i) rig->step();
    rig->engine->fail(on_fire);
    for (const auto& s : old) CHECK_FALSE(s->end);
    start_again(rig, c, how);
    CHECK(rig->engine->counts().continued == 1);
    for (std::size_t n = 0; n < 3; ++n) {  // at once, without the new engine
      REQUIRE(old[n]->finishes == 1);
      CHECK(old[n]->end->reason == finish_reason::error);
      CHECK(old[n]->end->fault->message == on_fire.message);
    }
    old[3]->room = 99;
    rig->run();
    CHECK(old[3]->finishes == 1);
    CHECK(old[3]->end->fault->message == on_fire.message);
    CHECK(young->ids() == alone);
    CHECK(young->end->reason == finish_reason::length);
  }
}

TEST_CASE("jobs that move keep their order, their priorities and their pauses, before jobs that come later") {
  auto c = keeping();
  c.max_batch = 1;
  auto rig = make_rig(c, loop_kind::plain);
  std::vector<std::shared_ptr<recording_sink>> sinks;
  for (std::uint64_t n = 0; n < 5; ++n) {
    auto j = rig->job(n, 4);
    j.priority = n == 3 ? 1 : 0;
    sinks.push_back(rig->submit(std::move(j)));
    if (n == 0) rig->step();
  }
  const auto until = rig->clock.now() + 1ms;
  CHECK(rig->engine->pause(engine_rig::id(1), until));
  rig->engine->fail(on_fire);
  start_again(rig, c, loop_kind::plain);
  CHECK(rig->engine->counts().paused == 1);
  sinks.push_back(rig->submit(rig->job(5, 4)));
  rig->run();
  std::vector<std::size_t> order(sinks.size());
  for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
  std::ranges::sort(order, {}, [&](std::size_t i) { return *sinks[i]->end->last_token; });
  CHECK(order == std::vector<std::size_t>{3, 0, 2, 4, 5, 1});
  CHECK(*sinks[1]->end->first_token >= until);
  CHECK_FALSE(sinks[1]->rests);
}

TEST_CASE("jobs that cannot go on end with the fault, once") {
  const std::function<void(engine_rig&)> ways[] = {
      [](engine_rig& rig) { rig.engine->evacuate().end(on_fire); },
      [](engine_rig& rig) { rig.engine.reset(); },
      [](engine_rig& rig) { rig.engine->stop(on_fire); },
  };
  for (const auto how : {loop_kind::plain, loop_kind::overlapped}) {
    for (const auto& end : ways) {
      CAPTURE(how == loop_kind::plain, &end - ways);
      auto rig = make_rig(keeping(), how);
      std::vector<std::shared_ptr<recording_sink>> sinks;
      for (std::uint32_t n = 0; n < 6; ++n) sinks.push_back(rig->submit(rig->job(n, 3 + n)));
      for (const auto& s : sinks) s->room = 1;  // so that none has ended
      for (int i = 0; i < 5; ++i) rig->step();
      rig->engine->fail(on_fire);
      end(*rig);
      for (const auto& s : sinks) {
        REQUIRE(s->finishes == 1);
        CHECK(s->end->reason == finish_reason::error);
        CHECK(s->end->fault->message == on_fire.message);
      }
    }
  }
}

TEST_CASE("a job that ended before the fault keeps its ending, and its last tokens go on being offered") {
  auto rig = make_rig(keeping(), loop_kind::plain);
  const auto slow = rig->submit(rig->job(1, 4));
  slow->room = 1;
  for (int i = 0; i < 8; ++i) rig->step();
  REQUIRE(rig->engine->counts().finishing == 1);
  rig->engine->fail(on_fire);
  start_again(rig, keeping(), loop_kind::plain);
  CHECK(rig->engine->counts().continued == 0);
  slow->room = 9;
  rig->run();
  CHECK(slow->tokens.size() == 4);
  CHECK(slow->end->reason == finish_reason::length);
}

TEST_CASE("a job that has no room in the engine that takes it ends with does_not_fit, or is shorter") {
  auto rig = make_rig(keeping(), loop_kind::plain);
  const auto too_long = rig->submit(rig->job(1, 300, 200));
  const auto shorter = rig->submit(rig->job(2, 300, 20));
  for (int i = 0; i < 12; ++i) rig->step();
  rig->engine->fail(on_fire);
  auto small = keeping();
  small.max_seq_len = 128;
  start_again(rig, small, loop_kind::plain);
  rig->run();
  REQUIRE(too_long->end->fault);
  CHECK(too_long->end->fault->code == errc::does_not_fit);
  CHECK(shorter->end->reason == finish_reason::length);
  CHECK(shorter->end->output_tokens == 108);
}

}  // namespace weir::tests::engine_restart_test
