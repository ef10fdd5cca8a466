// grown.h — memory of a device, or pinned memory of its host, that grows to what is asked for.
//
// Graphs know where it lies: who records any drops them when reserve() says that it moved.
//
// Thread safety: the device's.
#pragma once

#include "kernels/cuda/device.h"

namespace weir::kernels::cuda {

class grown {
 public:
  explicit grown(device& d, bool host = false) : d_(d), host_(host) {}
  grown(const grown&) = delete;
  ~grown() { release(at_, size_); }

  // True where it moved. What it held is lost, unless it is to be kept. Where memory is short it holds
  // nothing then, which is no fault of the device: who needs it asks holds().
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
  bool holds(std::size_t bytes) const { return bytes <= size_; }
  template <class T>
  T* as() const {
    return static_cast<T*>(at_);
  }

 private:
  void* allocate(std::size_t bytes) {
    void* at = nullptr;
    const cudaError_t e = host_ ? cudaMallocHost(&at, bytes) : cudaMalloc(&at, bytes);
    if (e == cudaErrorMemoryAllocation) {
      (void)cudaGetLastError();  // it is not sticky, but is reported once more otherwise
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
