// Memory that is given back and taken again: its addresses stay, and nothing else does.
#include <sys/mman.h>

#include <algorithm>
#include <catch2/catch.hpp>
#include <cstdlib>
#include <cstring>
#include <iostream>
#include <vector>

#include "kernels/buffer.h"
#include "kernels/host_buffer.h"
#include "tests/support/cuda_device.h"

namespace weir::tests::give_back_test {

using namespace weir::kernels;

namespace {

using backend_ptr = std::shared_ptr<const backend>;

std::uint64_t free_of(const backend_ptr& b) { return b->free_bytes(b->self); }

// Whether two numbers of bytes are equal but for what the driver keeps for itself, such as tables of
// addresses.
bool near(std::uint64_t a, std::uint64_t b) {
  const auto apart = static_cast<std::int64_t>(a - b);
  return std::abs(apart) <= 2 << 20;
}

// Whether every byte of a buffer is `value`.
bool is_all(const backend_ptr& b, const buffer& memory, int value) {
  std::vector<std::byte> found(memory.size());
  b->do_download(b->self, found.data(), memory.data(), memory.size());
  return std::ranges::all_of(found, [&](std::byte x) { return x == static_cast<std::byte>(value); });
}

void fill(const backend_ptr& b, const buffer& memory, int value) {
  const std::vector<std::byte> from(memory.size(), static_cast<std::byte>(value));
  b->do_upload(b->self, memory.data(), from.data(), from.size());
}

std::uint64_t give_back(const backend_ptr& b, const buffer& m) {
  return b->do_give_back(b->self, m.data(), m.size());
}

bool take_again(const backend_ptr& b, const buffer& m) {
  return b->do_take_again(b->self, m.data(), m.size());
}

// How many pages of the host's memory there are behind an allocation.
std::size_t resident(const buffer& m) {
  std::vector<unsigned char> in((m.size() + 4095) / 4096);
  REQUIRE(::mincore(m.data(), m.size(), in.data()) == 0);
  return static_cast<std::size_t>(std::ranges::count_if(in, [](unsigned char c) { return c & 1; }));
}

}  // namespace

TEST_CASE("hosts give memory back and take it again, zeroed and committed, at the same addresses") {
  for (const auto& b : {reference_backend(), cpu_backend(2)}) {
    const buffer memory(b, (5u << 20) + 123), beside(b, 5000);
    const std::size_t all = (memory.size() + 4095) / 4096;
    fill(b, beside, 7);
    for (int round = 1; round < 4; ++round) {
      CAPTURE(b->name, round);
      fill(b, memory, round);
      REQUIRE(resident(memory) == all);
      CHECK(give_back(b, memory) == memory.size());
      CHECK(resident(memory) == 0);
      REQUIRE(take_again(b, memory));
      CHECK(resident(memory) == all);
      CHECK(is_all(b, memory, 0));
    }
    CHECK(is_all(b, beside, 7));
    CHECK(give_back(b, memory) == memory.size());  // is freed as it is
  }
}

namespace {

// Addresses of which parts have memory.
struct reservation {
  backend_ptr of;
  std::uint64_t bytes;
  std::byte* at;

  reservation(const backend_ptr& b, std::uint64_t n, std::uint64_t piece)
      : of(b), bytes(n), at(static_cast<std::byte*>(b->do_reserve(b->self, n, piece))) {}
  reservation(const reservation&) = delete;
  ~reservation() { of->do_free(of->self, at, bytes); }

