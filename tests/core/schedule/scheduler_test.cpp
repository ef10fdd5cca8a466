#include "core/schedule/scheduler.h"

#include <catch2/catch.hpp>
#include <random>
#include <set>

#include "core/model/sim.h"
#include "tests/support/schedule_rig.h"

namespace weir::tests::scheduler_test {

using namespace weir::core;
using namespace std::chrono_literals;

TEST_CASE("scheduler: nothing waits, nothing runs: an empty plan") {
  schedule_rig r;
  CHECK(r.plan.plan(r.now).empty());
  CHECK(r.plan.next_due() == time_point::max());
}

TEST_CASE("scheduler: a prompt is computed in slices, and its last row asks for logits") {
  schedule_rig r(64, 8, 64);
  const sequence& s = r.add(numbered_job(1, 150));
  for (const std::uint32_t rows : {64u, 64u, 22u}) {
    const batch& work = r.plan.plan(r.now);
    REQUIRE(work.slices.size() == 1);
    CHECK(work.slices[0].rows == rows);
    CHECK(work.slices[0].position == s.computed());
    CHECK((work.slices[0].logits_row >= 0) == (rows == 22));
    CHECK(r.plan.last_load().prompt_rows == rows);
    r.compute(work);
  }
  const batch& work = r.plan.plan(r.now);
  CHECK(work.tokens == std::vector<token_id>{s.output().back().id});
  CHECK(r.plan.last_load().decode_rows == 1);
  r.compute(work);
}

TEST_CASE("scheduler: a token that is not known yet stands in the batch as the draw that gives it") {
  schedule_rig r;
  sequence& s = r.add(numbered_job(1, 3));
  r.plan.plan(r.now);
  r.plan.computed(r.now);
  s.await_draw(4);
  const batch& work = r.plan.plan(r.now);
  CHECK(work.tokens == std::vector<token_id>{drawn_by(4)});
  CHECK(work.slices[0].position == 3);
  CHECK(work.slices[0].logits_row == 0);
}

TEST_CASE("scheduler: no row is chosen for a sequence whose last token is in flight") {
  schedule_rig r;
  sequence& s = r.add(numbered_job(1, 3, 1));
  r.plan.plan(r.now);
  r.plan.computed(r.now);
  s.await_draw(0);
  CHECK(r.plan.plan(r.now).empty());
}

TEST_CASE("scheduler: a job enters when its pages are there, and one for each that runs") {
  schedule_rig r(4);
  sequence& first = r.add(numbered_job(1, 100));
  r.step();
  const sequence& second = r.add(numbered_job(2, 100));  // two pages, and the first may need a third
  r.step();
  CHECK_FALSE(r.running(second));
  CHECK(r.plan.waiting().size() == 1);
  first.close(finish_reason::cancel, r.pool);
  r.plan.sweep([](auto& s) { if (s->ended()) s.reset(); });
  r.step();
  CHECK(r.running(second));
  CHECK(r.plan.latest().entered == 1);
}

TEST_CASE("scheduler: a job without room is passed by most_passes others, and by no more") {
  schedule_rig r(8, 16, 512);
  r.add(numbered_job(1, 200, 100));
  r.step();
  const sequence& big = r.add(numbered_job(2, 400));
  for (std::uint64_t n = 0; n < 10; ++n) r.add(numbered_job(10 + n, 3, 1));
  std::uint32_t entered = 0;
  for (int i = 0; i < 20; ++i) {
    r.step();
    entered += r.plan.latest().entered;
    r.plan.sweep([](auto& s) { if (s->ended()) s.reset(); });
  }
  CHECK(entered == scheduler::most_passes);
  CHECK(big.passed == scheduler::most_passes);
}

TEST_CASE("scheduler: a waiting job whose sink is gone is handed out, and takes no page") {
  schedule_rig r;
  job j = numbered_job(1, 100);
  static_cast<recording_sink&>(*j.sink).left = true;
  r.add(std::move(j));
  CHECK(r.plan.plan(r.now).empty());
  REQUIRE(r.plan.abandoned().size() == 1);
  CHECK(r.plan.waiting().empty());
  CHECK(r.pool.used() == 0);
}

TEST_CASE("scheduler: without a page for growth the youngest sequence is preempted") {
  schedule_rig r(5, 8, 512);
  const sequence& old = r.add(numbered_job(1, 100, 400));
  const sequence& young = r.add(numbered_job(2, 100, 400));
  r.step();
  REQUIRE(r.plan.running().size() == 2);
  while (young.preemptions() == 0) {
    r.step();
    REQUIRE(old.preemptions() == 0);
  }
  CHECK(old.length() > 128);
}

TEST_CASE("scheduler: a sequence of a lower priority is preempted before a younger one") {
  schedule_rig r(6, 8, 512);
  job low = numbered_job(1, 100, 250);
  low.priority = -1;
  const sequence& a = r.add(std::move(low));
  const sequence& b = r.add(numbered_job(2, 100, 250));
  while (a.preemptions() == 0) {
    r.step();
    REQUIRE(b.length() < 350);
  }
  CHECK(r.plan.latest().preemptions == 1);
  CHECK(b.preemptions() == 0);
  CHECK_FALSE(r.running(a));
  CHECK(a.pages.size() == 0);
  CHECK(r.plan.waiting().preempted() == 1);
  while (!b.ended()) {
    r.step();
    REQUIRE(b.preemptions() == 0);
  }
}

TEST_CASE("scheduler: of the prompts that need the same page one computes it, and the others take it") {
  schedule_rig r(32, 8, 512);
  const sequence& first = r.add(numbered_job(1, 200));
  const sequence& second = r.add(numbered_job(1, 250));
  const batch& work = r.plan.plan(r.now);
  CHECK(r.rows_of(work, first) == 200);
  CHECK(r.rows_of(work, second) == 0);
  CHECK(second.phase() == sequence_phase::held);
  r.compute(work);
  const batch& next = r.plan.plan(r.now);
  CHECK(r.rows_of(next, first) == 1);
  CHECK(r.rows_of(next, second) == 250 - 192);
  CHECK(second.cached() == 192);
  CHECK(second.pages.all()[2] == first.pages.all()[2]);
  r.compute(next);
}

TEST_CASE("scheduler: a held sequence goes on by itself where the one that computes its page has ended") {
  schedule_rig r(32, 8, 64);
  sequence& first = r.add(numbered_job(1, 200));
  const sequence& second = r.add(numbered_job(1, 250));
  r.step();
  first.close(finish_reason::cancel, r.pool);
  r.plan.sweep([](auto& s) { if (s->ended()) s.reset(); });
  const batch& work = r.plan.plan(r.now);
  CHECK(r.rows_of(work, second) == 64);
  CHECK(second.computed() == 64);  // the page that the other one had computed
  r.compute(work);
}

TEST_CASE("scheduler: of several prompts the shortest is first, but a long one is not passed for ever") {
  schedule_rig r(200, 16, 64);
  const sequence& longest = r.add(numbered_job(1, 640));
  r.step();
  std::uint64_t n = 10;
  std::uint32_t before = 0;  // rows of later prompts chosen while the long one waited
  while (longest.output().empty()) {
    r.add(numbered_job(n++, 60, 1));
    const batch& work = r.plan.plan(r.now);
    before += r.plan.last_load().prompt_rows - r.rows_of(work, longest);
    r.compute(work);
    r.plan.sweep([](auto& s) { if (s->ended()) s.reset(); });
    REQUIRE(n < 60);
  }
  CHECK(before > 0);
  CHECK(before <= 640 + 60);
}

TEST_CASE("scheduler: rows of a paced model are left out until they are due") {
  const auto model = make_sim_model(*parse_sim_spec("rate=50"));
  page_pool pool(16);
  scheduler plan(4, {}, pool, *model);
  plan.add(std::make_unique<sequence>(numbered_job(1, 10), model->info(), model->info().context));
  const time_point start{};
  CHECK(plan.plan(start).empty());
  const time_point due = plan.next_due();
  CHECK(due > start);
  CHECK(due < start + 1s);
  CHECK_FALSE(plan.plan(due).empty());
  plan.running()[0]->give_back(pool);
}

// What must hold of every plan, whatever waits and runs.
TEST_CASE("scheduler: random days: rows follow each other, pages hold them, budgets bound them") {
  std::uint64_t ended = 0;
  for (unsigned seed = 0; seed < 40; ++seed) {
    std::mt19937 random(seed);
    schedule_rig r(10 + random() % 20, 1 + random() % 8, 16 + random() % 100);
    const std::uint32_t most_rows = 16 + 100;
    std::uint64_t n = 0;
    for (int i = 0; i < 300; ++i) {
      while (random() % 3 == 0) {
        job j = numbered_job(random() % 5, 1 + random() % 300, 1 + random() % 60);
        j.id.lo = n++;
        j.priority = static_cast<int>(random() % 2);
        j.key = random() % 3;
        r.add(std::move(j));
      }
      const batch& work = r.plan.plan(r.now);
      INFO("seed " << seed << ", step " << i);
      std::set<const sequence*> once;
      std::set<page_id> written;
      std::uint32_t row = 0, logits = 0;
      for (std::size_t k = 0; k < work.slices.size(); ++k) {
        const batch_slice& slice = work.slices[k];
        const sequence& s = *r.plan.sequences()[k];
        REQUIRE(once.insert(&s).second);
        REQUIRE(s.phase() == sequence_phase::running);
        REQUIRE(slice.first_row == row);
        REQUIRE(slice.position == s.computed());
        REQUIRE(slice.rows >= 1);
        REQUIRE(slice.pages.size() == pages_for(slice.position + slice.rows));
        const bool last = slice.position + slice.rows == s.length();
        REQUIRE((slice.logits_row >= 0) == last);
        if (last) REQUIRE(static_cast<std::uint32_t>(slice.logits_row) == logits++);
        for (std::uint32_t at = 0; at < slice.rows; ++at)
          REQUIRE(work.tokens[row + at] == s.token_at(slice.position + at));
        for (auto p = slice.position / page_tokens; p < slice.pages.size(); ++p)
          REQUIRE(written.insert(slice.pages[p]).second);  // no two sequences write to one page
        row += slice.rows;
      }
      REQUIRE(row == work.tokens.size());
      REQUIRE(logits == work.logits_rows);
      REQUIRE(r.plan.last_load().prompt_rows <= most_rows);
      REQUIRE((!work.empty() || r.plan.running().empty()));
      r.compute(work);
      r.plan.sweep([&](auto& s) {
        if (!s->ended()) return;
        s.reset();
        ++ended;
      });
    }
  }
  CHECK(ended > 1000);
}

TEST_CASE("scheduler: a paused sequence keeps its pages, leaves its place, and returns when there is one") {
  schedule_rig r(16, 1, 64);
  sequence& a = r.add(numbered_job(1, 10));
  sequence& b = r.add(numbered_job(2, 10));
  r.step();
  r.plan.pause(a, time_point(5s));
  CHECK(a.pages.size() == 1);
  r.step();
  CHECK_FALSE(r.running(a));
  CHECK(r.running(b));
  CHECK(r.plan.next_resume() == time_point(5s));
  r.now = time_point(5s);
  r.step();
  CHECK_FALSE(r.running(a));  // no place
  CHECK(r.plan.next_resume() == time_point::max());
  r.plan.pause(b, time_point::max());
  CHECK(r.rows_of(r.plan.plan(r.now), a) == 1);
  CHECK(a.preemptions() == 0);
}

TEST_CASE("scheduler: a paused sequence is preempted before one of a lower priority that runs") {
  schedule_rig r(2, 8, 64);
  job first = numbered_job(1, 10);
  first.priority = 5;
  sequence& a = r.add(std::move(first));
  r.step();
  r.plan.pause(a, time_point::max());
  sequence& b = r.add(numbered_job(2, 70));
  r.step();
  CHECK(r.running(b));
  CHECK(a.pages.size() == 0);
  CHECK(a.phase() == sequence_phase::paused);
  CHECK(r.plan.latest().preemptions == 1);
}

namespace {

// Runs until `s` is in the batch; the sequence that runs in between ends with each step. Returns how many
// others entered.
int entered_before(schedule_rig& r, const sequence& s) {
  for (int others = 0;; ++others) {
    REQUIRE(others < 100);
    r.plan.plan(r.now);
    if (r.running(s)) return others;
    REQUIRE(r.plan.running().size() == 1);
    sequence& over = *r.plan.running().front();
    over.close(finish_reason::cancel, r.pool);
    r.plan.sweep([](auto& p) {
      if (p->ended()) p.reset();
    });
  }
}

// `n` sequences of a key with one page each, paused.
std::vector<sequence*> paused_of(schedule_rig& r, std::uint64_t key, std::uint64_t n) {
  std::vector<sequence*> all;
  for (std::uint64_t i = 0; i < n; ++i) {
    job j = numbered_job(key * 100 + i, 10, 100);
    j.key = key;
    all.push_back(&r.add(std::move(j)));
    r.step();
    REQUIRE(r.running(*all.back()));
    r.plan.pause(*all.back(), time_point::max());
  }
  return all;
}

}  // namespace

TEST_CASE("scheduler: sequences that return and those of the waiting line take turns") {
  schedule_rig r(64, 1, 64);
  const auto back = paused_of(r, 1, 10);
  const sequence& first = r.add(numbered_job(1, 10, 100));
  r.step();
  REQUIRE(r.running(first));
  for (sequence* s : back) r.plan.resume(*s);
  std::vector<const sequence*> line;
  for (std::uint64_t n = 2; n <= 4; ++n) line.push_back(&r.add(numbered_job(n, 10, 100)));
  CHECK(entered_before(r, *back[0]) == 1);  // `first`
  CHECK(entered_before(r, *line[0]) == 1);
  CHECK(entered_before(r, *back[1]) == 1);
  CHECK(entered_before(r, *line[1]) == 1);
  CHECK(entered_before(r, *line[2]) == 2);
  CHECK(entered_before(r, *back[9]) == 7);
}

TEST_CASE("scheduler: of the sequences that return a key has one in its turn, and priority goes first") {
  schedule_rig r(64, 1, 64);
  const auto a = paused_of(r, 1, 10), b = paused_of(r, 2, 2);
  const sequence& first = r.add(numbered_job(1, 10, 100));
  r.step();
  REQUIRE(r.running(first));
  for (sequence* s : a) r.plan.resume(*s);
  for (sequence* s : b) r.plan.resume(*s);
  job urgent = numbered_job(2, 10, 100);
  urgent.priority = 1;
  CHECK(entered_before(r, r.add(std::move(urgent))) == 1);
  CHECK(entered_before(r, *b[0]) <= 2);
  CHECK(entered_before(r, *b[1]) == 2);
  CHECK(entered_before(r, *a[9]) <= 9);
}

}  // namespace weir::tests::scheduler_test
