// dots.h — the product of a block of activation rows and one panel of quantised weights, by whole numbers:
// activations are rounded to signed codes of 8 bits (dot_activations.h), and codes are multiplied by codes.
//
// An output is summed group by group of the weights. The products of codes are summed exactly. This sum times
// (scale of the weights * scale of the activations) is added to the output. After it the minimum is added
// times (scale of the activations * sum of their codes). Each of these operations rounds once and none is
// fused, so that the bits are the same with every instruction set, block of rows, slice and number of
// threads.
#pragma once

#include "kernels/cpu/simd/dot_activations.h"

namespace weir::kernels {
namespace {

constexpr std::size_t dot_block = lanes == 16 ? 8 : 4;  // rows whose sums the registers hold
constexpr std::size_t most_dot_rows = 3 * dot_block;    // rows that read a panel's slice from the L1 cache

// ---- whole numbers in registers ----

WEIR_INLINE uvec broadcast_word(const std::uint32_t* from) { return uvec{} + *from; }
WEIR_INLINE vec as_floats(ivec v) {
#if defined(__AVX512F__)
  return _mm512_maskz_cvtepi32_ps(0xffff, reinterpret_cast<__m512i>(v));
#elif defined(__AVX2__)
  return _mm256_cvtepi32_ps(reinterpret_cast<__m256i>(v));
#else
  return __builtin_convertvector(v, vec);
#endif
}

// The products of bytes are summed in pairs, whose sums are numbers of 16 bits.
#if defined(__AVX512F__)
typedef __m512i whole;
WEIR_INLINE whole multiply_bytes(uvec w, uvec x) {  // unsigned w, signed x
  return _mm512_maddubs_epi16(reinterpret_cast<whole>(w), reinterpret_cast<whole>(x));
}
WEIR_INLINE uvec sizes_of(uvec w) {
  return reinterpret_cast<uvec>(_mm512_abs_epi8(reinterpret_cast<whole>(w)));
}
WEIR_INLINE whole multiply_signed(uvec w, uvec sizes, uvec x) {
  const whole xs = reinterpret_cast<whole>(x);
  const __mmask64 negative = _mm512_movepi8_mask(reinterpret_cast<whole>(w));
  return _mm512_maddubs_epi16(reinterpret_cast<whole>(sizes),
                              _mm512_mask_sub_epi8(xs, negative, whole{}, xs));
}
WEIR_INLINE whole add_pairs(whole a, whole b) { return _mm512_add_epi16(a, b); }
WEIR_INLINE ivec join_pairs(whole a) {
  return reinterpret_cast<ivec>(_mm512_madd_epi16(a, _mm512_set1_epi16(1)));
}
#elif defined(__AVX2__)
typedef __m256i whole;
WEIR_INLINE whole multiply_bytes(uvec w, uvec x) {  // unsigned w, signed x
  return _mm256_maddubs_epi16(reinterpret_cast<whole>(w), reinterpret_cast<whole>(x));
}
WEIR_INLINE uvec sizes_of(uvec w) {
  return reinterpret_cast<uvec>(_mm256_abs_epi8(reinterpret_cast<whole>(w)));
}
WEIR_INLINE whole multiply_signed(uvec w, uvec sizes, uvec x) {
  return _mm256_maddubs_epi16(reinterpret_cast<whole>(sizes),
                              _mm256_sign_epi8(reinterpret_cast<whole>(x), reinterpret_cast<whole>(w)));
}
WEIR_INLINE whole add_pairs(whole a, whole b) { return _mm256_add_epi16(a, b); }
WEIR_INLINE ivec join_pairs(whole a) {
  return reinterpret_cast<ivec>(_mm256_madd_epi16(a, _mm256_set1_epi16(1)));
}
#else
// Here the sums of pairs are already those of whole lanes.
typedef ivec whole;
// Byte `b` of each lane, with its sign.
WEIR_INLINE ivec signed_byte(uvec v, int b) { return reinterpret_cast<ivec>(v << (24 - 8 * b)) >> 24; }
WEIR_INLINE whole multiply_bytes(uvec w, uvec x) {  // unsigned w, signed x
  ivec sum{};
  for (int b = 0; b < 4; ++b) sum += reinterpret_cast<ivec>(w >> (8 * b) & 255) * signed_byte(x, b);
  return sum;
}
WEIR_INLINE uvec sizes_of(uvec w) { return w; }
WEIR_INLINE whole multiply_signed(uvec w, uvec, uvec x) {
  ivec sum{};
  for (int b = 0; b < 4; ++b) sum += signed_byte(w, b) * signed_byte(x, b);
  return sum;
}
WEIR_INLINE whole add_pairs(whole a, whole b) { return a + b; }
WEIR_INLINE ivec join_pairs(whole a) { return a; }
#endif

// Adds the products of two words of unsigned codes, or of one word of signed ones, to `sum`. rounded() keeps
// the sum in its register: the compiler would otherwise put off the additions until the end of the group, and
// the products into memory.
template <dot_kind kind>
WEIR_INLINE ivec add_unsigned(ivec sum, uvec w0, uvec w1, uvec x0, uvec x1) {
  const whole pairs = add_pairs(multiply_bytes(w0, x0), multiply_bytes(w1, x1));
  if constexpr (kind == dot_kind::nibbles)
    return rounded(reinterpret_cast<ivec>(add_pairs(reinterpret_cast<whole>(sum), pairs)));
  else
    return rounded(sum + join_pairs(pairs));
}
WEIR_INLINE ivec add_signed(ivec sum, uvec w, uvec sizes, uvec x) {
  return rounded(sum + join_pairs(multiply_signed(w, sizes, x)));
}

// The sum of a group in whole lanes.
template <dot_kind kind>
WEIR_INLINE ivec whole_sum(ivec sum) {
  if constexpr (kind == dot_kind::nibbles) return join_pairs(reinterpret_cast<whole>(sum));
  return sum;
}

// The values of a table as signed bytes, doubled where some of them are whole numbers and a half.
template <bool halves>
struct byte_values {
  static constexpr float unit = halves ? 0.5f : 1.0f;
  std::int8_t bytes[4 * lanes];

