// buffer.h — one allocation of a backend's memory: weights, pages, activations.
//
// Thread safety: none needed; one owner. It keeps its backend alive.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include "kernels/ops.h"

namespace weir::kernels {

class buffer {
 public:
  buffer() = default;

  // Where the memory is not there, data() is null and size() is 0.
  buffer(const std::shared_ptr<const backend>& of, std::uint64_t bytes) : data_(allocate(*of, bytes), {of, bytes}) {}

  std::byte* data() const noexcept { return data_.get(); }
  float* floats() const noexcept { return reinterpret_cast<float*>(data_.get()); }
  std::uint64_t size() const noexcept { return data_ ? data_.get_deleter().bytes : 0; }

 private:
  static std::byte* allocate(const backend& of, std::uint64_t bytes) {
    return bytes > 0 ? static_cast<std::byte*>(of.do_allocate(of.self, bytes)) : nullptr;
  }
  struct release {
    std::shared_ptr<const backend> of;
    std::uint64_t bytes;
    void operator()(std::byte* at) const { of->do_free(of->self, at, bytes); }
  };

  std::unique_ptr<std::byte, release> data_;
};

}  // namespace weir::kernels
