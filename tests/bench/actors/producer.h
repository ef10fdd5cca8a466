// producer.h — the thread that makes tokens, as an engine does: a step at a time, one token for each stream.
#pragma once

#include <chrono>
#include <cstdint>
#include <thread>
#include <vector>

#include "tests/bench/actors/bench.h"

namespace bench {

constexpr std::size_t stream_capacity = 255;

// write(stream, token) says whether there was room, flush() ends a step. A step waits for the streams that
// were full, so nothing is lost. With a period only the work of the steps is timed; with a period of 0 the
// caller times the whole.
template <class Write, class Flush>
void produce_tokens(const task& t, std::chrono::microseconds period, Write write, Flush flush) {
  const bool paced = period.count() > 0;
  std::vector<std::uint64_t> full;
  auto next = std::chrono::steady_clock::now();
  for (std::uint64_t token = 0; token < t[1]; ++token) {
    if (paced) {
      std::this_thread::sleep_until(next += period);
      t.watch.start();
    }
    for (std::uint64_t s = 0; s < t[0]; ++s) {
      if (!write(s, token)) full.push_back(s);
    }
    flush();
    if (paced) t.watch.stop();
    while (!full.empty()) {
      std::this_thread::yield();
      std::erase_if(full, [&](std::uint64_t s) { return write(s, token); });
      flush();
    }
  }
}

}  // namespace bench
