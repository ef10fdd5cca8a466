// blocks.h — the product of a block of activation rows and one panel of quantised weights, as outer products
// with one output in each lane. Codes become floats in registers; activations are f32.
//
// An output is summed group by group. The products of x and code are summed over the group, in the order of
// k. This sum times the group's scale is added to the output, and after it the sum of x over the group times
// the group's minimum. Codes and scales are exact, so this is the product with the file's own numbers. The
// order is the same whatever the block of rows, the slice of k or the number of threads.
//
// The layout of prepared activations is [k / 16][17][rows]: 16 of k, then their sum.
#pragma once

#include "kernels/cpu/packing.h"
#include "kernels/cpu/simd/block_form.h"
#include "kernels/cpu/simd/codes.h"
#include "kernels/cpu/simd/limits.h"
#include "kernels/cpu/simd/vector.h"

namespace weir::kernels {
namespace {

constexpr std::size_t sum_k = 16;  // activations that are summed in advance
constexpr std::size_t most_block_rows = lanes == 16 ? 8 : 6;  // as many sums as the registers hold

// The sums of a group are in registers, which have no room for the outputs' own sums as well: these are in
// memory. For the same reason scales are read when a group ends.
template <block_form f, std::size_t rows, std::size_t vectors>
struct block_sums {
  vec group[rows][vectors];
  float* const to;
  const std::size_t to_stride;

  WEIR_INLINE float* sum(std::size_t r, std::size_t v) const { return to + r * to_stride + v * lanes; }

  WEIR_INLINE void begin_group() {
    WEIR_UNROLL_BY(8)
    for (std::size_t r = 0; r < rows; ++r)
      WEIR_UNROLL_BY(4)
      for (std::size_t v = 0; v < vectors; ++v) group[r][v] = vec{};
  }

  WEIR_INLINE void add(const float* x, const vec (&w)[vectors]) {
    WEIR_UNROLL_BY(8)
    for (std::size_t r = 0; r < rows; ++r) {
      const vec xs = broadcast(x[r]);
      WEIR_UNROLL_BY(4)
      for (std::size_t v = 0; v < vectors; ++v) group[r][v] = multiply_add(xs, w[v], group[r][v]);
    }
  }

  // `x_sums`: the sums of the group's activations, one for each sum_k of k, `apart` floats from one to the
  // next. `minima`: the minima, or the zeros of a type that has zeros.
  WEIR_INLINE void end_group(const vec (&scales)[vectors], const vec (&minima)[vectors], const float* x_sums,
                             std::size_t apart) {
    WEIR_UNROLL_BY(8)
    for (std::size_t r = 0; r < rows; ++r) {
      const float x = f.group == sum_k ? x_sums[r] : x_sums[r] + x_sums[apart + r];
      const vec xs = broadcast(x);
      WEIR_UNROLL_BY(4)
      for (std::size_t v = 0; v < vectors; ++v) {
        if constexpr (f.zeros) group[r][v] = multiply_add(-minima[v], xs, group[r][v]);
        vec all = multiply_add(scales[v], group[r][v], load_f32(sum(r, v)));
        if constexpr (f.minima) all = multiply_add(minima[v], xs, all);
        store_as(sum(r, v), all);
      }
    }
  }
};

// Adds eight k of 4-bit codes: one word a lane.
template <class S, class V, std::size_t vectors, int... i>
WEIR_INLINE void add_words(S& sums, const float*& x, std::size_t stride, const uvec (&words)[vectors],
                           const V& values, std::integer_sequence<int, i...>) {
  typename V::codes codes[vectors];
  WEIR_UNROLL_BY(4)
  for (std::size_t v = 0; v < vectors; ++v) codes[v] = values.look_up(words[v]);
  const auto one = [&](auto index) __attribute__((always_inline)) {
    vec w[vectors];
    WEIR_UNROLL_BY(4)
    for (std::size_t v = 0; v < vectors; ++v) w[v] = values.template of<decltype(index)::value>(codes[v]);
    sums.add(x, w);
    x += stride;
  };
  (one(std::integral_constant<int, i>{}), ...);
}

// One walk along k of a panel, for some rows and some of its vectors.
template <block_form f, std::size_t rows, std::size_t vectors>
struct block_walk {
  static constexpr std::size_t scale_bytes = scale_bytes_of(f), code_bytes = code_bytes_of(f);
  static constexpr std::size_t header_bytes = header_bytes_of(f);
  static constexpr std::size_t pieces = f.group / sum_k;
  // Cache lines to prefetch in half a piece.
  static constexpr std::size_t lines = ((scale_bytes + code_bytes + 63) / 64 + 2 * pieces - 1) / (2 * pieces);

