#include "core/model/load/quantised_rows.h"

#include <algorithm>
#include <cstring>
#include <vector>

#include "core/model/load/fill.h"

namespace weir::core {
namespace {

using kernels::dtype;
using u8 = std::uint8_t;
using u32 = std::uint32_t;
using u64 = std::uint64_t;

// Rows [first, first + count) of a linear, taken apart.
struct taken_rows {
  u32 first, count;
  std::vector<u8> codes;      // [count, columns]
  std::vector<float> scales;  // [count, groups]
  std::vector<u8> zeros;      // [count, groups]; with mxfp4 its scales
};

// A rectangle of a matrix in a file: rows [row, row + rows), columns [column, column + columns).
struct rectangle {
  u64 row, rows, column, columns;
};

// Reads a rectangle of elements of `element` bytes into `to`, row after row.
template <class T>
result<void> read_rectangle(const checkpoint& from, const stored_tensor& t, const rectangle& r,
                            std::vector<T>& to) {
  const u64 width = t.shape.size() == 2 ? t.shape[1] : 1;
  to.resize(r.rows * r.columns);
  const auto bytes = std::as_writable_bytes(std::span(to));
  if (r.columns == width) return from.read(t, r.row * width * sizeof(T), bytes);
  for (u64 i = 0; i < r.rows; ++i) {
    const auto part = bytes.subspan(i * r.columns * sizeof(T), r.columns * sizeof(T));
    if (auto ok = from.read(t, ((r.row + i) * width + r.column) * sizeof(T), part); !ok) return ok;
  }
  return {};
}

// The same for a tensor of a plain type, widened.
result<void> read_floats(const checkpoint& from, const stored_tensor& t, const rectangle& r,
                         std::vector<float>& to) {
  const dtype type = *supported_type(t.dtype);
  if (type == dtype::f32) return read_rectangle(from, t, r, to);
  std::vector<std::uint16_t> halves;
  if (auto ok = read_rectangle(from, t, r, halves); !ok) return ok;
  to.resize(halves.size());
  for (std::size_t i = 0; i < to.size(); ++i) to[i] = kernels::load(halves.data(), type, i);
  return {};
}

// Field `index` of a stream of fields of `bits` bits, whose words are `apart` words from one another. `words`
// begins at word `skipped_words` of the stream.
u8 field_of(const u32* words, std::size_t apart, u64 index, u32 bits, u64 skipped_words = 0) {
  const u64 bit = index * bits, word = bit / 32 - skipped_words;
  u64 two = words[word * apart];
  if (bit % 32 + bits > 32) two |= u64{words[(word + 1) * apart]} << 32;
  return static_cast<u8>(two >> (bit % 32) & ((1u << bits) - 1));
}

// The words of a stream that fields [first, first + count) lie in.
struct word_range {
  u64 first, count;
  word_range(u64 field, u64 fields, u32 bits)
      : first(field * bits / 32), count(((field + fields) * bits + 31) / 32 - first) {}
};

// Version 1 of gptq stores zeros less one. Writers subtract the ones from whole words, borrows included. They
// do not do so for 3 bits, whose fields cross words.
u32 with_ones(u32 word, u32 bits) {
  return bits == 3 ? word : word + (bits == 2 ? 0x55555555u : bits == 4 ? 0x11111111u : 0x01010101u);
}

class blocks_of_linear : public converted_tensor {
 public:
  explicit blocks_of_linear(quantised_linear linear) : l_(std::move(linear)) {}

