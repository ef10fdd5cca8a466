// memory_shortage.h — makes allocations fail. Who links memory_shortage.cpp has its operator new.
//
// Thread safety: one shortage at a time; the threads that it meets may be any.
#pragma once

#include <cstdint>

namespace weir::tests {

// While it lives, allocations on threads of this name fail at random, one in so many.
struct memory_short {
  memory_short(const char* thread, unsigned one_in, std::uint64_t seed);
  ~memory_short();
};

// While it lives, of this thread's allocations the first `after` are made, and the next `count` fail.
struct allocations_fail {
  allocations_fail(std::uint64_t after, std::uint64_t count);
  ~allocations_fail();
};

// All that have failed so far.
std::uint64_t failed_allocations();

}  // namespace weir::tests
