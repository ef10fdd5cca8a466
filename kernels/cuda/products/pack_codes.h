// pack_codes.h — codes as files of directories have them (kernels/file_codes.h) into cells (block_layout.h).
//
// Work is on the device's stream; a failure is kept in device::fault.
//
// Thread safety: the device's (device.h).
#pragma once

#include <cstdint>

#include "kernels/cuda/device/device.h"
#include "kernels/file_codes.h"

namespace weir::kernels::cuda {

// The entry backend::do_begin_pack for a rectangle of codes. `first`: the row of `to` that its first row
// becomes. Writes no other row and no other column. A type of `to` that no directory has is a failure.
// REQUIRES: the rectangle has at most device::workspace_bytes
void upload_codes(device& d, const file_codes& on_host, std::uint32_t first, const matrix& to);

}  // namespace weir::kernels::cuda
