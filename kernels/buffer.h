// buffer.h — one allocation of a backend's memory: weights, pages, activations.
//
// Thread safety: none needed; one owner. It keeps its backend alive.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>

#include "kernels/ops.h"

namespace weir::kernels {

class buffer {
 public:
  buffer() = default;

  // Where the memory is not there, data() is null and size() is 0.
  buffer(std::shared_ptr<const backend> of, std::uint64_t bytes) : of_(std::move(of)) {
    if (bytes > 0) data_ = of_->do_allocate(of_->self, bytes);
    if (data_) size_ = bytes;
  }
  buffer(buffer&& other) noexcept { swap(other); }
  buffer& operator=(buffer&& other) noexcept {
    swap(other);
    return *this;
  }
  ~buffer() {
    if (data_) of_->do_free(of_->self, data_, size_);
  }

  std::byte* data() const noexcept { return static_cast<std::byte*>(data_); }
  float* floats() const noexcept { return static_cast<float*>(data_); }
  std::uint64_t size() const noexcept { return size_; }

 private:
  void swap(buffer& other) noexcept {
    std::swap(of_, other.of_);
    std::swap(data_, other.data_);
    std::swap(size_, other.size_);
  }

  std::shared_ptr<const backend> of_;
  void* data_ = nullptr;
  std::uint64_t size_ = 0;
};

}  // namespace weir::kernels