  explicit byte_values(const float* from) {
    for (std::size_t i = 0; i < 4 * lanes; ++i) bytes[i] = static_cast<std::int8_t>(from[i % 16] / unit);
  }
  WEIR_INLINE uvec look_up(uvec codes) const {
#if defined(__AVX512F__)
    return reinterpret_cast<uvec>(
        _mm512_shuffle_epi8(load_as<__m512i>(bytes), reinterpret_cast<__m512i>(codes)));
#elif defined(__AVX2__)
    return reinterpret_cast<uvec>(
        _mm256_shuffle_epi8(load_as<__m256i>(bytes), reinterpret_cast<__m256i>(codes)));
#else
    uvec out{};
    for (std::size_t l = 0; l < lanes; ++l)
      for (int b = 0; b < 4; ++b)
        out[l] |= static_cast<std::uint32_t>(static_cast<std::uint8_t>(bytes[codes[l] >> (8 * b) & 15]))
                  << (8 * b);
    return out;
#endif
  }
};

// ---- products ----

template <dot_form f, std::size_t rows, std::size_t vectors>
struct dot_walk {
  static constexpr block_form b = f.block;
  static constexpr std::size_t loads = code_bytes_of(b) / (4 * panel_rows);  // words of a group in a column
  static constexpr std::size_t lines = (scale_bytes_of(b) + code_bytes_of(b) + 63) / 64;  // of a group
  static constexpr std::uint32_t low_bits = 0x0f0f0f0f;

  const byte_values<b.powers> values;
  const std::size_t column, stride;
  const std::uint32_t* x;  // at the word that comes next
  const std::byte* at;
  coming_lines next;
  float* const to;
  const std::size_t to_stride;
  const std::byte* header = nullptr;  // of the section
  ivec sums[rows][vectors];           // of the group

  WEIR_INLINE dot_walk(const product_tile& t, std::size_t row, std::size_t first_column, const float* table)
      : values(table),
        column(first_column),
        stride(t.rows),
        x(reinterpret_cast<const std::uint32_t*>(t.x) + row),
        at(t.panel),
        next(t.next && row == 0 && column == 0 ? t.next : t.panel, panel_bytes(t.type, t.k)),
        to(t.to + row * t.to_stride + column),
        to_stride(t.to_stride) {
    for (std::size_t r = 0; r < rows; ++r)
      for (std::size_t v = 0; v < vectors; ++v)
        store_as(to + r * to_stride + v * lanes,
                 t.from ? load_f32(t.from + (row + r) * t.from_stride + column + v * lanes) : vec{});
  }

  WEIR_INLINE void add_pair(const uvec (&w0)[vectors], const uvec (&w1)[vectors]) {
    WEIR_UNROLL_BY(8)
    for (std::size_t r = 0; r < rows; ++r) {
      const uvec x0 = broadcast_word(x + r), x1 = broadcast_word(x + stride + r);
      WEIR_UNROLL_BY(4)
      for (std::size_t v = 0; v < vectors; ++v)
        sums[r][v] = add_unsigned<f.kind>(sums[r][v], w0[v], w1[v], x0, x1);
    }
    x += 2 * stride;
  }

