// group_values.h — the scales and zeros of a quantised linear (quantised_rows.h), which every format stores
// in its own way.
//
// Thread safety: pure function; any thread. Error: bad_file for a file that cannot be read.
#pragma once

#include <cstdint>

#include "core/model/load/quantised_rows.h"

namespace weir::core {

// Outputs [row, row + rows) and groups [group, group + groups). REQUIRES: neither is empty
struct group_range {
  std::uint32_t row, rows, group, groups;
  bool groups_first = false;
};

// Writes scales and zeros, both [rows, groups], or [groups, rows] with groups_first. A zero is a code.
// Without a tensor of zeros they are the code of zero; for floats they mean nothing.
result<void> read_group_values(const quantised_linear& l, const checkpoint& from, const group_range& r,
                               float* scales, std::uint8_t* zeros);

}  // namespace weir::core