  static constexpr float unit = f.code_bits == 4 ? code_values<f.powers>::unit : 1;  // of a group's sum

  const code_values<f.powers> values;
  const std::size_t column, stride;
  const float* x;
  const std::byte* at;
  coming_lines next;
  block_sums<f, rows, vectors> sums;
  const std::byte* header = nullptr;  // of the section

  WEIR_INLINE block_walk(const product_tile& t, std::size_t row, std::size_t first_column, const float* table)
      : values(table),
        column(first_column),
        stride(t.rows),
        x(reinterpret_cast<const float*>(t.x) + row),
        at(t.panel),
        next(t.next && row == 0 && column == 0 ? t.next : t.panel, panel_bytes(t.type, t.k)),
        sums{{}, t.to + row * t.to_stride + column, t.to_stride} {
    for (std::size_t r = 0; r < rows; ++r)
      for (std::size_t v = 0; v < vectors; ++v)
        store_as(sums.sum(r, v),
                 t.from ? load_f32(t.from + (row + r) * t.from_stride + column + v * lanes) : vec{});
  }

  // The scales and minima (or zeros) of the group whose scales are at `from`.
  WEIR_INLINE void read_scales(const std::byte* from, vec (&scales)[vectors], vec (&minima)[vectors]) const {
    WEIR_UNROLL_BY(4)
    for (std::size_t v = 0; v < vectors; ++v) {
      load_scales<f>(from, header, column + v * lanes, scales[v], minima[v]);
      if constexpr (unit != 1) {
        scales[v] *= broadcast(unit);
        if constexpr (f.zeros) minima[v] *= broadcast(1 / unit);
      }
    }
  }

  // Adds sum_k of k with codes of eight bits.
  WEIR_INLINE void add_piece_of_bytes() {
    WEIR_UNROLL_BY(16)
    for (std::size_t i = 0; i < sum_k; ++i) {
      vec w[vectors];
      WEIR_UNROLL_BY(4)
      for (std::size_t v = 0; v < vectors; ++v) {
        const std::byte* codes = at + i * panel_rows + column + v * lanes;
        w[v] = f.e4m3 ? load_e4m3(codes) : load_bytes(codes);
      }
      sums.add(x, w);
      x += stride;
      if (i < 2 * lines) next.ask();
    }
    at += sum_k * panel_rows;
  }

  // The same with codes of four bits.
  WEIR_INLINE void add_piece_of_words() {
    WEIR_UNROLL_BY(2)
    for (std::size_t half = 0; half < 2; ++half) {
      uvec words[vectors];
      WEIR_UNROLL_BY(4)
      for (std::size_t v = 0; v < vectors; ++v) words[v] = load_as<uvec>(at + 4 * (column + v * lanes));
      add_words(sums, x, stride, words, values, std::make_integer_sequence<int, 8>{});
      for (std::size_t i = 0; i < lines; ++i) next.ask();
      at += 4 * panel_rows;
    }
  }

