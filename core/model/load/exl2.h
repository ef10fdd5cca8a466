// exl2.h — the structure of a linear of EXL2, the format of ExLlamaV2.
//
// Each group of inputs has codes of its own width, 2 to 8 bits. A file has its inputs sorted and cut into
// groups. Each group has some rows of words in q_weight, and the codes of one output are a stream of bits
// down one column of these rows. Here a group fills whole blocks of 32 columns, so that each block has one
// scale.
//
// Thread safety: pure functions; any thread.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "core/error.h"

namespace weir::core {

constexpr std::uint32_t exl2_row_unit = 32;  // a file's number of outputs is rounded up to a multiple of this

struct exl2_group {
  std::uint32_t bits = 0;                       // of a code
  std::uint32_t first_word = 0;                 // row of q_weight
  std::uint32_t inputs = 0;                     // at least 1
  std::uint32_t first_column = 0, columns = 0;  // whole blocks of 32; those from `inputs` on are padding
};

struct exl2_layout {
  std::vector<exl2_group> groups;  // bits never rise
  std::vector<std::uint32_t> group_of_block;
  // The input of each column; a column of padding has the number of any input.
  std::shared_ptr<const std::vector<std::uint32_t>> inputs;
};

// `groups`: q_groups, bits and the first row of words of each group in turn. `places`: q_invperm, for each
// input its place in the sorted order; between 1 and 2^24 of them. `words`: the rows of q_weight. `linear`:
// the name in front of these, for errors. Error: bad_file.
result<exl2_layout> lay_out_exl2(std::span<const std::uint16_t> groups, std::span<const std::uint32_t> places,
                                 std::uint64_t words, std::string_view linear);

// The scale of a group for one output: f16((four + 1)² · f16(largest / 256)). `four`: its four bits of
// q_scale; `largest`: its group's q_scale_max, an f16. Both roundings belong to the format.
float exl2_scale(std::uint8_t four, float largest) noexcept;

}  // namespace weir::core
