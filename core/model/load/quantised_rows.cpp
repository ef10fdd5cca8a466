#include "core/model/load/quantised_rows.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <vector>

#include "core/model/load/quantised_parts.h"
#include "kernels/blocks.h"

namespace weir::core {
namespace {

using kernels::dtype;
using u8 = std::uint8_t;
using u32 = std::uint32_t;
using u64 = std::uint64_t;

class blocks_of_linear : public converted_tensor {
 public:
  explicit blocks_of_linear(quantised_linear linear) : l_(std::move(linear)) {}

  // The codes of some whole rows are read as a device gets them, and unpacked here.
  result<void> read(const checkpoint& from, u64 at, std::span<std::byte> to) const override {
    const u64 block = kernels::facts(l_.type).block_bytes, across = l_.columns() / 32;
    const u64 most = std::max<u64>(1, most_weights / l_.columns() / part_rows) * part_rows;
    u64 next = at / block;
    const u64 end = next + to.size() / block;
    std::byte* out = to.data();
    std::vector<u32> memory;
    while (next < end) {
      const u64 row = next / across / part_rows * part_rows,
                rows = std::min(most, (end - 1) / across + 1 - row);
      const tensor_part part = whole_rows(l_, static_cast<u32>(row), static_cast<u32>(rows));
      memory.resize((part.bytes + 3) / 4);
      const auto codes = read_part_of(l_, from, part, std::as_writable_bytes(std::span(memory)));
      if (!codes) return codes.error();
      const u64 last = std::min(end, (row + rows) * across);
      for (u32 b = 0; b < across; ++b)
        for (u32 j = 0; j < rows; ++j)
          if (const u64 index = (row + j) * across + b; index >= next && index < last)
            write(*codes, j, b, out + (index - next) * block);
      out += (last - next) * block;
      next = last;
    }
    return {};
  }

  std::vector<tensor_part> parts(u32 rows, u64 most) const override { return parts_of(l_, rows, most); }
  result<kernels::file_codes> read_part(const checkpoint& from, const tensor_part& part,
                                        std::span<std::byte> to) const override {
    auto codes = read_part_of(l_, from, part, to);
    if (codes && !all_finite({codes->scales, u64{codes->rows} * codes->groups}))
      return make_error(errc::bad_file, "tensor '{}': a scale of rows {} to {} is not finite", l_.codes_name,
                        part.row, part.row + part.rows - 1);
    return codes;
  }

 private:
  static constexpr u64 most_weights = 4u << 20;  // that are unpacked at once

  static bool all_finite(std::span<const float> all) {
    bool finite = true;
    for (const float x : all) finite &= (std::bit_cast<u32>(x) & 0x7f800000u) != 0x7f800000u;
    return finite;
  }

  // Writes block `index` of row `j` of `c`.
  void write(const kernels::file_codes& c, u32 j, u32 index, std::byte* to) const {
    const u64 at = c.value_at(j, c.blocks[index]);
    u8 codes[32];
    kernels::read_codes(c, j, index, codes);
    auto* out = reinterpret_cast<u8*>(to);
    if (l_.type == dtype::mxfp4) {
      *out++ = static_cast<u8>(std::bit_cast<u32>(c.scales[at]) >> 23);
    } else if (!kernels::format_of(l_.type).wide_scales) {
      const std::uint16_t scale = kernels::to_f16(c.scales[at]);  // exact: it was an f16
      std::memcpy(out, &scale, 2);
      out += 2;
    } else {
      std::memcpy(out, &c.scales[at], 4);
      out += 4;
    }
    if (kernels::format_of(l_.type).zeros) {
      const u8 zero[4] = {c.zeros[at]};
      std::memcpy(out, zero, 4);
      out += 4;
    }
    if (l_.type == dtype::q8_0)
      for (int i = 0; i < 32; ++i) out[i] = static_cast<u8>(codes[i] - 128);
    else if (kernels::format_of(l_.type).code_bits == 8)
      std::memcpy(out, codes, 32);
    else
      for (int i = 0; i < 16; ++i) out[i] = static_cast<u8>(codes[i] | codes[16 + i] << 4);
  }

  quantised_linear l_;
};

}  // namespace

std::shared_ptr<const converted_tensor> make_converted(quantised_linear linear) {
  return std::make_shared<blocks_of_linear>(std::move(linear));
}

}  // namespace weir::core