  result<void> read(const checkpoint& from, u64 at, std::span<std::byte> to) const override {
    const u64 block = kernels::facts(l_.type).block_bytes, across = l_.columns() / 32;
    u64 next = at / block;
    const u64 end = next + to.size() / block;
    std::byte* out = to.data();
    while (next < end) {
      const u64 row = next / across, most = std::max<u64>(1, most_weights / l_.columns());
      const u64 rows = std::min(most, (end - 1) / across + 1 - row);
      taken_rows r{static_cast<u32>(row), static_cast<u32>(rows), {}, {}, std::vector<u8>(rows * l_.groups)};
      if (auto ok = take(from, r); !ok) return ok;
      for (const u64 last = std::min(end, (row + rows) * across); next < last; ++next, out += block)
        write(r, static_cast<u32>(next / across - row), static_cast<u32>(next % across), out);
    }
    return {};
  }

 private:
  static constexpr u64 most_weights = 4u << 20;  // that are taken apart at once

  result<void> take(const checkpoint& from, taken_rows& r) const {
    switch (l_.config.form) {
      case quant_form::gptq:
        return take_gptq(from, r);
      case quant_form::awq:
        return take_awq(from, r);
      case quant_form::packed:
        return take_packed(from, r);
      case quant_form::exl2:
        return take_exl2(from, r);
      default:
        return take_bytes(from, r);
    }
  }

  // Codes are a stream down each column, and zeros are a stream along each row.
  result<void> take_gptq(const checkpoint& from, taken_rows& r) const {
    const u32 bits = l_.config.bits;
    std::vector<u32> words, zeros;
    if (auto ok = read_rectangle(from, l_.codes, {0, l_.codes.shape[0], r.first, r.count}, words); !ok)
      return ok;
    const word_range range(r.first, r.count, bits);
    if (auto ok = read_rectangle(from, l_.zeros, {0, l_.groups, range.first, range.count}, zeros); !ok)
      return ok;
    r.codes.resize(std::size_t{r.count} * l_.columns());
    for (u32 c = 0; c < l_.columns(); ++c)
      for (u32 j = 0; j < r.count; ++j)
        r.codes[std::size_t{j} * l_.columns() + c] = field_of(words.data() + j, r.count, input_of(c), bits);
    if (l_.config.less_one)
      for (u32& word : zeros) word = with_ones(word, bits);
    for (u32 g = 0; g < l_.groups; ++g)
      for (u32 j = 0; j < r.count; ++j) {
        const u8 zero = field_of(zeros.data() + g * range.count, 1, r.first + j, bits, range.first);
        r.zeros[std::size_t{j} * l_.groups + g] = bits == 3 && l_.config.less_one ? (zero + 1) & 7 : zero;
      }
    return take_turned_scales(from, r);
  }

  // A word has the codes of eight outputs, in awq's own order. Zeros are stored in the same way.
  result<void> take_awq(const checkpoint& from, taken_rows& r) const {
    constexpr u32 place[] = {0, 4, 1, 5, 2, 6, 3, 7};
    const word_range range(r.first, r.count, 4);
    std::vector<u32> words, zeros;
    if (auto ok = read_rectangle(from, l_.codes, {0, l_.inputs, range.first, range.count}, words); !ok)
      return ok;
    if (auto ok = read_rectangle(from, l_.zeros, {0, l_.groups, range.first, range.count}, zeros); !ok)
      return ok;
    const auto nibble = [&](const std::vector<u32>& from_words, u64 row, u32 j) {
      const u32 column = r.first + j;
      const u32 word = from_words[row * range.count + column / 8 - range.first];
      return static_cast<u8>(word >> (4 * place[column % 8]) & 15);
    };
    r.codes.resize(std::size_t{r.count} * l_.inputs);
    for (u32 j = 0; j < r.count; ++j) {
      for (u32 k = 0; k < l_.inputs; ++k) r.codes[std::size_t{j} * l_.inputs + k] = nibble(words, k, j);
      for (u32 g = 0; g < l_.groups; ++g) r.zeros[std::size_t{j} * l_.groups + g] = nibble(zeros, g, j);
    }
    return take_turned_scales(from, r);
  }

