#include "tests/support/memory_shortage.h"

#include <pthread.h>

#include <array>
#include <atomic>
#include <cstdlib>
#include <cstring>
#include <new>

namespace weir::tests {
namespace {

struct shortage {
  std::atomic<unsigned> one_in{0};  // 0: none
  std::atomic<const char*> thread{""};
  std::atomic<std::uint64_t> state{1};  // splitmix64's
  std::atomic<std::int64_t> most{0};    // allocations that may still fail by chance
  std::atomic<std::uint64_t> failed{0};
} shortage_now;

// left: allocations of this thread that are still made. failing: allocations that then fail.
thread_local std::uint64_t left = 0, failing = 0;

bool fails_by_count() noexcept {
  if (failing == 0) return false;
  if (left > 0) return --left, false;
  --failing;
  return true;
}

bool fails_by_chance() noexcept {
  const unsigned one_in = shortage_now.one_in.load(std::memory_order_relaxed);
  if (one_in == 0) return false;
  std::array<char, 16> name{};
  pthread_getname_np(pthread_self(), name.data(), name.size());
  if (std::strcmp(name.data(), shortage_now.thread.load()) != 0) return false;
  std::uint64_t z = shortage_now.state.fetch_add(0x9e3779b97f4a7c15) + 0x9e3779b97f4a7c15;
  z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9;
  z = (z ^ z >> 27) * 0x94d049bb133111eb;
  return (z ^ z >> 31) % one_in == 0 && shortage_now.most.fetch_sub(1) > 0;
}

bool allocation_fails() noexcept {
  if (!fails_by_count() && !fails_by_chance()) return false;
  shortage_now.failed.fetch_add(1, std::memory_order_relaxed);
  return true;
}

}  // namespace

memory_short::memory_short(const char* thread, unsigned one_in, std::uint64_t seed, std::uint64_t most) {
  shortage_now.thread = thread;
  shortage_now.most = static_cast<std::int64_t>(most);
  shortage_now.state = seed;
  shortage_now.one_in = one_in;
}
memory_short::~memory_short() { shortage_now.one_in = 0; }

allocations_fail::allocations_fail(std::uint64_t after, std::uint64_t count) {
  left = after;
  failing = count;
}
allocations_fail::~allocations_fail() { failing = 0; }

std::uint64_t failed_allocations() { return shortage_now.failed; }

}  // namespace weir::tests

[[gnu::noinline]] void* operator new(std::size_t n) {
  if (!weir::tests::allocation_fails())
    if (void* p = std::malloc(n > 0 ? n : 1)) return p;
  throw std::bad_alloc();
}
[[gnu::noinline]] void* operator new(std::size_t n, const std::nothrow_t&) noexcept {
  return weir::tests::allocation_fails() ? nullptr : std::malloc(n > 0 ? n : 1);
}
[[gnu::noinline]] void operator delete(void* p) noexcept { std::free(p); }
[[gnu::noinline]] void operator delete(void* p, std::size_t) noexcept { std::free(p); }
[[gnu::noinline]] void operator delete(void* p, const std::nothrow_t&) noexcept { std::free(p); }
