// tensor_map.h — the maps of arrays that tensor copies take (CUDA driver API, «Tensor Map Object
// Management»).
//
// Thread safety: the device's (device.h).
#pragma once

#include <cuda.h>

#include <cstddef>

#include "kernels/cuda/device/device.h"

namespace weir::kernels::cuda {

// The map of an array of `rank` dimensions, the first of which is contiguous. `sizes` and `box` count
// elements of type `type`, `strides` bytes. A box may begin anywhere; what lies outside the array is read as
// zeros. A failure is kept in device::fault.
// REQUIRES: d.encode_map is not null; `at` and `strides` are multiples of 16
template <std::size_t rank>
CUtensorMap tensor_map(device& d, CUtensorMapDataType type, CUtensorMapSwizzle swizzle, const void* at,
                       const cuuint64_t (&sizes)[rank], const cuuint64_t (&strides)[rank - 1],
                       const cuuint32_t (&box)[rank]) {
  CUtensorMap map{};
  const cuuint32_t steps[] = {1, 1, 1, 1};
  const CUresult e = reinterpret_cast<decltype(&cuTensorMapEncodeTiled)>(d.encode_map)(
      &map, type, rank, const_cast<void*>(at), sizes, strides, box, steps, CU_TENSOR_MAP_INTERLEAVE_NONE,
      swizzle, CU_TENSOR_MAP_L2_PROMOTION_L2_256B, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
  WEIR_CUDA(d, e == CUDA_SUCCESS ? cudaSuccess : cudaErrorInvalidValue);
  return map;
}

}  // namespace weir::kernels::cuda
