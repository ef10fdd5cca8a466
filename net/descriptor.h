// descriptor.h — a file descriptor that is closed when its owner goes, and one that is kept for a moment when
// the process has no other.
//
// Thread safety: one thread at a time.
#pragma once

#include <fcntl.h>
#include <unistd.h>

#include <utility>

namespace weir::net {

class descriptor {
 public:
  descriptor() = default;
  explicit descriptor(int fd) noexcept : fd_(fd) {}
  descriptor(descriptor&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  descriptor& operator=(descriptor&& other) noexcept {
    std::swap(fd_, other.fd_);
    return *this;
  }
  ~descriptor() { close(); }

  // One that stands for nothing. It is empty where the process has no descriptor left.
  static descriptor spare() noexcept { return descriptor(::open("/dev/null", O_RDONLY | O_CLOEXEC)); }

  bool empty() const noexcept { return fd_ < 0; }
  int get() const noexcept { return fd_; }
  void close() noexcept {
    if (fd_ >= 0) ::close(std::exchange(fd_, -1));
  }

 private:
  int fd_ = -1;
};

}  // namespace weir::net
