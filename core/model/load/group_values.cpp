#include "core/model/load/group_values.h"

#include <algorithm>
#include <array>
#include <bit>
#include <vector>

#include "core/model/load/fill.h"
#include "core/model/load/rectangle.h"

namespace weir::core {
namespace {

using u8 = std::uint8_t;
using u32 = std::uint32_t;
using u64 = std::uint64_t;

// Version 1 of gptq stores zeros less one. Writers subtract the ones from whole words, borrows included. They
// do not do so for 3 bits, whose fields cross words.
u32 with_ones(u32 word, u32 bits) {
  return bits == 3 ? word : word + (bits == 2 ? 0x55555555u : bits == 4 ? 0x11111111u : 0x01010101u);
}

// Writes `count` fields of a stream, from field `first` on. `words` begins at word range.first of the stream.
void unpack_fields(const u32* words, const word_range& range, u32 first, u32 count, u32 bits, u8* to) {
  if (bits == 4 && first % 8 == 0) {  // the common case, eight fields a word
    for (u32 j = 0; j + 8 <= count; j += 8)
      for (u32 i = 0; i < 8; ++i) to[j + i] = static_cast<u8>(words[j / 8] >> 4 * i & 15);
    for (u32 j = count / 8 * 8; j < count; ++j) to[j] = static_cast<u8>(words[j / 8] >> 4 * (j % 8) & 15);
    return;
  }
  for (u32 j = 0; j < count; ++j) to[j] = field_of(words, 1, first + j, bits, range.first);
}

class value_reader {
 public:
  value_reader(const quantised_linear& l, const checkpoint& from, const group_range& r, float* scales,
               u8* zeros)
      : l_(l), from_(from), r_(r), scales_(scales), zeros_(zeros) {}

  result<void> read() const {
    switch (l_.config.form) {
      case quant_form::gptq:
        return gptq();
      case quant_form::awq:
        return awq();
      case quant_form::packed:
        return packed();
      case quant_form::exl2:
        return exl2();
      case quant_form::mxfp4:
        return mxfp4();
      default:
        std::fill_n(zeros_, std::size_t{r_.rows} * r_.groups, u8{128});
        return scales_in_rows();
    }
  }

 private:
  // Calls f(g, j) for each group g and row j, counted from the first of the range, in the order of the
  // results.
  template <class F>
  void for_all(const F& f) const {
    if (!r_.groups_first)
      for (u32 j = 0; j < r_.rows; ++j)
        for (u32 g = 0; g < r_.groups; ++g) f(g, j);
    else
      for (u32 g = 0; g < r_.groups; ++g)
        for (u32 j = 0; j < r_.rows; ++j) f(g, j);
  }
  std::size_t at(u32 g, u32 j) const {
    return r_.groups_first ? std::size_t{g} * r_.rows + j : std::size_t{j} * r_.groups + g;
  }

  // Words of a tensor whose rows are groups, and whose columns have fields of outputs.
  result<void> read_words(const stored_tensor& t, const word_range& range, std::vector<u32>& words) const {
    return read_rectangle(from_, t, {r_.group, r_.groups, range.first, range.count}, words);
  }

  // Zeros are a stream along each row of groups.
  result<void> gptq() const {
    const u32 bits = l_.config.bits;
    const word_range range(r_.row, r_.rows, bits);
    std::vector<u32> words;
    if (auto ok = read_words(l_.zeros, range, words); !ok) return ok;
    if (l_.config.less_one)
      for (u32& word : words) word = with_ones(word, bits);
    const bool add_one = bits == 3 && l_.config.less_one;
    std::vector<u8> row(r_.rows);
    for (u32 g = 0; g < r_.groups; ++g) {
      unpack_fields(words.data() + g * range.count, range, r_.row, r_.rows, bits, row.data());
      for (u32 j = 0; j < r_.rows; ++j)
        zeros_[at(g, j)] = add_one ? static_cast<u8>((row[j] + 1) & 7) : row[j];
    }
    return turned_scales();
  }

  // A word has the zeros of eight outputs, in awq's own order.
  result<void> awq() const {
    constexpr u32 place[] = {0, 4, 1, 5, 2, 6, 3, 7};
    const word_range range(r_.row, r_.rows, 4);
    std::vector<u32> words;
    if (auto ok = read_words(l_.zeros, range, words); !ok) return ok;
    for_all([&](u32 g, u32 j) {
      const u32 output = r_.row + j, word = words[g * range.count + output / 8 - range.first];
      zeros_[at(g, j)] = static_cast<u8>(word >> (4 * place[output % 8]) & 15);
    });
    return turned_scales();
  }

