// What the hot paths allocate: one node a message, nothing for a token or a wake.
#include <atomic>
#include <catch2/catch.hpp>
#include <cstdlib>
#include <functional>
#include <new>
#include <vector>

#include "counter.h"

namespace {
thread_local bool counting = false;
thread_local int allocated = 0;

int allocations_in(const std::function<void()>& f) {
  allocated = 0;
  counting = true;
  f();
  counting = false;
  return allocated;
}
}  // namespace

// Not inlined: the compiler would pair the malloc inside one with the delete outside the other, and complain.
[[gnu::noinline]] void* operator new(std::size_t n) {
  if (counting) ++allocated;
  if (void* p = std::malloc(n)) return p;
  throw std::bad_alloc();
}
[[gnu::noinline]] void* operator new(std::size_t n, const std::nothrow_t&) noexcept {
  if (counting) ++allocated;
  return std::malloc(n);
}
[[gnu::noinline]] void operator delete(void* p) noexcept { std::free(p); }
[[gnu::noinline]] void operator delete(void* p, std::size_t) noexcept { std::free(p); }

using namespace weir;
using namespace weir::tests;

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
