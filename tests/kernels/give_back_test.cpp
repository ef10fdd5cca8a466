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
