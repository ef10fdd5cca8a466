// The playout buffer on streams that come unevenly.
#include "net/load/playout.h"

#include <catch2/catch.hpp>
#include <random>

#include "net/load/measures.h"

namespace weir::tests::playout_test {

using namespace weir::load;

namespace {

// 1 to 5 tokens every 45 ms, each a frame, and a pause of 150 ms more after every 50 tokens.
std::vector<frame> bursty(int tokens) {
  std::mt19937_64 random(1);
  std::vector<frame> frames;
  micros at = 700'000;
  for (int made = 0; made < tokens; at += 45'000)
    for (auto n = 1 + random() % 5; n > 0; --n) {
      frames.push_back({at, 1});
      if (++made % 50 == 0) at += 150'000;
    }
  return frames;
}

std::vector<double> gaps_of(const std::vector<double>& times) {
  std::vector<double> gaps;
  for (std::size_t i = 1; i < times.size(); ++i) gaps.push_back(times[i] - times[i - 1]);
  return gaps;
}

std::vector<double> arrivals_of(const std::vector<frame>& frames) {
  std::vector<double> times;
  for (const frame& f : frames) times.push_back(static_cast<double>(f.at) / 1000);
  return times;
}

// What holds of every stream: order, the first frame at once, and none later than the bound.
void check_bounds(const std::vector<frame>& frames, const std::vector<double>& shown) {
  const auto came = arrivals_of(frames);
  REQUIRE(shown.size() == frames.size());
  CHECK(shown[0] == came[0]);
  for (std::size_t i = 0; i < shown.size(); ++i) {
    CAPTURE(i);
    CHECK(shown[i] >= came[i]);
    CHECK(shown[i] <= came[i] + playout_longest_ms + 1e-6);
    if (i > 0) CHECK(shown[i] >= shown[i - 1]);
  }
}

}  // namespace

TEST_CASE("a bursty stream is even at the eye, and no token waits longer than the bound") {
  const auto frames = bursty(1000);
  const auto shown = play_out(frames);
  check_bounds(frames, shown);
  const double socket = coefficient_of_variation(gaps_of(arrivals_of(frames)));
  const double eye = coefficient_of_variation(gaps_of(shown));
  CAPTURE(socket, eye);
  CHECK(eye * 3 <= socket);
}

TEST_CASE("a steady stream is hardly held back") {
  std::vector<frame> frames;
  for (int i = 0; i < 300; ++i) frames.push_back({20'000 * i, 1});
  const auto shown = play_out(frames);
  check_bounds(frames, shown);
  for (std::size_t i = 0; i < shown.size(); ++i) CHECK(shown[i] - 20.0 * static_cast<double>(i) <= 40);
}

TEST_CASE("a stall longer than the bound passes through, and everything stays in time") {
  std::vector<frame> frames;
  for (int i = 0; i < 200; ++i) frames.push_back({20'000 * i + (i >= 100 ? 600'000 : 0), i % 7 ? 1u : 16u});
  const auto shown = play_out(frames);
  check_bounds(frames, shown);
  CHECK(shown[100] - shown[99] > 300);
}

TEST_CASE("random streams keep the bounds, and the shortest ones exist") {
  CHECK(play_out({}).empty());
  std::mt19937_64 random(2);
  for (int round = 0; round < 50; ++round) {
    std::vector<frame> frames;
    micros at = 0;
    for (auto left = 1 + random() % 300; left > 0; --left) {
      if (random() % 3) at += static_cast<micros>(random() % (random() % 4 ? 30'000 : 400'000));
      frames.push_back({at, 1 + static_cast<std::uint32_t>(random() % 3)});
    }
    check_bounds(frames, play_out(frames));
  }
}

}  // namespace weir::tests::playout_test
