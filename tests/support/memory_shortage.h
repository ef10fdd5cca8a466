// memory_shortage.h — makes allocations fail. Programs that link memory_shortage.cpp get its operator new.
//
// Thread safety: one shortage at a time; it may concern any thread.
#pragma once

#include <cstdint>
#include <limits>

namespace weir::tests {

// While it lives, allocations on threads named `thread` fail at random, one in `one_in`, and `most` at most.
struct memory_short {
  memory_short(const char* thread, unsigned one_in, std::uint64_t seed,
               std::uint64_t most = std::numeric_limits<std::int64_t>::max());
  ~memory_short();
};

// While it lives, of this thread's allocations the first `after` are made, and the next `count` fail.
struct allocations_fail {
  allocations_fail(std::uint64_t after, std::uint64_t count);
  ~allocations_fail();
};

// The number of allocations that have failed so far.
std::uint64_t failed_allocations();

}  // namespace weir::tests
