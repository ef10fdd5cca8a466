// block_form.h — what the loops over panels of quantised weights have in common: a type's form at compile
// time, its scales as floats, and the prefetching of what comes next.
#pragma once

#include "kernels/cpu/packing.h"
#include "kernels/cpu/simd/codes.h"
#include "kernels/cpu/simd/vector.h"

namespace weir::kernels {
namespace {

// What the loops have to know of a type at compile time.
struct block_form {
  std::uint16_t section, group;
  std::uint8_t code_bits;
  bool minima, scaled_groups, powers;  // powers: scales are bf16
  bool wide_scales, zeros, e4m3;       // as in block_format

  bool operator==(const block_form&) const = default;
};
constexpr block_form form_of(dtype type) {
  const block_format& f = format_of(type);
  return {f.scaled_groups ? facts(type).block_weights : f.group,
          f.group,
          f.code_bits,
          f.minima,
          f.scaled_groups,
          type == dtype::mxfp4,
          f.wide_scales,
          f.zeros,
          f.e4m3};
}

// Prefetches the lines of what comes next in eight streams, as `coming` in linear.h does.
struct coming_lines {
  static constexpr std::size_t streams = 8;
  const std::byte* at;
  std::size_t part, stream = 0;

  coming_lines(const std::byte* first, std::size_t bytes) : at(first), part(bytes / streams / 64 * 64) {}
  WEIR_INLINE void ask() {
    __builtin_prefetch(at + stream * part, 0, 2);
    stream = (stream + 1) % streams;
    at += stream == 0 ? 64 : 0;
  }
};

// The bytes of a group's scales, of its codes, and of its section's scales.
constexpr std::size_t scale_bytes_of(const block_form& f) {
  return f.wide_scales ? panel_rows * (f.zeros ? 5 : 4)
                       : (f.minima ? 2 : 1) * panel_rows * (f.scaled_groups ? 1 : 2);
}
constexpr std::size_t code_bytes_of(const block_form& f) {
  return std::size_t{f.group} * panel_rows * f.code_bits / 8;
}
constexpr std::size_t header_bytes_of(const block_form& f) {
  return f.scaled_groups ? (f.minima ? 2 : 1) * panel_rows * 2 : 0;
}

// The 16-bit scales or minima of `lanes` outputs, the first of which is `column`.
template <block_form f>
WEIR_INLINE vec load_halves_of(const std::byte* from, std::size_t column) {
  const auto* h = reinterpret_cast<const std::uint16_t*>(from) + column;
  if constexpr (f.powers)
    return load_bf16(h);
  else
    return load_f16(h);
}

// The scales and the minima (or zeros) of a group whose scales are at `from`, for `lanes` outputs. `header`:
// the scales of its section.
template <block_form f>
WEIR_INLINE void load_scales(const std::byte* from, const std::byte* header, std::size_t column, vec& scale,
                             vec& minimum) {
  if constexpr (f.scaled_groups) {
    scale = load_halves_of<f>(header, column) * load_bytes(from + column);
    if constexpr (f.minima)
      minimum = load_halves_of<f>(header + 2 * panel_rows, column) * load_bytes(from + panel_rows + column);
  } else if constexpr (f.wide_scales) {
    scale = load_f32(reinterpret_cast<const float*>(from) + column);
    if constexpr (f.zeros) minimum = load_bytes(from + 4 * panel_rows + column);
  } else {
    scale = load_halves_of<f>(from, column);
    if constexpr (f.minima) minimum = load_halves_of<f>(from + 2 * panel_rows, column);
  }
}

}  // namespace
}  // namespace weir::kernels
