#include "core/model/load/quantised_rows.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <vector>

#include "core/model/load/group_values.h"
#include "core/model/load/quantised_parts.h"
#include "core/model/load/rectangle.h"

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
  std::vector<u8> zeros;      // [count, groups]
};

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
      taken_rows r{static_cast<u32>(row), static_cast<u32>(rows), {}, std::vector<float>(rows * l_.groups),
                   std::vector<u8>(rows * l_.groups)};
      const group_range all{r.first, r.count, 0, l_.groups};
      if (auto ok = read_group_values(l_, from, all, r.scales.data(), r.zeros.data()); !ok) return ok;
      if (auto ok = take(from, r); !ok) return ok;
      for (const u64 last = std::min(end, (row + rows) * across); next < last; ++next, out += block)
        write(r, static_cast<u32>(next / across - row), static_cast<u32>(next % across), out);
    }
    return {};
  }

  std::vector<tensor_part> parts(u32 rows, u64 most) const override { return parts_of(l_, rows, most); }
  result<kernels::file_codes> read_part(const checkpoint& from, const tensor_part& part,
                                        std::span<std::byte> to) const override {
    return read_part_of(l_, from, part, to);
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

  // Codes are a stream down each column.
  result<void> take_gptq(const checkpoint& from, taken_rows& r) const {
    const u32 bits = l_.config.bits;
    std::vector<u32> words;
    if (auto ok = read_rectangle(from, l_.codes, {0, l_.codes.shape[0], r.first, r.count}, words); !ok)
      return ok;
    r.codes.resize(std::size_t{r.count} * l_.columns());
    for (u32 c = 0; c < l_.columns(); ++c)
      for (u32 j = 0; j < r.count; ++j)
        r.codes[std::size_t{j} * l_.columns() + c] = field_of(words.data() + j, r.count, input_of(c), bits);
    return {};
  }

  // A word has the codes of eight outputs, in awq's own order.
  result<void> take_awq(const checkpoint& from, taken_rows& r) const {
    constexpr u32 place[] = {0, 4, 1, 5, 2, 6, 3, 7};
    const word_range range(r.first, r.count, 4);
    std::vector<u32> words;
    if (auto ok = read_rectangle(from, l_.codes, {0, l_.inputs, range.first, range.count}, words); !ok)
      return ok;
    r.codes.resize(std::size_t{r.count} * l_.inputs);
    for (u32 j = 0; j < r.count; ++j)
      for (u32 k = 0; k < l_.inputs; ++k) {
        const u32 output = r.first + j, word = words[k * range.count + output / 8 - range.first];
        r.codes[std::size_t{j} * l_.inputs + k] = static_cast<u8>(word >> (4 * place[output % 8]) & 15);
      }
    return {};
  }

  // Codes, plus half of their range, are a stream along each row.
  result<void> take_packed(const checkpoint& from, taken_rows& r) const {
    const u32 bits = l_.config.bits;
    const u64 width = l_.codes.shape[1];
    std::vector<u32> words;
    if (auto ok = read_rectangle(from, l_.codes, {r.first, r.count, 0, width}, words); !ok) return ok;
    r.codes.resize(std::size_t{r.count} * l_.columns());
    for (u32 j = 0; j < r.count; ++j)
      for (u32 c = 0; c < l_.columns(); ++c)
        r.codes[std::size_t{j} * l_.columns() + c] = field_of(words.data() + j * width, 1, input_of(c), bits);
    fill_up(r);
    return {};
  }

  // Codes are streams down each column, one for each group.
  result<void> take_exl2(const checkpoint& from, taken_rows& r) const {
    std::vector<u32> words;
    if (auto ok = read_rectangle(from, l_.codes, {0, l_.codes.shape[0], r.first, r.count}, words); !ok)
      return ok;
    r.codes.resize(std::size_t{r.count} * l_.columns());
    for (u32 g = 0; g < l_.groups; ++g) {
      const exl2_group& group = l_.exl2.groups[g];
      const u32* stream = words.data() + std::size_t{group.first_word} * r.count;
      for (u32 j = 0; j < r.count; ++j) {
        u8* codes = r.codes.data() + std::size_t{j} * l_.columns() + group.first_column;
        const u8 zero = r.zeros[std::size_t{j} * l_.groups + g];
        for (u32 i = 0; i < group.columns; ++i)
          codes[i] = i < group.inputs ? field_of(stream + j, r.count, i, group.bits) : zero;
      }
    }
    return {};
  }

  // A byte for each code; two codes of mxfp4 to a byte, the first in the low half.
  result<void> take_bytes(const checkpoint& from, taken_rows& r) const {
    if (auto ok = read_rectangle(from, l_.codes, {r.first, r.count, 0, l_.codes.shape[1]}, r.codes); !ok)
      return ok;
    if (l_.config.form == quant_form::whole_ints)
      for (u8& code : r.codes) code ^= 128;  // from signed to unsigned, with 128 as zero
    if (l_.config.form == quant_form::fp8 &&
        std::ranges::any_of(r.codes, [](u8 code) { return (code & 0x7f) == 0x7f; }))
      return make_error(errc::bad_file, "tensor '{}': a weight in rows {} to {} is NaN", l_.codes_name,
                        r.first, r.first + r.count - 1);
    return {};
  }

  // The place of a column's code in the file's streams; for a column of padding, any place.
  u32 input_of(u32 column) const { return l_.order ? (*l_.order)[column] : column; }

  // Columns of padding have the code of their group's zero.
  void fill_up(taken_rows& r) const {
    for (u32 c = l_.inputs; c < l_.columns(); ++c)
      for (u32 j = 0; j < r.count; ++j)
        r.codes[std::size_t{j} * l_.columns() + c] =
            r.zeros[std::size_t{j} * l_.groups + l_.group_of(c / 32)];
  }

  // Writes block `index` of row `j` of `r`.
  void write(const taken_rows& r, u32 j, u32 index, std::byte* to) const {
    const std::size_t at = std::size_t{j} * l_.groups + l_.group_of(index);
    auto* out = reinterpret_cast<u8*>(to);
    if (l_.type == dtype::mxfp4) {
      const u8* pairs = r.codes.data() + std::size_t{j} * (l_.inputs / 2) + index * 16;
      const auto code = [&](int i) { return pairs[i / 2] >> (4 * (i % 2)) & 15; };
      *out++ = static_cast<u8>(std::bit_cast<u32>(r.scales[at]) >> 23);
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
