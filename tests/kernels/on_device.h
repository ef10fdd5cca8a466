// on_device.h — for tests of kernels: the device itself, and a device's copy of some values.
#pragma once

#include <cuda_fp16.h>
#include <cuda_runtime.h>

#include <algorithm>
#include <catch2/catch.hpp>
#include <vector>

#include "kernels/cuda/device/device.h"
#include "kernels/cuda/element.h"
#include "tests/support/cuda_device.h"

namespace weir::tests {

// The device behind cuda_device(). Null: there is none.
inline kernels::cuda::device* the_device(bool deterministic = false) {
  const auto b = cuda_device(deterministic);
  return b ? &kernels::cuda::of(b->self) : nullptr;
}

// The nearest element of a type, and the number that it is.
inline kernels::cuda::element rounded(kernels::dtype type, float x) {
  if (type == kernels::dtype::bf16) return {kernels::to_bf16(x)};
  return {__half_as_ushort(__float2half(x))};
}
inline float number(kernels::dtype type, kernels::cuda::element e) { return kernels::load(&e, type, 0); }

template <class T>
class on_device {
 public:
  on_device(kernels::cuda::device& d, const std::vector<T>& v) : d_(d), count_(v.size()) {
    REQUIRE(cudaMalloc(&at_, std::max<std::size_t>(count_, 1) * sizeof(T)) == cudaSuccess);
    // Along the device's stream: a plain copy may return before the bytes are there.
    REQUIRE(cudaMemcpyAsync(at_, v.data(), count_ * sizeof(T), cudaMemcpyHostToDevice, d_.stream) ==
            cudaSuccess);
    d_.sync();
  }
  on_device(const on_device&) = delete;
  ~on_device() { cudaFree(at_); }

  T* get() const { return static_cast<T*>(at_); }
  template <class U>
  U* as() const {
    return static_cast<U*>(at_);
  }
  template <class U = T>
  std::vector<U> back() const {
    std::vector<U> v(count_ * sizeof(T) / sizeof(U));
    d_.sync();
    REQUIRE(cudaMemcpy(v.data(), at_, count_ * sizeof(T), cudaMemcpyDeviceToHost) == cudaSuccess);
    return v;
  }

 private:
  kernels::cuda::device& d_;
  void* at_ = nullptr;
  std::size_t count_;
};

}  // namespace weir::tests
