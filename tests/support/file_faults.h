// file_faults.h — makes calls of the system for files fail. Programs that link file_faults.cpp get its
// open(), fstat(), read(), pread(), mmap() and mprotect().
//
// Thread safety: one object at a time; it concerns all threads.
#pragma once

#include <cstdint>

namespace weir::tests {

class file_faults {
 public:
  enum class kind {
    none,      // calls are counted
    error,     // the call fails with `code`
    one_byte,  // a read gets one byte, and so does every later one
    shrinks,   // before the call, the file of the descriptor ends at half of its bytes; later reads find that
               // end
  };

  // The call number `at`, counted from 0, has the fault. `code`: as errno has it.
  file_faults(kind what, std::uint64_t at, int code = 0);
  ~file_faults();
  file_faults(const file_faults&) = delete;

  std::uint64_t calls() const;  // so far
  bool met() const;             // the fault
};

}  // namespace weir::tests
