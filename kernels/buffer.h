// buffer.h — one allocation of a backend's memory: weights, pages, activations.
//
// A buffer keeps its backend alive.
//
// Thread safety: none needed; one owner.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include "kernels/ops.h"

namespace weir::kernels {

// Memory that is allocated by Kind::take(backend, bytes), which returns null where memory is short, and freed
// by Kind::give_back(backend, at, bytes).
template <class Kind>
class owned_memory {
 public:
  owned_memory() = default;

  // Allocates `bytes` bytes. Where memory is short, data() is null and size() is 0.
  owned_memory(const std::shared_ptr<const backend>& of, std::uint64_t bytes)
      : data_(bytes > 0 ? static_cast<std::byte*>(Kind::take(*of, bytes)) : nullptr, {of, bytes}) {}

  std::byte* data() const noexcept { return data_.get(); }
  std::uint64_t size() const noexcept { return data_ ? data_.get_deleter().bytes : 0; }

 private:
  struct release {
    std::shared_ptr<const backend> of;
    std::uint64_t bytes;
    void operator()(std::byte* at) const { Kind::give_back(*of, at, bytes); }
  };

  std::unique_ptr<std::byte, release> data_;
};

// The backend's own memory.
struct device_kind {
  static void* take(const backend& of, std::uint64_t bytes) { return of.do_allocate(of.self, bytes); }
  static void give_back(const backend& of, void* at, std::uint64_t bytes) { of.do_free(of.self, at, bytes); }
};

// Memory of the backend. For weights and activations in f32, floats() is data() as floats.
class buffer : public owned_memory<device_kind> {
 public:
  using owned_memory::owned_memory;
  float* floats() const noexcept { return reinterpret_cast<float*>(data()); }
};

}  // namespace weir::kernels
