// pinned.h — memory of the host that a device reaches by itself. cudaMallocHost takes 2.9 s for 8 GiB, since
// one thread maps and clears the pages. A large allocation is therefore ordinary memory in huge pages, which
// several threads touch and which is then registered: 0.60 s for the same (measured beside an H200).
//
// Thread safety: the device's (device.h). Threads that a call starts end before it returns.
#pragma once

#include <cstdint>

#include "kernels/cuda/device/device.h"

namespace weir::kernels::cuda {

// Returns null where memory is short, which is no fault of the device. A large allocation is refused where
// the process may not take so much (kernels/host_room.h).
void* allocate_pinned(device& d, std::uint64_t bytes);

// Waits for no work: the device must be done with the memory. `bytes`: those of allocate_pinned().
void free_pinned(device& d, void* at, std::uint64_t bytes);

}  // namespace weir::kernels::cuda
