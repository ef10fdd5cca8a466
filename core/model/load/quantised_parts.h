// quantised_parts.h — reads rectangles of a quantised linear (quantised_rows.h) as the codes that its files
// have (kernels/file_codes.h). The codes are copied as they are: a device unpacks them, and for host backends
// quantised_rows.cpp does.
//
// A rectangle is chosen so that its codes are consecutive in the file where the format allows that: whole
// rows where codes lie along rows, all rows of some columns where they lie down columns.
//
// Thread safety: pure functions; any thread. Errors: bad_file for a file that cannot be read, and for an e4m3
// that is NaN. Whether scales are finite is not checked.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "core/model/load/quantised_rows.h"

namespace weir::core {

constexpr std::uint32_t part_rows = 8;  // tensor_part::row is a multiple of it

// The part that is `rows` rows with all columns. REQUIRES: `row` is a multiple of part_rows
tensor_part whole_rows(const quantised_linear& l, std::uint32_t row, std::uint32_t rows);
// As converted_tensor::parts() and read_part().
std::vector<tensor_part> parts_of(const quantised_linear& l, std::uint32_t rows, std::uint64_t most);
result<kernels::file_codes> read_part_of(const quantised_linear& l, const checkpoint& from,
                                         const tensor_part& part, std::span<std::byte> to);

}  // namespace weir::core