  WEIR_INLINE void add_group() {
    const std::byte* scales_at = at;
    at += scale_bytes;
    const float* x_sums = x + sum_k * stride;
    sums.begin_group();
    WEIR_UNROLL_BY(2)
    for (std::size_t piece = 0; piece < pieces; ++piece) {
      if constexpr (f.code_bits == 8)
        add_piece_of_bytes();
      else
        add_piece_of_words();
      x += stride;  // past the sum
    }
    vec scales[vectors] = {}, minima[vectors] = {};
    read_scales(scales_at, scales, minima);
    sums.end_group(scales, minima, x_sums, (sum_k + 1) * stride);
  }
};

template <block_form f, std::size_t rows>
void multiply_block_rows(const product_tile& t, std::size_t first_row, const float* table) {
  constexpr std::size_t all = panel_rows / lanes;
  constexpr std::size_t vectors = lanes == 16 || rows > 2 ? 2 : 4;
  for (std::size_t v = 0; v < all; v += vectors) {
    block_walk<f, rows, vectors> walk(t, first_row, v * lanes, table);
    for (std::size_t k = 0; k < t.k; k += f.section) {
      walk.header = walk.at;
      walk.at += walk.header_bytes;
      for (std::size_t g = 0; g < f.section / f.group; ++g) walk.add_group();
    }
  }
}

// Rows go in groups of most_block_rows, 4, 2 and 1, so that there are four loops for each form.
template <block_form f>
void multiply_form(const product_tile& t) {
  const float* table = format_of(t.type).values.data();
  std::size_t r = 0;
  for (; r + most_block_rows <= t.rows; r += most_block_rows)
    multiply_block_rows<f, most_block_rows>(t, r, table);
  for (; r + 4 <= t.rows; r += 4) multiply_block_rows<f, 4>(t, r, table);
  for (; r + 2 <= t.rows; r += 2) multiply_block_rows<f, 2>(t, r, table);
  for (; r < t.rows; ++r) multiply_block_rows<f, 1>(t, r, table);
}

void multiply_blocks(const product_tile& t) {
  switch (t.type) {
    case dtype::q4_0:
    case dtype::iq4_nl:
      return multiply_form<form_of(dtype::q4_0)>(t);
    case dtype::q4_1:
      return multiply_form<form_of(dtype::q4_1)>(t);
    case dtype::q5_0:
    case dtype::q8_0:
      return multiply_form<form_of(dtype::q8_0)>(t);
    case dtype::q5_1:
      return multiply_form<form_of(dtype::q5_1)>(t);
    case dtype::q2_k:
      return multiply_form<form_of(dtype::q2_k)>(t);
    case dtype::q3_k:
      return multiply_form<form_of(dtype::q3_k)>(t);
    case dtype::q4_k:
      return multiply_form<form_of(dtype::q4_k)>(t);
    case dtype::q5_k:
      return multiply_form<form_of(dtype::q5_k)>(t);
    case dtype::q6_k:
      return multiply_form<form_of(dtype::q6_k)>(t);
    case dtype::iq4_xs:
      return multiply_form<form_of(dtype::iq4_xs)>(t);
    case dtype::mxfp4:
      return multiply_form<form_of(dtype::mxfp4)>(t);
    case dtype::fp8:
      return multiply_form<form_of(dtype::fp8)>(t);
    case dtype::int4:
    case dtype::int4_32:
      return multiply_form<form_of(dtype::int4)>(t);
    case dtype::int8:
      return multiply_form<form_of(dtype::int8)>(t);
    default:
      return;  // linear.h has the plain types
  }
}

static_assert(form_of(dtype::iq4_nl) == form_of(dtype::q4_0) && form_of(dtype::q5_0) == form_of(dtype::q8_0));
static_assert(form_of(dtype::int4_32) == form_of(dtype::int4));

void interleave_with_sums(const float* x, std::size_t rows, std::size_t k, std::byte* to) {
  auto* out = reinterpret_cast<float*>(to);
  for (std::size_t at = 0; at < k; at += sum_k, out += (sum_k + 1) * rows)
    for (std::size_t r = 0; r < rows; ++r) {
      float sum = 0;
      for (std::size_t i = 0; i < sum_k; ++i) {
        const float value = x[r * k + at + i];
        out[i * rows + r] = value;
        sum += value;
      }
      out[sum_k * rows + r] = sum;
    }
}

std::size_t bytes_with_sums(std::size_t rows, std::size_t k) {
  return k / sum_k * (sum_k + 1) * rows * sizeof(float);
}

constexpr product_path block_products{
    .most_rows = most_block_rows,
    .slice_k = 512,
    .prepared_bytes = bytes_with_sums,
    .prepare = interleave_with_sums,
    .multiply = multiply_blocks,
    .spin = spin,
};

}  // namespace
}  // namespace weir::kernels
