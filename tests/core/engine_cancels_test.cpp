// A hundred thousand jobs that nobody waits for any more: cancelled, disconnected, or out of time, wherever
// they are.
#include <map>
#include <random>

#include "core/engine.h"
#include "tests/support/budget.h"
#include "tests/support/seed.h"
#include "tests/support/engine_rig.h"

namespace weir::tests::engine_cancels_test {

using namespace weir::core;
using namespace std::chrono_literals;

namespace {

constexpr std::uint32_t prompt_kinds = 12;

// The crowd has more jobs than the batch has places, and needs more pages than there are: jobs wait, grow and
// are preempted.
engine_config crowded(std::uint32_t prefill_rows) {
  auto c = small_config();
  c.max_batch = 12;
  c.kv_pages = 24;
  c.prefill_rows = prefill_rows;
  return c;
}

sim_spec quick() {
  sim_spec s;
  s.rate = 1e6;
  s.prefill = 1e9;
  return s;
}

std::unique_ptr<engine_rig> rig_of(loop_kind how) {
  if (how == loop_kind::plain) return std::make_unique<engine_rig>(quick(), crowded(96));
  return std::make_unique<engine_rig>(std::make_unique<late_model>(make_sim_model(quick())),
                                      letters(sim_vocab_size), crowded(24));
}

// One engine, and a crowd of jobs whose ends are drawn by chance.
class crowd {
 public:
  crowd(std::uint64_t seed, loop_kind how) : own_(rig_of(how)), rig_(*own_), random_(seed) {}

  // Runs steps until `ends` ends were asked for and no job is left.
  void live(std::uint64_t ends) {
    while (asked() < ends || !jobs_.empty()) {
      while (asked() < ends && jobs_.size() < 24) begin_one();
      if (!jobs_.empty() && pick(0, 99) < 12) end_one();
      one_step();
    }
    if (!rig_.engine->idle()) one_step();  // rows of ended jobs are still under way
  }

  // Ended jobs by the state in which the end came, and by what ended them.
  std::map<std::string, std::uint64_t> ended_while, ended_by;
  const engine_rig& rig() const { return rig_; }
  std::uint64_t started() const { return started_; }

 private:
  struct life {
    std::shared_ptr<recording_sink> sink;
    time_point deadline = time_point::max();
  };

  std::uint64_t asked() { return ended_by["cancel"] + ended_by["disconnect"] + ended_by["deadline"]; }

  void begin_one() {
    const std::uint64_t n = started_++;
    job j = rig_.job(n, pick(1, 600), 1);
    const std::uint32_t kind = pick(0, prompt_kinds - 1), tokens = pick(1, 160);
    std::vector<token_id> text;  // kinds of prompts begin alike, so that jobs share pages
    for (std::uint32_t i = 0; i < tokens; ++i)
      text.push_back(static_cast<token_id>((kind * 31 + i * 7) % 250));
    j.prompt = std::move(text);
    j.priority = static_cast<int>(pick(0, 2));
    j.key = pick(0, 3);
    life& it = jobs_[n];
    if (pick(0, 2) == 0) {
      j.deadline = rig_.clock.now() + std::chrono::microseconds(pick(1, 400));
      it.deadline = *j.deadline;
    }
    auto sink = std::make_shared<recording_sink>();
    if (pick(0, 4) == 0) sink->room = pick(0, 20);  // its reader has stopped
    it.sink = sink;
    j.sink = sink;
    rig_.engine->submit(std::move(j));
  }

  // Ends a job by a cancel, or by a disconnect: its sink is abandoned first, and then the job is cancelled.
  void end_one() {
    auto it = jobs_.begin();
    std::advance(it, static_cast<std::ptrdiff_t>(pick(0, static_cast<std::uint32_t>(jobs_.size() - 1))));
    const std::uint64_t n = it->first;
    const sequence_view before = view_of(n);
    ++ended_while[before.preemptions > 0 && before.pages == 0 ? "preempted" : name(before.state)];
    if (pick(0, 1)) it->second.sink->left = true;
    ++ended_by[it->second.sink->left ? "disconnect" : "cancel"];
    REQUIRE(rig_.engine->cancel(engine_rig::id(n)));
    REQUIRE_FALSE(rig_.engine->cancel(engine_rig::id(n)));
    REQUIRE(it->second.sink->finishes == 1);
    REQUIRE(view_of(n).prompt_tokens == 0);
    REQUIRE(rig_.engine->check_integrity().empty());  // only listed jobs hold pages
    jobs_.erase(it);
  }

  void one_step() {
    const time_point began = rig_.clock.now();
    rig_.step();
    rig_.engine->list(seen_);
    for (const sequence_view& v : seen_) {
      // A job whose deadline had passed when the step began holds no page, though its last tokens may still
      // wait.
      if (jobs_.at(v.id.lo).deadline <= began) REQUIRE(v.pages == 0);
    }
    std::erase_if(jobs_, [&](const auto& each) {
      if (each.second.sink->finishes == 0) {
        if (each.second.sink->room < 20 && pick(0, 9) == 0) ++each.second.sink->room;
        return false;
      }
      REQUIRE(each.second.sink->finishes == 1);
      if (each.second.sink->end->reason == finish_reason::timeout) ++ended_by["deadline"];
      return true;
    });
  }

  std::uint32_t pick(std::uint32_t from, std::uint32_t to) {
    return std::uniform_int_distribution<std::uint32_t>(from, to)(random_);
  }

  sequence_view view_of(std::uint64_t n) {
    rig_.engine->list(seen_);
    for (const auto& v : seen_)
      if (v.id == engine_rig::id(n)) return v;
    return {};
  }

  const std::unique_ptr<engine_rig> own_;
  engine_rig& rig_;
  std::mt19937_64 random_;
  std::uint64_t started_ = 0;
  std::map<std::uint64_t, life> jobs_;
  std::vector<sequence_view> seen_;
};

}  // namespace

namespace {

void check(crowd& all, std::uint64_t ends) {
  for (const char* where : {"queued", "prefilling", "decoding", "preempted", "finished"}) {
    CAPTURE(where, all.ended_while[where]);
    CHECK(all.ended_while[where] > ends / 2000);  // the rarest state has one end of 430
  }
  for (const char* how : {"cancel", "disconnect", "deadline"}) {
    CAPTURE(how, all.ended_by[how]);
    CHECK(all.ended_by[how] > ends / 10);
  }
  const auto counts = all.rig().engine->counts();
  CHECK(counts.pages_used == 0);
  CHECK(counts.pages_free + counts.pages_cached == counts.pages_total);
  CHECK(counts.finished == all.started());
  CHECK(counts.preemptions > ends / 100);
  CHECK(counts.prefix_hits > ends / 100);
  CHECK(all.rig().engine->idle());
}

}  // namespace

TEST_CASE(
    "a hundred thousand cancels, disconnects and deadlines give their pages back before the next step") {
  crowd all(weir::tests::drawn_seed(20261122), loop_kind::plain);
  all.live(weir::tests::rounds(100'000));
  check(all, weir::tests::rounds(100'000));
}

TEST_CASE("so do thirty thousand where steps overlap, whatever is under way") {
  crowd all(weir::tests::drawn_seed(20261123), loop_kind::overlapped);
  all.live(weir::tests::rounds(30'000));
  check(all, weir::tests::rounds(30'000));
}

}  // namespace weir::tests::engine_cancels_test
