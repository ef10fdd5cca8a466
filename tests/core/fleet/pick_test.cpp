// Which place of a model takes a job.
#include "core/fleet/pick.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <map>
#include <random>

#include "tests/support/seed.h"

namespace weir::tests::pick_test {

using namespace std::chrono_literals;
using core::pick;
using core::place_load;

namespace {

std::vector<place_load> idle(std::size_t n) {
  std::vector<place_load> out(n);
  for (std::size_t i = 0; i < n; ++i) out[i].name = 100 + i, out[i].seats = 1000;
  return out;
}

}  // namespace

TEST_CASE("pick: every place comes once, whatever the places are like") {
  std::mt19937_64 random(drawn_seed(1));
  for (int round = 0; round < 1000; ++round) {
    auto places = idle(1 + random() % 9);
    for (auto& p : places) {
      p.jobs = static_cast<std::uint32_t>(random() % 300);
      p.wait = std::chrono::milliseconds(random() % 5000);
      p.prompt_tokens_per_s = random() % 3 == 0 ? 0 : static_cast<double>(random() % 50'000);
    }
    auto order = pick(places, 1 + random() % 64, random() % 10'000, random());
    std::ranges::sort(order);
    REQUIRE(order.size() == places.size());
    for (std::uint32_t i = 0; i < order.size(); ++i) REQUIRE(order[i] == i);
  }
}

TEST_CASE("pick: equal beginnings meet, and other beginnings spread over all places") {
  const auto places = idle(4);
  std::map<std::uint32_t, int> firsts;
  for (std::uint64_t beginning = 0; beginning < 4000; ++beginning) {
    const auto order = pick(places, 1, 100, beginning * 77);
    CHECK(order == pick(places, 1, 900, beginning * 77));
    ++firsts[order.front()];
  }
  REQUIRE(firsts.size() == 4);
  for (const auto& [place, n] : firsts) CHECK((n > 800 && n < 1200));
}

TEST_CASE("pick: where a place goes, only the beginnings that met there meet elsewhere") {
  const auto four = idle(4);
  const std::vector<place_load> three(four.begin(), four.end() - 1);
  for (std::uint64_t beginning = 0; beginning < 500; ++beginning) {
    const auto before = pick(four, 1, 100, beginning).front();
    if (before != 3) CHECK(pick(three, 1, 100, beginning).front() == before);
  }
}

TEST_CASE("pick: one beginning that all jobs have leaves no place more than a quarter above the mean") {
  auto places = idle(4);
  for (std::uint32_t jobs = 1; jobs <= 400; ++jobs) {
    ++places[pick(places, 1, 100, 5).front()].jobs;
    for (const auto& p : places) REQUIRE(4 * p.jobs <= 5 * jobs / 4 + 4);
  }
  for (const auto& p : places) CHECK(p.jobs > 0);
}

TEST_CASE("pick: no job waits for a seat in one place while another has one") {
  auto places = idle(3);
  for (auto& p : places) p.seats = 4;
  for (std::uint64_t job = 0; job < 12; ++job) ++places[pick(places, 1, 100, job * 7).front()].jobs;
  for (const auto& p : places) CHECK(p.jobs == 4);
  for (std::uint64_t job = 0; job < 12; ++job) ++places[pick(places, 1, 100, 5).front()].jobs;
  for (const auto& p : places) CHECK(p.jobs == 8);
}

TEST_CASE("pick: choices that stay together go where most room is") {
  auto places = idle(2);
  places[0].jobs = 3, places[1].jobs = 40;
  for (std::uint64_t beginning = 0; beginning < 50; ++beginning)
    CHECK(pick(places, 64, 100, beginning).front() == 0);
}

TEST_CASE("pick: the sooner first token wins, by its wait and by its prompt") {
  auto places = idle(3);
  places[0].wait = 300ms, places[1].wait = 100ms, places[2].wait = 200ms;
  for (std::uint64_t beginning = 0; beginning < 50; ++beginning)
    CHECK(pick(places, 1, 1000, beginning) == std::vector<std::uint32_t>{1, 2, 0});
  for (auto& p : places) p.wait = {};
  places[0].prompt_tokens_per_s = 10'000, places[1].prompt_tokens_per_s = 1'000;
  places[2].prompt_tokens_per_s = 20'000;
  for (std::uint64_t beginning = 0; beginning < 50; ++beginning)
    CHECK(pick(places, 1, 4000, beginning) == std::vector<std::uint32_t>{2, 0, 1});
}

TEST_CASE("pick: what a place has in its cache need not be computed there") {
  auto places = idle(3);
  for (auto& p : places) p.prompt_tokens_per_s = 10'000;
  places[0].wait = 50ms, places[1].wait = 100ms, places[2].wait = 120ms;
  places[2].known = 4096;
  for (std::uint64_t beginning = 0; beginning < 50; ++beginning)
    CHECK(pick(places, 1, 5000, beginning) == std::vector<std::uint32_t>{2, 0, 1});
  places[0].prompt_tokens_per_s = 0;  // a place that had no prompt yet is not taken for infinitely fast
  CHECK(pick(places, 1, 5000, 3).front() == 2);
  places[2].known = 9000;  // more than the prompt has
  CHECK(pick(places, 1, 5000, 3).front() == 2);
  places[1].wait = 1s, places[2].wait = 2s;  // it is worth no such wait
  CHECK(pick(places, 1, 5000, 3).front() == 0);
}

TEST_CASE("pick: of places that are about as quick, the one with most in its cache is chosen") {
  auto places = idle(4);
  places[2].known = 64;
  for (std::uint64_t beginning = 0; beginning < 50; ++beginning)
    CHECK(pick(places, 1, 100, beginning).front() == 2);
  for (std::uint32_t jobs = 1; jobs <= 100; ++jobs) {  // and yet it gets no crowd
    ++places[pick(places, 1, 100, 5).front()].jobs;
    for (const auto& p : places) REQUIRE(4 * p.jobs <= 5 * jobs / 4 + 4);
  }
}

TEST_CASE("pick: a prompt waits for no more of each other prompt than it has itself") {
  auto places = idle(2);
  for (auto& p : places) p.prompt_tokens_per_s = 10'000;
  places[0].prompts = 1, places[0].prompt_tokens = 100'000;
  places[1].prompts = 4, places[1].prompt_tokens = 8'000;
  CHECK(pick(places, 1, 1'000, 3).front() == 0);   // 0.1 and 0.4 s
  CHECK(pick(places, 1, 50'000, 3).front() == 1);  // 5 and 0.8 s
  places[0].prompts = 0;                           // it is not known how many
  CHECK(pick(places, 1, 1'000, 3).front() == 1);
}

TEST_CASE("pick: what others wait for counts, too") {
  auto places = idle(2);
  for (auto& p : places) p.prompt_tokens_per_s = 10'000;
  places[0].wait = 170ms, places[0].known = 900;
  for (std::uint64_t beginning = 0; beginning < 50; ++beginning)  // 100 ms sooner at the other one
    CHECK(pick(places, 1, 1'000, beginning).front() == 0);
  places[0].wait = 400ms;
  for (std::uint64_t beginning = 0; beginning < 50; ++beginning)
    CHECK(pick(places, 1, 1'000, beginning).front() == 1);
}

TEST_CASE("pick: a crowded place is still better than one that is far slower") {
  auto places = idle(2);
  places[0].jobs = 50;
  places[1].wait = 10s;
  CHECK(pick(places, 1, 100, 3).front() == 0);
  places[1].wait = 20ms;
  CHECK(pick(places, 1, 100, 3).front() == 1);
}

}  // namespace weir::tests::pick_test
