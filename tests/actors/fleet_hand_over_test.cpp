// A gateway that ends leaves its jobs to its workers: other gateways go on with them, and nothing is cut.
#include <catch2/catch.hpp>

#include "tests/actors/fleet_resume_town.h"

namespace weir::tests::fleet_hand_over_test {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using search_end = actors::job_search::end;

// How many jobs a gateway left; nullopt: it has not said so yet.
using left = std::shared_ptr<std::optional<std::uint32_t>>;

struct ending_fleet : resume_town {
  using resume_town::resume_town;

  left begin_hand_over(core::duration longest = seconds(1)) {
    auto said = std::make_shared<std::optional<std::uint32_t>>();
    first().side->hand_over(longest, here.get_executor(), [said](std::uint32_t n) { *said = n; });
    return said;
  }
  std::uint32_t hand_over(core::duration longest = seconds(1)) {
    const auto said = begin_hand_over(longest);
    REQUIRE(here.run([&] { return said->has_value(); }, seconds(10)));
    return **said;
  }
  // The process of the first gateway ends.
  void end_first() {
    first().service->cancel_all();
    wait(milliseconds(500));
    first().side.reset();
    first().bus->kill();
  }
};

bool is_handed_over(const job_stream& s) {
  if (s.state() != phase::done || !s.ended().fault) return false;
  return s.ended().fault->code == core::errc::handed_over;
}

}  // namespace

TEST_CASE("a gateway that ends leaves its jobs, and each goes on at another gateway") {
  ending_fleet t(71, 2, 2);
  std::vector<std::shared_ptr<job_stream>> first;
  for (std::uint64_t seed = 0; seed < 6; ++seed) first.push_back(t.running(resume_town::asked(300, seed), 5));
  CHECK(t.hand_over() == 6);
  t.end_first();
  std::vector<std::shared_ptr<job_stream>> on;
  for (const auto& s : first) on.push_back(t.resumed_at(t.other(), s->id()));
  for (std::uint64_t seed = 0; seed < 6; ++seed) {
    CHECK(is_handed_over(*first[seed]));
    CHECK(sim_text(seed, 300).starts_with(text_of(*first[seed])));
    t.finish(on[seed]);
    CHECK(text_of(*on[seed]) == sim_text(seed, 300));
    CHECK_FALSE(on[seed]->ended().fault);
  }
  std::uint64_t taken = 0, cut_off = 0;
  for (const auto& w : t.workers) taken += w.side->counts().taken, cut_off += w.side->counts().cut_off;
  CHECK(taken == 6);  // none ran twice
  CHECK(cut_off == 0);
  first.clear();
  on.clear();
  t.check_empty({&t.other()});
}

TEST_CASE("a job that nobody may resume is not left: it is cancelled with its gateway") {
  ending_fleet t(72);
  auto r = resume_town::asked(300, 8);
  r.resumable = nullptr;
  const auto alone = t.running(r);
  const auto s = t.running(resume_town::asked(300, 9));
  CHECK(t.hand_over() == 1);
  CHECK_FALSE(fleet_town::over(alone));
  t.end_first();
  CHECK(alone->ended().reason == core::finish_reason::cancel);
  CHECK(t.found_at(t.other(), alone->id()).how == search_end::nothing);
  const auto on = t.resumed_at(t.other(), s->id());
  t.finish(on);
  CHECK(text_of(*on) == sim_text(9, 300));
}

TEST_CASE("a job on its way to a worker is waited for, and left where it runs") {
  net_manners slow;
  slow.least = milliseconds(60);
  slow.most = milliseconds(90);
  ending_fleet t(73, 2, 2, "rate=50", slow);
  const auto s = t.send(t.first(), resume_town::asked(200, 8));
  t.wait(milliseconds(20));
  const auto said = t.begin_hand_over();
  t.wait(milliseconds(20));
  CHECK_FALSE(said->has_value());
  REQUIRE(t.here.run([&] { return said->has_value(); }, seconds(10)));
  CHECK(**said == 1);
  t.end_first();
  CHECK(is_handed_over(*s));
  const auto on = t.resumed_at(t.other(), s->id());
  t.finish(on);
  CHECK(text_of(*on) == sim_text(8, 200));
}

TEST_CASE("a job without a worker is waited for no longer than it is said, and ends by name") {
  ending_fleet t(74, 1, 1);
  const auto s = t.running(resume_town::asked(300, 8));
  t.workers.front().bus->kill();
  t.wait(seconds(3));
  const auto began = t.here.now();
  CHECK(t.hand_over(milliseconds(700)) == 0);
  CHECK(t.here.now() - began >= milliseconds(700));
  CHECK(t.here.now() - began < seconds(1));
  CHECK_FALSE(fleet_town::over(s));
  t.end_first();
  CHECK(s->ended().reason == core::finish_reason::cancel);
}

TEST_CASE("a job whose worker dies while its gateway hands over moves, and is left where it went") {
  ending_fleet t(75, 2, 2);
  const auto s = t.running(resume_town::asked(400, 8));
  for (auto& w : t.workers)
    if (w.service->stats().engine.decoding > 0) w.bus->kill();
  // Its gateway has noticed it, and the new worker has not answered yet.
  REQUIRE(t.here.run([&] { return t.first().side->counts().moved == 1; }, seconds(10)));
  CHECK(t.hand_over() == 1);
  t.end_first();
  const auto on = t.resumed_at(t.other(), s->id());
  t.finish(on);
  CHECK(text_of(*on) == sim_text(8, 400));
}

TEST_CASE("a job that was cancelled is not left, and neither is one that has ended") {
  ending_fleet t(76);
  const auto done = t.running(resume_town::asked(25, 7));
  t.finish(done);
  const auto s = t.running(resume_town::asked(300, 8));
  s->cancel();
  CHECK(t.hand_over() == 0);
  t.finish(s);
  CHECK(s->ended().reason == core::finish_reason::cancel);
  t.end_first();
  const auto again = t.resumed_at(t.other(), done->id());
  t.finish(again);
  CHECK(text_of(*again) == sim_text(7, 25));
}

TEST_CASE("jobs that nobody comes for end after the grace, and leave nothing") {
  ending_fleet t(77);
  const auto s = t.running(resume_town::asked(5000, 8));
  CHECK(t.hand_over() == 1);
  t.end_first();
  t.wait(seconds(4));
  CHECK(t.workers.front().side->counts().jobs == 1);  // 2 s without a pulse, and a grace of 3 s
  t.wait(seconds(3));
  CHECK(t.workers.front().side->counts().cut_off == 1);
  CHECK(t.found_at(t.other(), s->id()).how == search_end::nothing);
  t.check_empty({&t.other()});
}

TEST_CASE("all gateways are replaced one after the other, and no job is lost") {
  ending_fleet t(78, 2, 2);
  std::vector<std::shared_ptr<job_stream>> all;
  for (std::uint64_t seed = 0; seed < 5; ++seed) all.push_back(t.running(resume_town::asked(600, seed), 5));
  for (int round = 0; round < 4; ++round) {
    CHECK(t.hand_over() == 5);
    t.end_first();
    t.gateways.pop_front();
    for (auto& s : all) {
      CHECK(is_handed_over(*s));
      s = t.resumed_at(t.first(), s->id());
    }
    t.add_gateway();
    t.wait(seconds(1));
  }
  for (std::uint64_t seed = 0; seed < 5; ++seed) {
    t.finish(all[seed]);
    CHECK(text_of(*all[seed]) == sim_text(seed, 600));
  }
  all.clear();
  t.check_empty({&t.first(), &t.other()});
}

}  // namespace weir::tests::fleet_hand_over_test
