// facts.h — what sizes in memory depend on beside the model: facts about a CUDA device. Plain C++, so that a
// plan may be made without the device.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/cuda/device/code_path.h"

namespace weir::kernels {

struct cuda_facts {
  cuda::code_path path = cuda::code_path::general;
  int multiprocessors = 0;
  // Most dynamic shared memory of one block, in bytes; cuda::general_shared at most where `path` is general.
  std::size_t shared_per_block = 0;
  bool deterministic = false;  // a row's bits depend on that row alone
  // The granularity of virtual memory management (vmm.h), in bytes; 0: the device has none.
  std::uint64_t memory_unit = 2u << 20;
};

// An H100 or H200 with its own kernels.
constexpr cuda_facts hopper_facts{cuda::code_path::hopper, 132, 227u << 10};

namespace cuda {

// Bytes of the device's memory that a backend takes when it is opened: scratch of products, and the device's
// side of the staging buffer.
constexpr std::size_t workspace_bytes = 64u << 20, staging_bytes = 4u << 20;
constexpr std::uint64_t own_bytes = workspace_bytes + staging_bytes;

}  // namespace cuda
}  // namespace weir::kernels
