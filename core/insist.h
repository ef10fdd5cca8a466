// insist.h — does what must not be lost for lack of memory: an ending that somebody waits for, a cancel.
//
// Thread safety: any thread. It holds its thread up while there is no memory, a millisecond at a time.
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