  // Zeros are a stream down each column; without a tensor of them they are half of the codes' range.
  result<void> packed() const {
    const u32 bits = l_.config.bits;
    std::fill_n(zeros_, std::size_t{r_.rows} * r_.groups, static_cast<u8>(1u << (bits - 1)));
    if (!l_.zeros.dtype.empty()) {
      const word_range range(r_.row, r_.rows, bits);
      std::vector<u32> words;
      const rectangle part{range.first, range.count, r_.group, r_.groups};
      if (auto ok = read_rectangle(from_, l_.zeros, part, words); !ok) return ok;
      for_all([&](u32 g, u32 j) {
        zeros_[at(g, j)] = field_of(words.data() + g, r_.groups, r_.row + j, bits, range.first);
      });
    }
    return scales_in_rows();
  }

  // Scales are squares of four bits.
  result<void> exl2() const {
    const word_range range(r_.row, r_.rows, 4);
    std::vector<u32> words;
    std::vector<float> largest(r_.groups);
    std::vector<u8> row(r_.rows);
    if (auto ok = read_words(l_.scales, range, words); !ok) return ok;
    if (auto ok = read_floats(from_, l_.largest, {r_.group, r_.groups, 0, 1}, largest.data()); !ok) return ok;
    for (u32 g = 0; g < r_.groups; ++g) {
      std::array<float, 16> squares;
      for (std::size_t i = 0; i < squares.size(); ++i)
        squares[i] = exl2_scale(static_cast<u8>(i), largest[g]);
      const u8 zero = static_cast<u8>(1u << (l_.exl2.groups[r_.group + g].bits - 1));
      unpack_fields(words.data() + g * range.count, range, r_.row, r_.rows, 4, row.data());
      for (u32 j = 0; j < r_.rows; ++j) {
        scales_[at(g, j)] = squares[row[j]];
        zeros_[at(g, j)] = zero;
      }
    }
    return {};
  }

  // A scale is 2^(e - 127), e being a byte; e = 0 gives a subnormal f32.
  result<void> mxfp4() const {
    std::vector<u8> bytes;
    if (auto ok = read_rectangle(from_, l_.scales, {r_.row, r_.rows, r_.group, r_.groups}, bytes); !ok)
      return ok;
    for_all([&](u32 g, u32 j) {
      const u8 e = bytes[std::size_t{j} * r_.groups + g];
      scales_[at(g, j)] = std::bit_cast<float>(e == 0 ? 0x00400000u : u32{e} << 23);
      zeros_[at(g, j)] = 128;
    });
    return {};
  }

  // Scales whose rows are groups.
  result<void> turned_scales() const {
    const rectangle part{r_.group, r_.groups, r_.row, r_.rows};
    if (r_.groups_first) return read_floats(from_, l_.scales, part, scales_);
    std::vector<float> turned(std::size_t{r_.groups} * r_.rows);
    if (auto ok = read_floats(from_, l_.scales, part, turned.data()); !ok) return ok;
    for_all([&](u32 g, u32 j) { scales_[at(g, j)] = turned[std::size_t{g} * r_.rows + j]; });
    return {};
  }

  // Scales whose rows are outputs or blocks of outputs, or one scale for all.
  result<void> scales_in_rows() const {
    const u32 tall = l_.config.block_rows ? l_.config.block_rows : 1;
    const bool one = l_.scales.bytes.size() == kernels::size_of(*supported_type(l_.scales.dtype));
    const u32 first = one ? 0 : r_.row / tall, last = one ? 0 : (r_.row + r_.rows - 1) / tall;
    std::vector<float> some(std::size_t{last - first + 1} * r_.groups);
    const rectangle part{first, last - first + 1, r_.group, r_.groups};
    if (auto ok = read_floats(from_, l_.scales, part, some.data()); !ok) return ok;
    for (u32 j = 0; j < r_.rows; ++j) {
      const std::size_t row = one ? 0 : (r_.row + j) / tall - first;
      for (u32 g = 0; g < r_.groups; ++g) scales_[at(g, j)] = some[row * r_.groups + g];
    }
    return {};
  }

  const quantised_linear& l_;
  const checkpoint& from_;
  const group_range r_;
  float* const scales_;
  u8* const zeros_;
};

}  // namespace

result<void> read_group_values(const quantised_linear& l, const checkpoint& from, const group_range& r,
                               float* scales, std::uint8_t* zeros) {
  return value_reader(l, from, r, scales, zeros).read();
}

}  // namespace weir::core
