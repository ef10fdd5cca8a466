#include "kernels/cpu/team.h"

#include <atomic>
#include <catch2/catch.hpp>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <numeric>
#include <string>
#include <thread>
#include <vector>

namespace weir::tests::team_test {

using weir::kernels::team;

namespace {

// The number of this process's threads that sleep, by /proc/self/task/N/stat, «pid (name) state …».
int sleeping_threads() {
  int count = 0;
  for (const auto& task : std::filesystem::directory_iterator("/proc/self/task")) {
    std::ifstream in(task.path() / "stat");
    const std::string text{std::istreambuf_iterator<char>(in), {}};
    const std::size_t name_end = text.rfind(')');
    if (name_end != text.npos && name_end + 2 < text.size() && text[name_end + 2] == 'S') ++count;
  }
  return count;
}

}  // namespace

TEST_CASE("every item of a job is done exactly once, whatever the number of threads") {
  for (const unsigned threads : {0u, 1u, 2u, 5u}) {
    team t(threads);
    CHECK(t.size() == std::max(threads, 1u));
    for (std::uint32_t items = 0; items < 200; ++items) {
      std::vector<int> done(items, 0);
      t.run(items, [&](std::uint32_t item, unsigned worker) {
        if (worker < t.size()) ++done[item];
      });
      CHECK(std::accumulate(done.begin(), done.end(), 0) == static_cast<int>(items));
      CHECK(std::all_of(done.begin(), done.end(), [](int n) { return n == 1; }));
    }
  }
}

TEST_CASE("a worker's number is its own while an item runs") {
  team t(4);
  std::vector<std::atomic<int>> inside(t.size());
  std::atomic<int> clashes{0};
  t.run(2000, [&](std::uint32_t, unsigned worker) {
    if (inside[worker].fetch_add(1) != 0) ++clashes;
    inside[worker].fetch_sub(1);
  });
  CHECK(clashes == 0);
}

TEST_CASE("jobs are done inside steps and outside, and after workers have parked in either") {
  team t(3);
  std::uint32_t done = 0;
  const auto run = [&] {
    std::atomic<std::uint32_t> sum{0};
    t.run(17, [&](std::uint32_t item, unsigned) { sum += item + 1; });
    done += sum == 17 * 18 / 2;
  };
  for (int step = 0; step < 40; ++step) {
    t.begin_step();
    for (int i = 0; i < 20; ++i) run();
    if (step % 4 == 0) {
      std::this_thread::sleep_for(std::chrono::milliseconds(1));  // longer than workers watch for work
      run();
    }
    if (step % 3 == 0) t.begin_step();  // a step that nobody ended
    run();
    t.end_step();
    if (step % 5 == 0) run();
    if (step % 8 == 0) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  CHECK(done == 40 * 21 + 10 + 8);
}

TEST_CASE("a team may end inside a step") {
  for (int i = 0; i < 20; ++i) {
    team t(3);
    t.begin_step();
    if (i % 2) t.run(5, [](std::uint32_t, unsigned) {});
  }
}

// Whether `threads` threads sleep at 20 looks in a row, of at most 2,000. Workers may watch for work for a
// moment first; a team that never parks would be seen running at every look.
bool all_park(int threads) {
  int in_a_row = 0;
  for (int look = 0; look < 2000 && in_a_row < 20; ++look) {
    in_a_row = sleeping_threads() >= threads ? in_a_row + 1 : 0;
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  return in_a_row == 20;
}

TEST_CASE("an idle team's workers sleep, after a step and in one that nothing comes of") {
  const int others = sleeping_threads();  // a sanitizer's own
  team t(3);
  t.run(64, [](std::uint32_t, unsigned) {});
  CHECK(all_park(others + 2));
  t.begin_step();
  t.run(64, [](std::uint32_t, unsigned) {});
  t.end_step();
  CHECK(all_park(others + 2));
  t.begin_step();
  CHECK(all_park(others + 2));
}

}  // namespace weir::tests::team_test
