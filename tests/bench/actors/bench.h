// bench.h — what the peers' executables share: one command line, one clock, one line of JSON.
//
//   bench_actors_weir mailbox_performance --threads=2 100 1000000
//
// Every peer has the same programs under the same names, counts the same operations, and starts and stops the
// clock at the same moments: from the first spawn until the last actor has ended. Starting threads comes
// before, destroying the runtime after.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

namespace bench {

class stopwatch {
 public:
  void start() { from_ = clock::now(); }
  void stop() { took_ += clock::now() - from_; }  // several stretches add up
  double seconds() const { return std::chrono::duration<double>(took_).count(); }

 private:
  using clock = std::chrono::steady_clock;
  clock::time_point from_;
  clock::duration took_{};
};

struct task {
  unsigned threads;
  std::vector<std::uint64_t> params;
  stopwatch& watch;
  bool newest_first = false;  // weir's executors: see weir/newest_first.h
  std::uint64_t operator[](std::size_t i) const { return params[i]; }
  // Records the resident memory of the process at this moment, for programs whose peak is not the point.
  void weigh() const;
};

struct program {
  std::string_view name;  // one of those in bench.cpp
  void (*run)(const task&);
};

// Ends the process: a program that computed something wrong has not measured anything.
[[noreturn]] void fail(std::string_view why);
inline void expect(bool holds, std::string_view why) {
  if (!holds) fail(why);
}

int main(std::string_view impl, int argc, char** argv, const std::vector<program>& programs);

}  // namespace bench
