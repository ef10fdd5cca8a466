// host_buffer.h — memory of the host that a backend's copies and uploads may use: pinned where it asks for that.
//
// Not touched before it is used where it is not pinned. Thread safety: none needed; one owner. It keeps its backend alive.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <new>

#include "kernels/ops.h"

namespace weir::kernels {

class host_buffer {
 public:
  host_buffer() = default;

  // Where the memory is not there, data() is null and size() is 0.
  host_buffer(const std::shared_ptr<const backend>& of, std::uint64_t bytes) : data_(allocate(*of, bytes), {of, bytes}) {}

  std::byte* data() const noexcept { return data_.get(); }
  std::uint64_t size() const noexcept { return data_ ? data_.get_deleter().bytes : 0; }

 private:
  static std::byte* allocate(const backend& of, std::uint64_t bytes) {
    if (bytes == 0) return nullptr;
    return static_cast<std::byte*>(of.do_allocate_host ? of.do_allocate_host(of.self, bytes)
                                                       : ::operator new(bytes, std::nothrow));
  }
  struct release {
    std::shared_ptr<const backend> of;
    std::uint64_t bytes;
    void operator()(std::byte* at) const {
      if (of->do_free_host) return of->do_free_host(of->self, at, bytes);
      ::operator delete(at);
    }
  };

  std::unique_ptr<std::byte, release> data_;
};

}  // namespace weir::kernels