  WEIR_INLINE void add_word(const uvec (&w)[vectors]) {
    uvec sizes[vectors];
    WEIR_UNROLL_BY(4)
    for (std::size_t v = 0; v < vectors; ++v) sizes[v] = sizes_of(w[v]);
    WEIR_UNROLL_BY(8)
    for (std::size_t r = 0; r < rows; ++r) {
      const uvec xs = broadcast_word(x + r);
      WEIR_UNROLL_BY(4)
      for (std::size_t v = 0; v < vectors; ++v) sums[r][v] = add_signed(sums[r][v], w[v], sizes[v], xs);
    }
    x += stride;
  }

  // The word of codes of vector `v` that comes next.
  WEIR_INLINE uvec word(std::size_t v, std::size_t ahead = 0) const {
    return load_as<uvec>(at + 4 * (ahead * panel_rows + column + v * lanes));
  }

  // Adds the words that one load of a column has, or two loads of `bytes`.
  WEIR_INLINE void add_words() {
    uvec w0[vectors], w1[vectors];
    if constexpr (f.kind == dot_kind::bytes) {
      WEIR_UNROLL_BY(4)
      for (std::size_t v = 0; v < vectors; ++v) w0[v] = word(v), w1[v] = word(v, 1);
      add_pair(w0, w1);
      at += 4 * panel_rows;
    } else if constexpr (f.kind == dot_kind::signed_bytes) {
      WEIR_UNROLL_BY(4)
      for (std::size_t v = 0; v < vectors; ++v) w0[v] = word(v);
      add_word(w0);
    } else if constexpr (f.kind == dot_kind::nibbles) {
      WEIR_UNROLL_BY(4)
      for (std::size_t v = 0; v < vectors; ++v) w0[v] = word(v) & low_bits, w1[v] = word(v) >> 4 & low_bits;
      add_pair(w0, w1);
    } else {
      WEIR_UNROLL_BY(4)
      for (std::size_t v = 0; v < vectors; ++v) w0[v] = values.look_up(word(v) & low_bits);
      add_word(w0);
      WEIR_UNROLL_BY(4)
      for (std::size_t v = 0; v < vectors; ++v) w1[v] = values.look_up(word(v) >> 4 & low_bits);
      add_word(w1);
    }
    at += 4 * panel_rows;
  }

  // Adds group `g` of the 32 inputs whose scale and sums are at `facts`.
  WEIR_INLINE void add_group(const float* facts, std::size_t g) {
    const std::byte* scales_at = at;
    at += scale_bytes_of(b);
    WEIR_UNROLL_BY(8)
    for (std::size_t r = 0; r < rows; ++r)
      WEIR_UNROLL_BY(4)
      for (std::size_t v = 0; v < vectors; ++v) sums[r][v] = ivec{};
    constexpr std::size_t step = f.kind == dot_kind::bytes ? 2 : 1;
    WEIR_UNROLL_BY(8)
    for (std::size_t i = 0; i < loads; i += step) {
      add_words();
      WEIR_UNROLL_BY(8)
      for (std::size_t line = lines * i / loads; line < lines * (i + step) / loads; ++line) next.ask();
    }
    end_group(scales_at, facts, g);
  }

