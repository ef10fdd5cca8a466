// Questions for the jobs of a cell, and their answers: what goes in comes out, within the bounds of a
// message, and nothing that is cut is taken for whole.
#include "core/fleet/list_frame.h"

#include <catch2/catch.hpp>
#include <random>

#include "core/engine.h"
#include "core/fleet/frame_kind.h"
#include "tests/support/budget.h"
#include "tests/support/seed.h"

namespace weir::tests::list_frame_test {
namespace {

using namespace weir::core;
using namespace weir::core::fleet;

const std::string gateway = "abcdefgh234567ab", worker = "wwwwwwww22222222";

listed_job some_job(std::mt19937_64& random) {
  listed_job j;
  j.id = {random(), random()};
  j.attempt = static_cast<std::uint8_t>(random());
  j.gateway = gateway;
  j.model = std::string(random() % 40, 'm');
  j.state = static_cast<sequence_state>(random() % 5);
  j.reason = static_cast<finish_reason>(random() % finish_reasons);
  j.prompt_tokens = static_cast<std::uint32_t>(random());
  j.output_tokens = static_cast<std::uint32_t>(random() % 1000);
  j.priority = static_cast<int>(random() % 11) - 5;
  j.age = std::chrono::microseconds(random() % 1'000'000);
  return j;
}

bool same(const listed_job& a, const listed_job& b) {
  return a.id == b.id && a.attempt == b.attempt && a.gateway == b.gateway && a.model == b.model &&
         a.state == b.state && a.reason == b.reason && a.prompt_tokens == b.prompt_tokens &&
         a.output_tokens == b.output_tokens && a.priority == b.priority && a.age == b.age;
}

}  // namespace

TEST_CASE("a question for jobs is read as it was written, and no part of one is a question") {
  std::mt19937_64 random(drawn_seed(1));
  for (unsigned n = 0; n < rounds(200); ++n) {
    job_question q;
    q.question = random();
    q.gateway = gateway;
    if (random() % 2) q.who = {random(), random()};
    if (random() % 2) q.id = {random(), random()};
    q.cancel = q.id && random() % 2;
    const auto frame = frame_of(q);
    const auto read = read_job_question(frame);
    REQUIRE(read.has_value());
    CHECK(read->question == q.question);
    CHECK(read->gateway == q.gateway);
    CHECK(read->who == q.who);
    CHECK(read->id == q.id);
    CHECK(read->cancel == q.cancel);
    for (std::size_t cut = 0; cut < frame.size(); ++cut) CHECK(!read_job_question(frame.substr(0, cut)));
    CHECK(read_job_question(frame + "of a later build").has_value());
  }
}

TEST_CASE("a cancel of no job in particular is no question") {
  job_question q;
  q.gateway = gateway;
  q.cancel = true;
  CHECK(!read_job_question(frame_of(q)));
  q.id = job_id{1, 2};
  CHECK(read_job_question(frame_of(q)));
  q.gateway = "a gateway";
  CHECK(!read_job_question(frame_of(q)));
}

TEST_CASE("a list of jobs comes in messages that are not too long, and is whole when all have come") {
  std::mt19937_64 random(drawn_seed(2));
  for (unsigned n = 0; n < rounds(50); ++n) {
    std::vector<listed_job> jobs(random() % 60);
    for (auto& j : jobs) j = some_job(random);
    const std::size_t longest = 1000 + random() % 3000;
    const auto frames = listed_frames(77, worker, jobs, longest);
    REQUIRE(!frames.empty());
    REQUIRE(frames.size() <= most_list_parts);
    std::vector<listed_job> all;
    for (std::size_t i = 0; i < frames.size(); ++i) {
      CHECK(frames[i].size() <= longest);
      const auto part = read_listed(frames[i]);
      REQUIRE(part.has_value());
      CHECK(part->question == 77);
      CHECK(part->worker == worker);
      CHECK(part->part == i);
      CHECK(part->of == frames.size());
      CHECK(frame_of(*part) == frames[i]);
      all.insert(all.end(), part->jobs.begin(), part->jobs.end());
      CHECK(part->left_out + all.size() <= jobs.size() + part->jobs.size() * frames.size());
      if (i + 1 == frames.size()) CHECK(part->left_out + all.size() == jobs.size());
      CHECK(!read_listed(frames[i].substr(0, frames[i].size() - 1)));
    }
    for (std::size_t i = 0; i < all.size(); ++i) CHECK(same(all[i], jobs[i]));
  }
}

TEST_CASE("jobs beyond the bound of a list are counted") {
  std::mt19937_64 random(drawn_seed(3));
  std::vector<listed_job> jobs(most_listed + 5);
  for (auto& j : jobs) j = some_job(random);
  const auto frames = listed_frames(1, worker, jobs, std::size_t{512} << 10);
  std::size_t told = 0;
  for (const auto& f : frames) {
    const auto part = read_listed(f);
    REQUIRE(part.has_value());
    CHECK(part->left_out == 5);
    told += part->jobs.size();
  }
  CHECK(told == most_listed);
}

// A count that the bytes cannot have is refused before anything is allocated for it.
TEST_CASE("a list that says it has more jobs than bytes is none") {
  listed l;
  l.worker = worker;
  auto frame = frame_of(l);
  frame.back() = '\x7f';
  CHECK(!read_listed(frame));
  l.of = most_list_parts + 1;
  CHECK(!read_listed(frame_of(l)));
  l.of = 2;
  l.part = 2;
  CHECK(!read_listed(frame_of(l)));
  CHECK(!read_listed(frame_of(job_question{.gateway = gateway})));
}

}  // namespace weir::tests::list_frame_test
