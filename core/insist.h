// insist.h — repeats an action that must not be lost when memory is short, such as a cancel or an ending.
//
// Thread safety: any thread. The calling thread sleeps, a millisecond at a time, while there is no memory.
#pragma once

#include <chrono>
#include <new>
#include <thread>

namespace weir::core {

// Calls `f` again until it throws no bad_alloc. REQUIRES: `f` can be called again after it has thrown.
template <class F>
void insist(F&& f) {
  for (;;) {
    try {
      return f();
    } catch (const std::bad_alloc&) {
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
  }
}

}  // namespace weir::core
