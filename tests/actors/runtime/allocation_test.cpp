// What the hot paths allocate: one node a message, nothing for a token or a wake.
#include <atomic>
#include <catch2/catch.hpp>
#include <vector>

#include "counter.h"
#include "tests/support/counted_allocations.h"

namespace weir::tests::allocation_test {

TEST_CASE("tell allocates its message and nothing for the wake") {
  net::io_context io;
  auto a = spawn<message>(io.get_executor(), {}, count);
  io.poll();
  for (int round = 0; round < 3; ++round) {
    CHECK(allocations_in([&] { a.tell(add{1}); }) == 1);  // wakes the actor
    CHECK(allocations_in([&] { a.tell(add{1}); }) == 1);  // it is awake
    io.poll();
  }
}

TEST_CASE("a stop allocates nothing") {
  net::io_context io;
  auto a = spawn<message>(io.get_executor(), {}, count);
  io.poll();
  CHECK(allocations_in([&] { a.stop(); }) == 0);
  io.run();
}

TEST_CASE("writing tokens, and waking their readers, allocates nothing") {
  net::io_context io;
  std::vector<stream_writer<int>> writers;
  std::vector<stream_reader<int>> readers;
  std::vector<int> into(64);
  int read = 0;
  for (int i = 0; i < 64; ++i) {
    auto [w, r] = make_stream<int>(io.get_executor(), 127);
    writers.push_back(std::move(w));
    readers.push_back(std::move(r));
  }
  wakes batch;
  for (int step = 0; step < 10; ++step) {
    for (int i = 0; i < 64; ++i) {
      readers[i].async_read_some(std::span(&into[i], 1), [&](error_code, std::size_t n) { read += n; });
    }
    const int allocated = allocations_in([&] {
      for (auto& w : writers) w.try_write(std::span<const int>(&step, 1), batch);
      batch.flush();
    });
    CHECK(allocated == 0);
    io.restart();
    io.poll();
  }
  CHECK(read == 640);
}

TEST_CASE("a question allocates its block and its message, and the answer nothing") {
  net::io_context io;
  auto a = spawn<message>(io.get_executor(), {}, count);
  io.poll();
  int heard = 0;
  for (int round = 0; round < 3; ++round) {
    const int asked = allocations_in([&] { a.ask<get>([&](error_code, int) { ++heard; }); });
    io.restart();
    const int answered = allocations_in([&] { io.poll(); });
    if (round == 0) continue;  // the first one makes room among the context's members
    CHECK(asked == 2);
    CHECK(answered == 0);
  }
  CHECK(heard == 3);
}

}  // namespace weir::tests::allocation_test
