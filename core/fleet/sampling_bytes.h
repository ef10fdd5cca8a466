// sampling_bytes.h — the sampling fields of a job in a frame: all that visit_sampling() lists, in its order,
// so that a new field travels by itself.
//
// Thread safety: none; see bytes.h.
#pragma once

#include "core/error.h"
#include "core/fleet/bytes.h"
#include "core/sample/params.h"

namespace weir::core::fleet {

void write_sampling(byte_writer& to, const sampling_params& s);
// Fields that are missing at the end keep their defaults: an older build sent them. Error: invalid_param,
// which names the field that is out of its range.
result<void> read_sampling(byte_reader& from, sampling_params& s);

}  // namespace weir::core::fleet
