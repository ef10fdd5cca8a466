#include "net/http/send_progress.h"

#include <catch2/catch.hpp>

namespace weir::tests::send_progress_test {

using std::chrono::milliseconds;

namespace {

constexpr net::send_progress::time_point start{};

}  // namespace

TEST_CASE("send progress: an answer may take for ever as long as it moves 1 KiB a second") {
  net::send_progress p(milliseconds(1000));
  p.begin();
  std::uint64_t taken = 5'000'000;  // of earlier answers
  for (int tick = 0; tick < 4000; ++tick) {
    CHECK_FALSE(p.stalled(start + milliseconds(250 * tick), taken));
    taken += 260;
  }
}

TEST_CASE("send progress: an answer that does not move, or moves too little, is over after one window") {
  for (const std::uint64_t a_tick : {0, 100, 250}) {
    CAPTURE(a_tick);
    net::send_progress p(milliseconds(1000));
    p.begin();
    std::uint64_t taken = 0;
    int tick = 0;
    for (; !p.stalled(start + milliseconds(250 * tick), taken) && tick < 100; ++tick) taken += a_tick;
    CHECK(tick == 4);
  }
}

TEST_CASE("send progress: a window begins anew with each write, and nothing is judged between two") {
  net::send_progress p(milliseconds(1000));
  p.begin();
  CHECK(p.writing());
  CHECK_FALSE(p.stalled(start, 0));
  p.end();
  CHECK_FALSE(p.writing());
  p.begin();
  CHECK_FALSE(p.stalled(start + milliseconds(5000), 0));
  CHECK(p.stalled(start + milliseconds(6000), 0));
}

}  // namespace weir::tests::send_progress_test
