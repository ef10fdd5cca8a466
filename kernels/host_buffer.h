// host_buffer.h — memory of the host that a backend's copies and uploads may use: pinned where it asks for that.
//
// Not touched before it is used where it is not pinned. Thread safety: none needed; one owner. It keeps its backend alive.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <new>
#include <utility>

#include "kernels/ops.h"

namespace weir::kernels {

class host_buffer {
 public:
  host_buffer() = default;

  // Where the memory is not there, data() is null and size() is 0.
  host_buffer(std::shared_ptr<const backend> of, std::uint64_t bytes) : of_(std::move(of)) {
    if (bytes > 0) data_ = of_->do_allocate_host ? of_->do_allocate_host(of_->self, bytes) : ::operator new(bytes, std::nothrow);
    if (data_) size_ = bytes;
  }
  host_buffer(host_buffer&& other) noexcept { swap(other); }
  host_buffer& operator=(host_buffer&& other) noexcept {
    swap(other);
    return *this;
  }
  ~host_buffer() {
    if (data_ && of_->do_free_host)
      of_->do_free_host(of_->self, data_, size_);
    else
      ::operator delete(data_);
  }

  std::byte* data() const noexcept { return static_cast<std::byte*>(data_); }
  std::uint64_t size() const noexcept { return size_; }

 private:
  void swap(host_buffer& other) noexcept {
    std::swap(of_, other.of_);
    std::swap(data_, other.data_);
    std::swap(size_, other.size_);
  }

  std::shared_ptr<const backend> of_;
  void* data_ = nullptr;
  std::uint64_t size_ = 0;
};

}  // namespace weir::kernels
