#include "tests/support/file_faults.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <mutex>

namespace weir::tests {
namespace {

using kind = file_faults::kind;

struct plan {
  bool on = false, met = false;
  kind what = kind::none;
  std::uint64_t at = 0, calls = 0;
  int code = 0;
};
std::mutex mutex;
plan now;  // under mutex

// Whether this call fails.
bool fails() {
  const std::lock_guard held(mutex);
  if (!now.on) return false;
  const bool mine = now.calls++ == now.at && now.what != kind::none;
  now.met = now.met || mine;
  if (!mine || now.what != kind::error) return false;
  errno = now.code;
  return true;
}

// The bytes that a read may have; `file`: which may have to shrink first.
std::size_t bounded(int file, std::size_t size) {
  const std::lock_guard held(mutex);
  if (!now.on || !now.met) return size;
  if (now.what == kind::one_byte) return size > 0 ? 1 : 0;
  if (now.what == kind::shrinks && now.calls == now.at + 1) {
    struct stat is {};
    syscall(SYS_fstat, file, &is);
    char name[64];
    std::snprintf(name, sizeof name, "/proc/self/fd/%d", file);
    if (truncate(name, is.st_size / 2) != 0) std::abort();
  }
  return size;
}

}  // namespace

file_faults::file_faults(kind what, std::uint64_t at, int code) {
  const std::lock_guard held(mutex);
  now = {.on = true, .what = what, .at = at, .code = code};
}
file_faults::~file_faults() {
  const std::lock_guard held(mutex);
  now = {};
}
std::uint64_t file_faults::calls() const { return now.calls; }
bool file_faults::met() const { return now.met; }

}  // namespace weir::tests

// These functions stand in for the system's calls, which they make unless the test wants a failure.
extern "C" {

int open(const char* path, int flags, ...) {
  va_list more;
  va_start(more, flags);
  const auto mode = (flags & O_CREAT) != 0 ? va_arg(more, mode_t) : mode_t{};
  va_end(more);
  if ((flags & O_ACCMODE) == O_RDONLY && weir::tests::fails()) return -1;
  return static_cast<int>(syscall(SYS_openat, AT_FDCWD, path, flags, mode));
}

int fstat(int file, struct stat* to) noexcept {
  if (weir::tests::fails()) return -1;
  return static_cast<int>(syscall(SYS_fstat, file, to));
}

ssize_t read(int file, void* to, size_t size) {
  if (weir::tests::fails()) return -1;
  return syscall(SYS_read, file, to, weir::tests::bounded(file, size));
}

ssize_t pread(int file, void* to, size_t size, off_t at) {
  if (weir::tests::fails()) return -1;
  return syscall(SYS_pread64, file, to, weir::tests::bounded(file, size), at);
}

void* mmap(void* at, size_t size, int protection, int flags, int file, off_t offset) noexcept {
  if (weir::tests::fails()) return MAP_FAILED;
  return reinterpret_cast<void*>(syscall(SYS_mmap, at, size, protection, flags, file, offset));
}

int mprotect(void* at, size_t size, int protection) noexcept {
  if (weir::tests::fails()) return -1;
  return static_cast<int>(syscall(SYS_mprotect, at, size, protection));
}
}