  bool take(std::uint64_t from, std::uint64_t n) const { return of->do_take_again(of->self, at + from, n); }
  std::uint64_t give(std::uint64_t from, std::uint64_t n) const {
    return of->do_give_back(of->self, at + from, n);
  }
  void fill(std::uint64_t from, std::uint64_t n, int value) const {
    const std::vector<std::byte> bytes_of(n, static_cast<std::byte>(value));
    of->do_upload(of->self, at + from, bytes_of.data(), n);
  }
  bool is_all(std::uint64_t from, std::uint64_t n, int value) const {
    std::vector<std::byte> found(n);
    of->do_download(of->self, found.data(), at + from, n);
    return std::ranges::all_of(found, [&](std::byte x) { return x == static_cast<std::byte>(value); });
  }
};

// Whether the host has memory behind each of the pages of a part.
bool all_resident(const reservation& r, std::uint64_t from, std::uint64_t n, bool wanted) {
  std::vector<unsigned char> in(n / 4096);
  REQUIRE(::mincore(r.at + from, n, in.data()) == 0);
  return std::ranges::all_of(in, [&](unsigned char c) { return ((c & 1) != 0) == wanted; });
}

}  // namespace

TEST_CASE("hosts: parts of a reservation get memory, zeroed and committed, and give it back") {
  for (const auto& b : {reference_backend(), cpu_backend(2)}) {
    CAPTURE(b->name);
    constexpr std::uint64_t piece = 64 << 10;
    REQUIRE(piece % b->pieces.unit == 0);
    const reservation r(b, 40 * piece, piece);
    REQUIRE(r.at != nullptr);
    CHECK(all_resident(r, 0, r.bytes, false));
    for (int round = 1; round < 4; ++round) {
      REQUIRE(r.take(3 * piece, 20 * piece));
      CHECK(all_resident(r, 3 * piece, 20 * piece, true));
      CHECK(r.is_all(3 * piece, 20 * piece, 0));
      r.fill(3 * piece, 20 * piece, round);
      CHECK(r.give(10 * piece, 13 * piece) == 13 * piece);
      CHECK(all_resident(r, 10 * piece, 13 * piece, false));
      CHECK(all_resident(r, 0, 3 * piece, false));
      REQUIRE(r.take(10 * piece, 2 * piece + 4096));
      CHECK(r.is_all(3 * piece, 7 * piece, round));
      CHECK(r.is_all(10 * piece, 2 * piece + 4096, 0));
      CHECK(all_resident(r, 12 * piece + 4096, piece - 4096, false));
      r.give(0, r.bytes);
      CHECK(all_resident(r, 0, r.bytes, false));
    }
    REQUIRE(r.take(0, piece));  // is freed with what it has
  }
}

TEST_CASE("cuda: parts of a reservation get zeroed memory, give it back, and take no byte more") {
  const auto b = tests::cuda_device();
  if (!b) return;
  if (!b->do_reserve) {
    std::cerr << "skipped: " << b->name << " has no virtual memory management\n";
    return;
  }
  const std::uint64_t unit = b->pieces.unit, piece = 4 * unit;
  const std::uint64_t before = free_of(b);
  {
    const reservation r(b, 40 * piece, piece);
    REQUIRE(r.at != nullptr);
    CHECK(near(before - free_of(b), 0));
    for (int round = 1; round < 4; ++round) {
      REQUIRE(r.take(3 * piece, 20 * piece));
      CHECK(near(before - free_of(b), 20 * piece));
      CHECK(r.is_all(3 * piece, 20 * piece, 0));
      r.fill(3 * piece, 20 * piece, round);
      CHECK(r.give(10 * piece, 30 * piece) == 13 * piece);
      CHECK(near(before - free_of(b), 7 * piece));
      REQUIRE(r.take(10 * piece, 2 * piece + unit));  // ends within a piece
      CHECK(near(before - free_of(b), 9 * piece + unit));
      CHECK(r.is_all(3 * piece, 7 * piece, round));
      CHECK(r.is_all(10 * piece, 2 * piece + unit, 0));
      CHECK(r.give(0, r.bytes) == 9 * piece + unit);
      CHECK(near(before - free_of(b), 0));
    }
    REQUIRE(r.take(0, piece));  // is freed with what it has
    const buffer others(b, free_of(b) - (std::uint64_t{256} << 20));
    REQUIRE(others.data() != nullptr);
    const reservation large(b, std::uint64_t{1} << 30, piece);
    const std::uint64_t free = free_of(b);
    CHECK_FALSE(large.take(0, large.bytes));
    CHECK(near(free, free_of(b)));
  }
  CHECK(near(before - free_of(b), 0));
  REQUIRE(b->fault(b->self) == nullptr);
}

TEST_CASE("cuda: memory that is given back is free, and comes again zeroed where it was") {
  const auto b = tests::cuda_device();
  if (!b) return;
  if (!b->do_give_back) {
    std::cerr << "skipped: " << b->name << " has no virtual memory management\n";
    return;
  }
  constexpr std::uint64_t granule = 64u << 20, unit = 2u << 20;
  for (const std::uint64_t bytes :
       {std::uint64_t{1} << 10, unit, granule, granule + 1, 3 * granule + unit + 5}) {
    CAPTURE(bytes);
    const std::uint64_t before = free_of(b);
    const bool small = bytes < unit;
    const std::uint64_t whole = small ? 0 : (bytes + unit - 1) / unit * unit;  // a plan counts so, too
    {
      const buffer memory(b, bytes);
      REQUIRE(memory.data() != nullptr);
      CHECK(reinterpret_cast<std::uintptr_t>(memory.data()) % 256 == 0);
      CHECK(is_all(b, memory, 0));
      CHECK(near(before - free_of(b), whole));
      std::uint64_t asleep = 0, awake = 0;  // the free bytes of the first round
      for (int round = 1; round < 4; ++round) {
        fill(b, memory, round);
        CHECK(give_back(b, memory) == whole);
        if (round == 1) asleep = free_of(b);
        CHECK(free_of(b) == asleep);
        REQUIRE(take_again(b, memory));
        if (round == 1) awake = free_of(b);
        CHECK(free_of(b) == awake);
        CHECK(near(asleep - awake, whole));
        CHECK(is_all(b, memory, small ? round : 0));
      }
      give_back(b, memory);  // is freed as it is
    }
    CHECK(near(before - free_of(b), 0));
    REQUIRE(b->fault(b->self) == nullptr);
  }
}

TEST_CASE("cuda: where memory is short, what was given back stays so, and comes when there is room") {
  const auto b = tests::cuda_device();
  if (!b || !b->do_give_back) return;
  const buffer memory(b, std::uint64_t{1} << 30);
  REQUIRE(memory.data() != nullptr);
  give_back(b, memory);
  {
    const buffer others(b, free_of(b) - (std::uint64_t{512} << 20));
    REQUIRE(others.data() != nullptr);
    const std::uint64_t free = free_of(b);
    for (int i = 0; i < 3; ++i) {
      CHECK_FALSE(take_again(b, memory));
      CHECK(free_of(b) == free);
    }
    CHECK(buffer(b, std::uint64_t{1} << 60).data() == nullptr);
    CHECK(b->fault(b->self) == nullptr);
  }
  CHECK(take_again(b, memory));
  CHECK(is_all(b, memory, 0));
}

TEST_CASE("cuda: large memory of the host is reached by copies and uploads as small memory is") {
  const auto b = tests::cuda_device();
  if (!b) return;
  for (const std::uint64_t bytes : {std::uint64_t{1} << 20, (std::uint64_t{100} << 20) + 48}) {
    CAPTURE(bytes);
    const host_buffer host(b, bytes), back(b, bytes);
    const buffer memory(b, bytes);
    REQUIRE((host.data() && back.data() && memory.data()));
    for (std::uint64_t i = 0; i < bytes; ++i) host.data()[i] = static_cast<std::byte>(i * 31 >> 3);
    b->do_begin_upload(b->self, memory.data(), host.data(), bytes, 0);
    b->do_await_upload(b->self, 0);
    b->run(copy{back.data(), 0, memory.data(), 0, bytes, 1});
    std::byte last{};
    b->do_download(b->self, &last, memory.data(), 1);  // waits for the copy
    CHECK(std::memcmp(host.data(), back.data(), bytes) == 0);
  }
}

}  // namespace weir::tests::give_back_test
