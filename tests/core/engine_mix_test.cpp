// Random mixes of everything that can happen to jobs, by seed: whatever comes, each job's tokens are a
// beginning of what it gives alone, it ends once, and the books balance after every step.
#include <map>
#include <random>

#include "core/engine.h"
#include "tests/support/constraints.h"
#include "tests/support/engine_rig.h"

namespace weir::tests::engine_mix_test {

using namespace weir::core;
using namespace std::chrono_literals;

namespace {

constexpr std::uint64_t kinds = 24;

// The vocabulary, sorted once.
std::shared_ptr<grammar::terminal_views> views() {
  static const auto all = views_of(letters(61));
  return all;
}

// One of a few kinds of job, so that each kind's solo run is made once. A fourth of them have constraints,
// each a new one, so that masks have to be made.
job of_kind(const engine_rig& rig, std::uint64_t kind) {
  auto j = rig.job(kind, 1 + static_cast<std::uint32_t>(kind * 5 % 60), 1 + kind * 17 % 150);
  if (kind % 3 == 1) j.stop = {"ab", "bca", "q"};
  if (kind % 3 == 2) j.stop = {"zzz", "e"};
  if (kind % 4 == 0) j.sampling.temperature = 0;
  if (kind % 5 == 0) j.sampling.top_p = 0.7f;
  if (kind % 7 == 0) j.sampling.presence_penalty = 0.5f;
  if (kind % 6 == 0) j.min_tokens = 10;
  if (kind % 8 == 0) j.stop_token_ids = {3, 11};
  constexpr const char* regexes[] = {"([a-c]{2}x?)*z", "(ab|cd|e)+", "[a-m]{5,40}", "a[b-z]{3}(q|r)*s",
                                     "(abcabcdefabaaq|qponmlk|xyz(i|j))+z", "hgfedcbabaaa{0,30}hgfed(x|y)"};
  if (kind % 4 == 1) j.constraint = fresh_constraint(regexes[kind / 4 % 6], views());
  if (kind == 9) j.force = grammar::forcing::off;
  if (kind == 13) j.top_logprobs = 2;
  return j;
}

struct known_job {
  std::uint64_t kind = 0;
  std::shared_ptr<recording_sink> sink;
  std::uint64_t shown = 0;
};

struct solo_run {
  std::vector<token_id> ids;
  ending end;
};

class mix {
 public:
  mix(engine_rig& rig, const std::vector<solo_run>& alone, unsigned seed)
      : rig_(rig), alone_(alone), random_(seed), late_(dynamic_cast<lazy_helpers*>(rig.helpers.get())) {}

  void act() {
    switch (pick(9)) {
      case 0:
      case 1:
        submit();
        break;
      case 2:
        cancel();
        break;
      case 3:
        make_room();
        break;
      case 4:
        pause();
        break;
      default:
        step();
        break;
    }
  }

  void finish() {
    for (auto& [id, j] : jobs_) j.sink->room = std::numeric_limits<std::size_t>::max();
    rig_.run();
    for (auto& [id, j] : jobs_) check(j);
  }

  std::map<finish_reason, int> endings;
  int pauses = 0;

 private:
  std::uint64_t pick(std::uint64_t n) { return random_() % n; }

  void submit() {
    const std::uint64_t kind = pick(kinds);
    auto j = of_kind(rig_, kind);
    j.id = rig_.id(1000 + jobs_.size());
    j.priority = static_cast<int>(pick(3));
    if (pick(6) == 0) j.deadline = rig_.clock.now() + std::chrono::microseconds(pick(60));
    auto sink = std::make_shared<recording_sink>();
    if (pick(2) == 0) sink->room = pick(5);
    if (pick(20) == 0) sink->left = true;
    j.sink = sink;
    jobs_[j.id] = {kind, sink};
    rig_.engine->submit(std::move(j));
  }

  void cancel() {
    if (jobs_.empty()) return;
    auto it = jobs_.begin();
    std::advance(it, static_cast<std::ptrdiff_t>(pick(jobs_.size())));
    const bool over = it->second.sink->end.has_value();
    REQUIRE_FALSE(it->second.sink->told_twice);
    REQUIRE(rig_.engine->cancel(it->first) == !over);
    REQUIRE(it->second.sink->finishes == 1);
  }

