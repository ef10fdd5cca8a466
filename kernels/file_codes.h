// file_codes.h — a part of a quantised matrix whose codes lie as files have them: words of 32 bits from
// directories with GPTQ, AWQ, EXL2, fp8 and the like (core/model/load/quantised.h). A backend that has
// do_begin_pack brings them into its own layout, so that the host only reads files.
//
// Scales and zeros are unpacked: there are few of them, and every format stores them in its own way.
//
// Thread safety: plain data and pure functions; any thread, of the host or of a device.
#pragma once

#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "kernels/random_weights.h"

namespace weir::kernels {

// How the words with the codes lie.
enum class code_lines : std::uint8_t {
  along_rows,    // the codes of a row are a stream of bits through its words: [rows, words]
  down_columns,  // the codes of a row are a stream of bits down a column of words: [words, rows]
  awq            // a word has the codes of one column for eight rows, in awq's order: [columns, rows / 8]
};

// What is the same for 32 columns.
struct code_block {
  std::uint32_t group = 0;      // of their scale and zero
  std::uint32_t first_bit = 0;  // where the stream has their first code: a multiple of 32
  std::uint16_t bits = 0;       // of a code
  std::uint16_t codes = 0;      // columns behind these have no code in the file, and the zero as theirs
};

// A rectangle of a matrix. All arrays are in one piece of `bytes` bytes, which begins with `codes`.
struct file_codes {
  std::uint32_t row = 0, rows = 0;        // of the tensor; `row` is a multiple of 8
  std::uint32_t column = 0, columns = 0;  // multiples of 32; `column` is also one of 128
  code_lines lines = code_lines::along_rows;
  bool is_signed = false;     // codes are signed bytes
  bool groups_first = false;  // scales and zeros are [groups, rows]
  std::uint32_t across = 0;   // words from one line of words to the next
  std::uint32_t groups = 0;   // that the columns belong to
  const std::uint32_t* codes = nullptr;
  const float* scales = nullptr;        // [rows, groups]: value_at()
  const std::uint8_t* zeros = nullptr;  // [rows, groups]
  const code_block* blocks = nullptr;   // [columns / 32]
  // [columns] the code of a column is this one of the stream; null: codes follow one another in each block.
  const std::uint32_t* places = nullptr;
  // Where blocks of the tensor's type have no zeros: the code whose value is 0. Each code is moved by the
  // difference between this code and its group's zero.
  bool moves_zeros = false;
  std::uint8_t zero_code = 0;
  std::uint64_t bytes = 0;

  // Where the scale and the zero of a block are, for a row of the rectangle.
  WEIR_ON_DEVICE std::uint64_t value_at(std::uint32_t of_row, const code_block& b) const noexcept {
    return groups_first ? std::uint64_t{b.group} * rows + of_row : std::uint64_t{of_row} * groups + b.group;
  }

  // The same rectangle after its bytes were copied to `to`.
  file_codes copied_to(const void* to) const noexcept {
    file_codes c = *this;
    const auto* from = reinterpret_cast<const std::byte*>(codes);
    const auto move = [&](auto*& at) {
      if (at)
        at = reinterpret_cast<std::remove_reference_t<decltype(at)>>(
            static_cast<const std::byte*>(to) + (reinterpret_cast<const std::byte*>(at) - from));
    };
    move(c.scales);
    move(c.zeros);
    move(c.blocks);
    move(c.places);
    move(c.codes);
    return c;
  }
};

// Unpacks the codes of columns 32 * block to 32 * block + 31 of a row as the file has them, but for signed
// bytes, which become codes with 128 as their zero. `zero`: of their group.
WEIR_ON_DEVICE inline void read_stored_codes(const file_codes& c, std::uint32_t row, std::uint32_t block,
                                             std::uint8_t zero, std::uint8_t (&to)[32]) noexcept {
  const code_block b = c.blocks[block];
  const std::uint32_t mask = (1u << b.bits) - 1, flip = c.is_signed ? 128 : 0;
  if (c.lines == code_lines::awq) {
    const std::uint32_t* word = c.codes + std::uint64_t{block} * 32 * c.across + row / 8;
    const std::uint32_t shift = 4 * (row % 2 * 4 + row % 8 / 2);
    for (std::uint32_t i = 0; i < 32; ++i)
      to[i] = static_cast<std::uint8_t>(word[std::uint64_t{i} * c.across] >> shift & 15);
    return;
  }
  const bool down = c.lines == code_lines::down_columns;
  const std::uint32_t* first = c.codes + (down ? row : std::uint64_t{row} * c.across);
  const std::uint64_t step = down ? c.across : 1;
  if (c.places) {
    for (std::uint32_t i = 0; i < 32; ++i) {
      if (i >= b.codes) {
        to[i] = zero;
        continue;
      }
      const std::uint32_t bit = c.places[block * 32 + i] * b.bits, shift = bit % 32;
      std::uint64_t two = first[bit / 32 * step];
      if (shift + b.bits > 32) two |= std::uint64_t{first[(bit / 32 + 1) * step]} << 32;
      to[i] = static_cast<std::uint8_t>((two >> shift & mask) ^ flip);
    }
    return;
  }
  std::uint64_t have = 0;  // bits of the stream that were read and not used yet
  std::uint32_t left = 0;  // how many they are
  const std::uint32_t* word = first + b.first_bit / 32 * step;
  for (std::uint32_t i = 0; i < 32; ++i) {
    if (i >= b.codes) {
      to[i] = zero;
      continue;
    }
    if (left < b.bits) {
      have |= std::uint64_t{*word} << left;
      word += step;
      left += 32;
    }
    to[i] = static_cast<std::uint8_t>((have & mask) ^ flip);
    have >>= b.bits;
    left -= b.bits;
  }
}

// Unpacks the codes of columns 32 * block to 32 * block + 31 of a row, as blocks of the tensor's type have
// them (blocks.h). `row`: in the rectangle.
WEIR_ON_DEVICE inline void read_codes(const file_codes& c, std::uint32_t row, std::uint32_t block,
                                      std::uint8_t (&to)[32]) noexcept {
  const std::uint8_t zero = c.zeros[c.value_at(row, c.blocks[block])];
  read_stored_codes(c, row, block, zero, to);
  if (!c.moves_zeros) return;
  for (std::uint8_t& code : to) code = static_cast<std::uint8_t>(code + c.zero_code - zero);
}

}  // namespace weir::kernels