  WEIR_INLINE void end_group(const std::byte* scales_at, const float* facts, std::size_t g) {
    vec scales[vectors] = {}, minima[vectors] = {};
    WEIR_UNROLL_BY(4)
    for (std::size_t v = 0; v < vectors; ++v) {
      load_scales<b>(scales_at, header, column + v * lanes, scales[v], minima[v]);
      if constexpr (f.kind == dot_kind::table && values.unit != 1) scales[v] *= broadcast(values.unit);
    }
    WEIR_UNROLL_BY(8)
    for (std::size_t r = 0; r < rows; ++r) {
      const float* sum16 = facts + stride + r;  // sums of whole numbers are exact
      const float sum = b.group == dot_group ? sum16[0] + sum16[stride] : sum16[g * stride];
      const vec scale = broadcast(facts[r]), code_sum = broadcast(sum), zeros = broadcast(f.zero * sum);
      WEIR_UNROLL_BY(4)
      for (std::size_t v = 0; v < vectors; ++v) {
        vec whole = as_floats(whole_sum<f.kind>(sums[r][v]));
        if constexpr (f.zero != 0) whole -= zeros;
        if constexpr (b.zeros) whole -= rounded(minima[v] * code_sum);
        float* out = to + r * to_stride + v * lanes;
        vec all = load_f32(out) + rounded(rounded(scales[v] * scale) * whole);
        if constexpr (b.minima) all += rounded(minima[v] * rounded(scale * code_sum));
        store_as(out, all);
      }
    }
  }
};

template <dot_form f, std::size_t rows>
void multiply_dot_rows(const product_tile& t, std::size_t first_row, const float* table) {
  constexpr std::size_t all = panel_rows / lanes;
  constexpr std::size_t vectors = lanes == 16 || rows > 1 ? 2 : 4;
  constexpr std::size_t groups = dot_group / f.block.group;
  for (std::size_t v = 0; v < all; v += vectors) {
    dot_walk<f, rows, vectors> walk(t, first_row, v * lanes, table);
    for (std::size_t k = 0; k < t.k; k += f.block.section) {
      walk.header = walk.at;
      walk.at += header_bytes_of(f.block);
      for (std::size_t i = 0; i < f.block.section; i += dot_group) {
        const auto* facts = reinterpret_cast<const float*>(walk.x + dot_words * walk.stride);
        WEIR_UNROLL_BY(2)
        for (std::size_t g = 0; g < groups; ++g) walk.add_group(facts, g);
        walk.x += 3 * walk.stride;
      }
    }
  }
}

template <dot_form f>
void multiply_dot_form(const product_tile& t) {
  const float* table = format_of(t.type).values.data();
  std::size_t r = 0;
  for (; r + dot_block <= t.rows; r += dot_block) multiply_dot_rows<f, dot_block>(t, r, table);
  if constexpr (dot_block > 4)
    for (; r + 4 <= t.rows; r += 4) multiply_dot_rows<f, 4>(t, r, table);
  for (; r + 2 <= t.rows; r += 2) multiply_dot_rows<f, 2>(t, r, table);
  for (; r < t.rows; ++r) multiply_dot_rows<f, 1>(t, r, table);
}

// Multiplies and adds whole numbers in registers alone; returns the operations done.
double spin_dots(std::size_t rounds) {
  constexpr std::size_t chains = 8;
  uvec w = uvec{} + 0x01010101u;
  const uvec x = w;
  ivec sums[chains] = {};
  for (std::size_t i = 0; i < rounds; ++i)
    WEIR_UNROLL_BY(8)
    for (std::size_t c = 0; c < chains; ++c) {
      sums[c] = reinterpret_cast<ivec>(add_pairs(reinterpret_cast<whole>(sums[c]), multiply_bytes(w, x)));
      sums[c] = rounded(sums[c]), w = rounded(w);  // keeps the compiler from leaving it out
    }
  for (ivec& sum : sums) sum = rounded(sum);
  return 2.0 * 4 * static_cast<double>(rounds * chains * lanes);
}

template <dtype type>
constexpr product_path dots_with{
    .most_rows = most_dot_rows,
    .slice_k = 512,
    .prepared_bytes = bytes_for_dots,
    .prepare = prepare_dots<dot_kind_of(type)>,
    .multiply = multiply_dot_form<dot_form_of(type)>,
    .spin = spin_dots,
    .codes = code_order::words,
};

const product_path* dots_of(dtype type) {
  switch (type) {
    case dtype::q4_0:
      return &dots_with<dtype::q4_0>;
    case dtype::q4_1:
      return &dots_with<dtype::q4_1>;
    case dtype::q5_0:
      return &dots_with<dtype::q5_0>;
    case dtype::q5_1:
      return &dots_with<dtype::q5_1>;
    case dtype::q8_0:
      return &dots_with<dtype::q8_0>;
    case dtype::q2_k:
      return &dots_with<dtype::q2_k>;
    case dtype::q3_k:
      return &dots_with<dtype::q3_k>;
    case dtype::q4_k:
      return &dots_with<dtype::q4_k>;
    case dtype::q5_k:
      return &dots_with<dtype::q5_k>;
    case dtype::q6_k:
      return &dots_with<dtype::q6_k>;
    case dtype::iq4_nl:
      return &dots_with<dtype::iq4_nl>;
    case dtype::iq4_xs:
      return &dots_with<dtype::iq4_xs>;
    case dtype::mxfp4:
      return &dots_with<dtype::mxfp4>;
    case dtype::int4:
    case dtype::int4_32:
      return &dots_with<dtype::int4>;
    case dtype::int8:
      return &dots_with<dtype::int8>;
    default:
      return nullptr;  // plain types, and fp8, whose codes are no whole numbers
  }
}

}  // namespace
}  // namespace weir::kernels
