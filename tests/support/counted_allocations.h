// counted_allocations.h — counts what the calling thread allocates. It replaces operator new, so only one
// file of a test program may include it.
//
// Thread safety: each thread counts its own.
#pragma once

#include <cstdlib>
#include <new>

namespace weir::tests {

inline thread_local bool counting = false;
inline thread_local int allocated = 0;

// Counts what `f` allocates.
template <class F>
int allocations_in(F&& f) {
  allocated = 0;
  counting = true;
  f();
  counting = false;
  return allocated;
}

}  // namespace weir::tests

// Not inlined: the compiler would pair the malloc inside one with the delete outside the other, and complain.
[[gnu::noinline]] void* operator new(std::size_t n) {
  if (weir::tests::counting) ++weir::tests::allocated;
  if (void* p = std::malloc(n)) return p;
  throw std::bad_alloc();
}
[[gnu::noinline]] void* operator new(std::size_t n, const std::nothrow_t&) noexcept {
  if (weir::tests::counting) ++weir::tests::allocated;
  return std::malloc(n);
}
[[gnu::noinline]] void operator delete(void* p) noexcept { std::free(p); }
[[gnu::noinline]] void operator delete(void* p, std::size_t) noexcept { std::free(p); }
