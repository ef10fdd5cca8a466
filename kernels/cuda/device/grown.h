// grown.h — a buffer in memory of a device, or in pinned memory of its host, that grows on demand.
//
// Recorded graphs contain the addresses of buffers: when reserve() says that a buffer has moved, the caller
// drops the graphs that use it.
//
// Thread safety: the device's (device.h).
#pragma once

#include "kernels/cuda/device/device.h"

namespace weir::kernels::cuda {

class grown {
 public:
  // `host`: in pinned memory of the host.
  explicit grown(device& d, bool host = false) : d_(d), host_(host) {}
  grown(const grown&) = delete;
  ~grown() { release(at_, size_); }

  // Makes the buffer at least `bytes` bytes large; new memory of the device is zeroed. Returns true where the
  // buffer has moved; its contents are then lost unless `keep`. Where memory is short the buffer is empty
  // afterwards, which is no fault of the device; holds() tells. Waits for the stream where the buffer moves.
  bool reserve(std::size_t bytes, bool keep = false) {
    if (bytes <= size_) return false;
    d_.sync();
    void* old = keep ? at_ : nullptr;
    const std::size_t old_size = size_;
    if (!keep) release(at_, size_);
    at_ = allocate(bytes);
    size_ = at_ ? bytes : 0;
    if (at_ && !host_) WEIR_CUDA(d_, cudaMemsetAsync(at_, 0, bytes, d_.stream));
    if (at_ && old) WEIR_CUDA(d_, cudaMemcpyAsync(at_, old, old_size, cudaMemcpyDefault, d_.stream));
    if (old) {
      d_.sync();
      release(old, old_size);
    }
    return true;
  }

  // Whether the buffer has at least `bytes` bytes.
  bool holds(std::size_t bytes) const { return bytes <= size_; }

  // The buffer's address, valid until it moves; null where it is empty.
  template <class T>
  T* as() const {
    return static_cast<T*>(at_);
  }

 private:
  void* allocate(std::size_t bytes) {
    void* at = nullptr;
    const cudaError_t e = host_ ? cudaMallocHost(&at, bytes) : cudaMalloc(&at, bytes);
    if (e == cudaErrorMemoryAllocation) {
      (void)cudaGetLastError();  // clears the error, which the next launch would report
      return nullptr;
    }
    if (!WEIR_CUDA(d_, e)) return nullptr;
    if (!host_) d_.workspaces += bytes;
    return at;
  }
  void release(void* at, std::size_t bytes) {
    if (!at) return;
    if (host_) {
      cudaFreeHost(at);
    } else {
      cudaFree(at);
      d_.workspaces -= bytes;
    }
  }
  device& d_;
  bool host_;
  void* at_ = nullptr;
  std::size_t size_ = 0;
};

}  // namespace weir::kernels::cuda