  // Codes, plus half of their range, are a stream along each row. Zeros are a stream down each column.
  result<void> take_packed(const checkpoint& from, taken_rows& r) const {
    const u32 bits = l_.config.bits;
    const u64 width = l_.codes.shape[1];
    std::vector<u32> words, zeros;
    if (auto ok = read_rectangle(from, l_.codes, {r.first, r.count, 0, width}, words); !ok) return ok;
    r.codes.resize(std::size_t{r.count} * l_.columns());
    for (u32 j = 0; j < r.count; ++j)
      for (u32 c = 0; c < l_.columns(); ++c)
        r.codes[std::size_t{j} * l_.columns() + c] = field_of(words.data() + j * width, 1, input_of(c), bits);
    std::ranges::fill(r.zeros, static_cast<u8>(1u << (bits - 1)));
    if (!l_.zeros.dtype.empty()) {
      const word_range range(r.first, r.count, bits);
      if (auto ok = read_rectangle(from, l_.zeros, {range.first, range.count, 0, l_.groups}, zeros); !ok)
        return ok;
      for (u32 j = 0; j < r.count; ++j)
        for (u32 g = 0; g < l_.groups; ++g)
          r.zeros[std::size_t{j} * l_.groups + g] =
              field_of(zeros.data() + g, l_.groups, r.first + j, bits, range.first);
    }
    fill_up(r);
    return take_scales(from, r);
  }

  // Codes are streams down each column, one for each group; scales are squares of four bits.
  result<void> take_exl2(const checkpoint& from, taken_rows& r) const {
    std::vector<u32> words, scales;
    std::vector<float> largest;
    if (auto ok = read_rectangle(from, l_.codes, {0, l_.codes.shape[0], r.first, r.count}, words); !ok)
      return ok;
    const word_range range(r.first, r.count, 4);
    if (auto ok = read_rectangle(from, l_.scales, {0, l_.groups, range.first, range.count}, scales); !ok)
      return ok;
    if (auto ok = read_floats(from, l_.largest, {0, l_.groups, 0, 1}, largest); !ok) return ok;
    r.codes.resize(std::size_t{r.count} * l_.columns());
    r.scales.resize(std::size_t{r.count} * l_.groups);
    for (u32 g = 0; g < l_.groups; ++g) {
      const exl2_group& group = l_.exl2.groups[g];
      const u8 zero = static_cast<u8>(1u << (group.bits - 1));
      const u32* stream = words.data() + std::size_t{group.first_word} * r.count;
      for (u32 j = 0; j < r.count; ++j) {
        u8* codes = r.codes.data() + std::size_t{j} * l_.columns() + group.first_column;
        for (u32 i = 0; i < group.columns; ++i)
          codes[i] = i < group.inputs ? field_of(stream + j, r.count, i, group.bits) : zero;
        const std::size_t at = std::size_t{j} * l_.groups + g;
        r.zeros[at] = zero;
        const u8 four = field_of(scales.data() + g * range.count, 1, r.first + j, 4, range.first);
        r.scales[at] = exl2_scale(four, largest[g]);
      }
    }
    return {};
  }

  // A byte for each code; two codes of mxfp4 to a byte, the first in the low half.
  result<void> take_bytes(const checkpoint& from, taken_rows& r) const {
    const quant_form form = l_.config.form;
    if (auto ok = read_rectangle(from, l_.codes, {r.first, r.count, 0, l_.codes.shape[1]}, r.codes); !ok)
      return ok;
    if (form == quant_form::mxfp4)
      return read_rectangle(from, l_.scales, {r.first, r.count, 0, l_.groups}, r.zeros);
    std::ranges::fill(r.zeros, u8{128});
    if (form == quant_form::whole_ints)
      for (u8& code : r.codes) code ^= 128;  // from signed to unsigned, with 128 as zero
    else if (std::ranges::any_of(r.codes, [](u8 code) { return (code & 0x7f) == 0x7f; }))
      return make_error(errc::bad_file, "tensor '{}': a weight in rows {} to {} is NaN", l_.codes_name,
                        r.first, r.first + r.count - 1);
    return take_scales(from, r);
  }

