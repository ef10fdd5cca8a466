#include "core/schedule/waiting_line.h"

#include <catch2/catch.hpp>
#include <random>

#include "tests/support/schedule_rig.h"
#include "tests/support/seed.h"

namespace weir::tests::waiting_line_test {

using namespace weir::core;

namespace {

const toy_model the_model;

std::unique_ptr<sequence> job_of(std::uint64_t n, int priority = 0, std::uint64_t key = 0) {
  job j = numbered_job(n, 3);
  j.priority = priority;
  j.key = key;
  return std::make_unique<sequence>(std::move(j), the_model.info(), the_model.info().context);
}

// The sequence as one that was in the batch and lost its pages.
std::unique_ptr<sequence> preempted(std::unique_ptr<sequence> s) {
  page_pool pool(1);
  s->enter(0, {}, the_model.info().vocab_size);
  s->preempt(pool);
  return s;
}

std::vector<std::uint64_t> order(const waiting_line& line) {
  std::vector<std::uint64_t> out;
  line.each([&](const sequence& s) { out.push_back(s.asked.id.lo); });
  return out;
}

}  // namespace

TEST_CASE("waiting line: a higher priority is first, then a preempted sequence, then the older job") {
  waiting_line line;
  for (std::uint64_t n = 0; n < 3; ++n) line.add(job_of(n));
  line.add(job_of(3, 1));
  line.add(job_of(4, -1));
  CHECK(order(line) == std::vector<std::uint64_t>{3, 0, 1, 2, 4});

  auto at = line.begin();
  ++++at;
  auto second = line.take(at);
  CHECK(second->asked.id.lo == 1);
  CHECK(at->second->asked.id.lo == 2);
  line.put_back(preempted(std::move(second)));
  CHECK(order(line) == std::vector<std::uint64_t>{3, 1, 0, 2, 4});
  CHECK(line.preempted() == 1);
  std::vector<std::uint64_t> lost;
  line.each_preempted([&](const sequence& s) { lost.push_back(s.asked.id.lo); });
  CHECK(lost == std::vector<std::uint64_t>{1});
}

TEST_CASE("waiting line: keys alternate, and a key with one job waits for few of a key with many") {
  waiting_line line;
  std::uint64_t n = 0;
  for (int i = 0; i < 4; ++i) line.add(job_of(n++, 0, 1));
  for (int i = 0; i < 3; ++i) line.add(job_of(n++, 0, 2));
  CHECK(order(line) == std::vector<std::uint64_t>{0, 4, 1, 5, 2, 6, 3});

  // Of the later jobs, at most as many enter before a job as were added to the job's ticket.
  waiting_line busy;
  for (std::uint64_t i = 0; i < 3; ++i) busy.add(job_of(i, 0, 1));
  for (std::uint64_t i = 3; i < 300; ++i) busy.add(job_of(i, 0, i));
  const auto all = order(busy);
  for (std::uint64_t n = 1; n <= 2; ++n) {
    const auto before = static_cast<std::uint64_t>(std::ranges::find(all, n) - all.begin());
    CHECK(before <= n + n * waiting_line::ticket_step);
    CHECK(before > (n - 1) * waiting_line::ticket_step);
  }
}

TEST_CASE("waiting line: a sequence is taken by identity, and one that is not there is not") {
  waiting_line line;
  auto owned = job_of(1);
  sequence& waits = *owned;
  line.add(std::move(owned));
  const auto other = job_of(1);  // the same priority, ticket and arrival
  CHECK(line.take(*other) == nullptr);
  CHECK(line.take(waits).get() == &waits);
  CHECK(line.empty());
}

TEST_CASE("waiting line: counts follow whatever comes and goes") {
  std::mt19937 random(drawn_seed(19));
  waiting_line line;
  std::vector<sequence*> there;
  std::uint64_t tokens = 0, lost = 0, arrivals = 0;
  for (std::uint64_t n = 0; n < 2000; ++n) {
    if (there.empty() || random() % 2 == 0) {
      auto s = job_of(n, static_cast<int>(random() % 3), random() % 4);
      tokens += s->length();
      there.push_back(s.get());
      line.add(std::move(s));
      ++arrivals;
    } else {
      const std::size_t i = random() % there.size();
      auto s = line.take(*there[i]);
      REQUIRE(s.get() == there[i]);
      if (s->phase() == sequence_phase::preempted) {
        --lost;
      } else if (random() % 2 == 0) {
        line.put_back(preempted(std::move(s)));
        ++lost;
        continue;
      }
      tokens -= s->length();
      there.erase(there.begin() + static_cast<std::ptrdiff_t>(i));
    }
    REQUIRE(line.size() == there.size());
    REQUIRE(line.tokens() == tokens);
    REQUIRE(line.preempted() == lost);
    REQUIRE(line.arrivals() == arrivals);
  }
}

}  // namespace weir::tests::waiting_line_test