  void pause() {
    if (jobs_.empty()) return;
    auto it = jobs_.begin();
    std::advance(it, static_cast<std::ptrdiff_t>(pick(jobs_.size())));
    if (pick(3) == 0) {
      rig_.engine->resume(it->first);
    } else if (rig_.engine->pause(it->first, rig_.clock.now() + std::chrono::microseconds(pick(40)))) {
      ++pauses;
    }
  }

  void make_room() {
    for (auto& [id, j] : jobs_) {
      if (j.sink->room < 100 && pick(3) == 0) j.sink->room += pick(20);
    }
  }

  void step() {
    if (late_) late_->some(random_);
    const auto report = rig_.step();
    if (report.wait_until > rig_.clock.now()) rig_.clock.set(report.wait_until);
  }

  void check(const known_job& j) {
    const auto& whole = alone_[j.kind];
    const auto ids = j.sink->ids();
    CAPTURE(j.kind, rig_.late == nullptr);
    REQUIRE(j.sink->finishes == 1);
    const auto reason = j.sink->end->reason;
    ++endings[reason];
    REQUIRE(reason != finish_reason::error);
    if (reason == whole.end.reason) {
      REQUIRE(ids == whole.ids);
      REQUIRE(j.sink->end->shown_bytes == whole.end.shown_bytes);
      REQUIRE(j.sink->end->output_tokens == whole.end.output_tokens);
      return;
    }
    // A job that was cut short may have tokens that the whole run withheld and then dropped with a stop
    // string, so the tokens are compared only as far as both runs have some.
    REQUIRE((reason == finish_reason::cancel || reason == finish_reason::timeout));
    REQUIRE(ids.size() <= j.sink->end->output_tokens);
    const auto both = std::min(ids.size(), whole.ids.size());
    REQUIRE(std::equal(ids.begin(), ids.begin() + static_cast<std::ptrdiff_t>(both), whole.ids.begin()));
    for (std::size_t i = 1; i < j.sink->tokens.size(); ++i) {
      REQUIRE(j.sink->tokens[i - 1].at <= j.sink->tokens[i].at);
      // Tokens that a constraint forces come at the same time.
      if (j.kind % 4 != 1) REQUIRE(j.sink->tokens[i - 1].at < j.sink->tokens[i].at);
    }
  }

  engine_rig& rig_;
  const std::vector<solo_run>& alone_;
  std::mt19937 random_;
  lazy_helpers* late_;  // null: masks are never late
  std::map<job_id, known_job> jobs_;
};

// Compares random mixes in the loop `how` with runs alone, which always have the plain loop.
void check_mixes(loop_kind how, std::shared_ptr<lazy_helpers> late = nullptr) {
  auto c = small_config();
  c.max_batch = 6;
  c.kv_pages = 12;
  c.prefill_rows = 40;
  engine_rig plain(c), rig(c, letters(61), 4096, how, late);
  // Where a constraint forces the first tokens, nothing is drawn from the prompt's last row.
  plain.toy->some_rows_unwanted = rig.toy->some_rows_unwanted = true;
  std::vector<solo_run> alone;
  for (std::uint64_t k = 0; k < kinds; ++k) {
    auto sink = plain.submit(of_kind(plain, k));
    plain.run();
    alone.push_back({sink->ids(), *sink->end});
  }
  std::map<finish_reason, int> endings;
  int pauses = 0;
  for (unsigned seed = 0; seed < 40; ++seed) {
    INFO("seed " << seed);
    mix m(rig, alone, seed);
    for (int i = 0; i < 600; ++i) m.act();
    m.finish();
    pauses += m.pauses;
    for (const auto& [reason, n] : m.endings) endings[reason] += n;
  }
  CHECK(pauses > 300);
  if (late) {
    CHECK(rig.engine->counts().late_masks > 200);
    CHECK(late->waited_for > 20);
  }
  for (const auto reason :
       {finish_reason::stop, finish_reason::length, finish_reason::cancel, finish_reason::timeout}) {
    INFO(name(reason));
    CHECK(endings[reason] > 20);
  }
}

}  // namespace

TEST_CASE("random mixes of jobs: each ends once, as a beginning of what it gives alone") {
  check_mixes(loop_kind::plain);
}

TEST_CASE("random mixes of jobs, steps overlapping: the same") { check_mixes(loop_kind::overlapped); }

TEST_CASE("random mixes of jobs whose masks are late: the same, in both loops") {
  check_mixes(loop_kind::plain, std::make_shared<lazy_helpers>());
  check_mixes(loop_kind::overlapped, std::make_shared<lazy_helpers>());
}

}  // namespace weir::tests::engine_mix_test
