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
  ~grown() { release(at_); }

  // True where it moved. What it held is lost, unless it is to be kept. A failure is the device's.
  bool reserve(std::size_t bytes, bool keep = false) {
    if (bytes <= size_) return false;
    d_.sync();
    void* old = keep ? at_ : nullptr;
    if (!keep) release(at_);
    at_ = nullptr;
    const cudaError_t e = host_ ? cudaMallocHost(&at_, bytes) : cudaMalloc(&at_, bytes);
    if (!WEIR_CUDA(d_, e)) at_ = nullptr;
    if (at_ && !host_) WEIR_CUDA(d_, cudaMemsetAsync(at_, 0, bytes, d_.stream));
    if (at_ && old) WEIR_CUDA(d_, cudaMemcpyAsync(at_, old, size_, cudaMemcpyDefault, d_.stream));
    if (old) {
      d_.sync();
      release(old);
    }
    size_ = at_ ? bytes : 0;
    return true;
  }
  template <class T>
  T* as() const {
    return static_cast<T*>(at_);
  }

 private:
  void release(void* at) const {
    if (at) host_ ? cudaFreeHost(at) : cudaFree(at);
  }
  device& d_;
  bool host_;
  void* at_ = nullptr;
  std::size_t size_ = 0;
};

}  // namespace weir::kernels::cuda