  // The place of a column's code in the file's streams; for a column of padding, any place.
  u32 input_of(u32 column) const { return l_.order ? (*l_.order)[column] : column; }

  // Columns of padding have the code of their group's zero.
  void fill_up(taken_rows& r) const {
    for (u32 c = l_.inputs; c < l_.columns(); ++c)
      for (u32 j = 0; j < r.count; ++j)
        r.codes[std::size_t{j} * l_.columns() + c] = r.zeros[std::size_t{j} * l_.groups + group_of(c / 32)];
  }

  // The group of a block of 32 columns.
  u32 group_of(u32 index) const {
    return l_.exl2.groups.empty() ? index * 32 / l_.group : l_.exl2.group_of_block[index];
  }

  // Scales whose rows are groups.
  result<void> take_turned_scales(const checkpoint& from, taken_rows& r) const {
    std::vector<float> turned;
    if (auto ok = read_floats(from, l_.scales, {0, l_.groups, r.first, r.count}, turned); !ok) return ok;
    r.scales.resize(turned.size());
    for (u32 g = 0; g < l_.groups; ++g)
      for (u32 j = 0; j < r.count; ++j)
        r.scales[std::size_t{j} * l_.groups + g] = turned[std::size_t{g} * r.count + j];
    return {};
  }

  // Scales whose rows are outputs or blocks of outputs, or one scale for all.
  result<void> take_scales(const checkpoint& from, taken_rows& r) const {
    const u32 tall = l_.config.block_rows ? l_.config.block_rows : 1;
    const bool one = l_.scales.bytes.size() == kernels::size_of(*supported_type(l_.scales.dtype));
    const u32 first = one ? 0 : r.first / tall, last = one ? 0 : (r.first + r.count - 1) / tall;
    std::vector<float> some;
    if (auto ok = read_floats(from, l_.scales, {first, last - first + 1, 0, l_.groups}, some); !ok) return ok;
    r.scales.resize(std::size_t{r.count} * l_.groups);
    for (u32 j = 0; j < r.count; ++j) {
      const std::size_t row = one ? 0 : (r.first + j) / tall - first;
      for (u32 g = 0; g < l_.groups; ++g)
        r.scales[std::size_t{j} * l_.groups + g] = some[row * l_.groups + g];
    }
    return {};
  }

  // Writes block `index` of row `j` of `r`.
  void write(const taken_rows& r, u32 j, u32 index, std::byte* to) const {
    const std::size_t at = std::size_t{j} * l_.groups + group_of(index);
    auto* out = reinterpret_cast<u8*>(to);
    if (l_.type == dtype::mxfp4) {
      const u8* pairs = r.codes.data() + std::size_t{j} * (l_.inputs / 2) + index * 16;
      const auto code = [&](int i) { return pairs[i / 2] >> (4 * (i % 2)) & 15; };
      *out++ = r.zeros[at];
      for (int i = 0; i < 16; ++i) out[i] = static_cast<u8>(code(i) | code(16 + i) << 4);
      return;
    }
    std::memcpy(out, &r.scales[at], 4);
    const u8* codes = r.codes.data() + std::size_t{j} * l_.columns() + index * 32;
    out += 4;
    if (l_.type != dtype::fp8) {
      const u8 zero[4] = {r.zeros[at]};
      std::memcpy(out, zero, 4);
      out += 4;
    }
    if (l_.type == dtype::fp8 || l_.type == dtype::int8) {
      std::memcpy(out, codes, 32);
      return;
    }
    for (int i = 0; i < 16; ++i) out[i] = static_cast<u8>(codes[i] | codes[16 + i] << 4);
  }

  quantised_linear l_;
};

}  // namespace

std::shared_ptr<const converted_tensor> make_converted(quantised_linear linear) {
  return std::make_shared<blocks_of_linear>(std::move(linear));
}

}  // namespace weir::core
