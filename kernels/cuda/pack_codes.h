// pack_codes.h — codes as files of directories have them (kernels/file_codes.h) into cells (block_layout.h).
//
// The functions launch kernels on the device's stream; a failure is kept in device::fault.
//
// Thread safety: the device's (device.h).
#pragma once

#include <cstdint>

#include "kernels/cuda/device.h"
#include "kernels/file_codes.h"

namespace weir::kernels::cuda {

// Packs a rectangle, whose arrays are in memory of the device. `first`: the row of `to` that its first row
// becomes. Writes no other row and no other column. REQUIRES: `to` has a type that the loader makes of
// directories (kernels/blocks.h), or mxfp4
void pack_codes(device& d, const file_codes& from, std::uint32_t first, const matrix& to);

// The entry backend::do_begin_pack for such a rectangle. REQUIRES: it has at most device::workspace_bytes
void upload_codes(device& d, const file_codes& on_host, std::uint32_t first, const matrix& to);

}  // namespace weir::kernels::cuda
