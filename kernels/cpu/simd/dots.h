// dots.h — the product of a block of activation rows and one panel of quantised weights, by whole numbers:
// activations are rounded to signed codes of 8 bits, and codes are multiplied by codes.
//
// Each row is rounded by itself. 32 inputs share a scale, which is their largest magnitude / 127. A code is
// input * (127 / largest), rounded to the nearest, ties to even. Where the largest magnitude is below 2^-120,
// scale and codes are zero. Where an input is not finite, the scale is NaN, and so is every output of the
// row.
//
// An output is summed group by group of the weights. The products of codes are summed exactly. This sum times
// (scale of the weights * scale of the activations) is added to the output. After it the minimum is added
// times (scale of the activations * sum of their codes). Each of these operations rounds once and none is
// fused, so that the bits are the same with every instruction set, block of rows, slice and number of
// threads.
//
// The layout of prepared activations is [k / 32][words + 3][rows]: words of codes in the order in which the
// weights come, the scale, and the sums of the first and the last 16 codes, which are f32.
#pragma once

#include <cmath>
#include <limits>

#include "kernels/cpu/packing.h"
#include "kernels/cpu/simd/block_form.h"
#include "kernels/cpu/simd/vector.h"

namespace weir::kernels {
namespace {

constexpr std::size_t dot_group = 32;                   // activations that share a scale
constexpr std::size_t dot_block = lanes == 16 ? 8 : 4;  // rows whose sums the registers hold
constexpr std::size_t most_dot_rows = 3 * dot_block;    // rows that read a panel's slice from the L1 cache

// How codes of weights are multiplied. An unsigned byte times a signed one, two of them added, has to fit
// into 16 bits.
enum class dot_kind : std::uint8_t {
  nibbles,       // 4 bits, whose value is the code less the zero: unsigned bytes, summed in 16 bits
  bytes,         // at most 6 bits: unsigned bytes, four products summed in 16 bits
  wide_nibbles,  // 4 bits with a table of values: signed numbers of 16 bits
  wide_bytes,    // 8 bits: signed numbers of 16 bits
};

struct dot_form {
  block_form block;
  dot_kind kind;
  std::int8_t zero;  // the code that means 0, where it is not in the panel
};

constexpr dot_kind dot_kind_of(dtype type) {
  const block_format& f = format_of(type);
  if (f.code_bits == 8) return signed_in_words(f) ? dot_kind::wide_bytes : dot_kind::bytes;
  return f.values[15] - f.values[0] == 15 ? dot_kind::nibbles : dot_kind::wide_nibbles;
}
constexpr dot_form dot_form_of(dtype type) {
  const block_format& f = format_of(type);
  const dot_kind kind = dot_kind_of(type);
  const int zero = kind == dot_kind::nibbles ? -static_cast<int>(f.values[0])
                   : kind == dot_kind::bytes ? f.offset
                                             : 0;
  return {form_of(type), kind, static_cast<std::int8_t>(zero)};
}

constexpr bool is_wide(dot_kind k) { return k == dot_kind::wide_nibbles || k == dot_kind::wide_bytes; }
constexpr std::size_t words_of(dot_kind k) { return is_wide(k) ? dot_group / 2 : dot_group / 4; }

// The index of the activation that is element `e` (a byte, or a half) of word `i`. The words come in the
// order in which word_pairs() takes weights out of a panel.
constexpr std::size_t place_in_words(dot_kind k, std::size_t i, std::size_t e) {
  switch (k) {
    case dot_kind::nibbles:
      return i / 2 * 8 + 2 * e + i % 2;
    case dot_kind::bytes:
      return 4 * i + e;
    case dot_kind::wide_nibbles:
      return i / 4 * 8 + 2 * (i % 2 + 2 * e) + i % 4 / 2;
    case dot_kind::wide_bytes:
      break;
  }
  return i / 2 * 4 + i % 2 + 2 * e;
}

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

#if defined(__AVX512F__)
typedef __m512i whole;
WEIR_INLINE whole multiply_bytes(uvec w, uvec x) {  // unsigned w, signed x
  return _mm512_maddubs_epi16(reinterpret_cast<whole>(w), reinterpret_cast<whole>(x));
}
WEIR_INLINE whole multiply_halves(uvec w, uvec x) {
  return _mm512_madd_epi16(reinterpret_cast<whole>(w), reinterpret_cast<whole>(x));
}
WEIR_INLINE whole add_halves(whole a, whole b) { return _mm512_add_epi16(a, b); }
WEIR_INLINE whole join_halves(whole a) { return _mm512_madd_epi16(a, _mm512_set1_epi16(1)); }
WEIR_INLINE uvec even_bytes(uvec w) {
  return reinterpret_cast<uvec>(_mm512_srai_epi16(_mm512_slli_epi16(reinterpret_cast<whole>(w), 8), 8));
}
WEIR_INLINE uvec odd_bytes(uvec w) {
  return reinterpret_cast<uvec>(_mm512_srai_epi16(reinterpret_cast<whole>(w), 8));
}
#elif defined(__AVX2__)
typedef __m256i whole;
WEIR_INLINE whole multiply_bytes(uvec w, uvec x) {  // unsigned w, signed x
  return _mm256_maddubs_epi16(reinterpret_cast<whole>(w), reinterpret_cast<whole>(x));
}
WEIR_INLINE whole multiply_halves(uvec w, uvec x) {
  return _mm256_madd_epi16(reinterpret_cast<whole>(w), reinterpret_cast<whole>(x));
}
WEIR_INLINE whole add_halves(whole a, whole b) { return _mm256_add_epi16(a, b); }
WEIR_INLINE whole join_halves(whole a) { return _mm256_madd_epi16(a, _mm256_set1_epi16(1)); }
WEIR_INLINE uvec even_bytes(uvec w) {
  return reinterpret_cast<uvec>(_mm256_srai_epi16(_mm256_slli_epi16(reinterpret_cast<whole>(w), 8), 8));
}
WEIR_INLINE uvec odd_bytes(uvec w) {
  return reinterpret_cast<uvec>(_mm256_srai_epi16(reinterpret_cast<whole>(w), 8));
}
#else
// Sums of halves are kept as sums of whole lanes here, so that join_halves() has nothing to do.
typedef ivec whole;
WEIR_INLINE whole multiply_bytes(uvec w, uvec x) {
  ivec sum{};
  for (int b = 0; b < 4; ++b)
    sum += reinterpret_cast<ivec>(w >> (8 * b) & 255) * (reinterpret_cast<ivec>(x << (24 - 8 * b)) >> 24);
  return sum;
}
WEIR_INLINE whole multiply_halves(uvec w, uvec x) {
  const ivec low = (reinterpret_cast<ivec>(w << 16) >> 16) * (reinterpret_cast<ivec>(x << 16) >> 16);
  return low + (reinterpret_cast<ivec>(w) >> 16) * (reinterpret_cast<ivec>(x) >> 16);
}
WEIR_INLINE whole add_halves(whole a, whole b) { return a + b; }
WEIR_INLINE whole join_halves(whole a) { return a; }
WEIR_INLINE uvec even_bytes(uvec w) {
  const uvec low = reinterpret_cast<uvec>(reinterpret_cast<ivec>(w << 24) >> 24) & 0xffffu;
  const uvec high = reinterpret_cast<uvec>(reinterpret_cast<ivec>(w << 8) >> 24) << 16;
  return low | high;
}
WEIR_INLINE uvec odd_bytes(uvec w) { return even_bytes(w >> 8); }
#endif

// The products of two words of codes, added to `sum`.
template <dot_kind kind>
WEIR_INLINE ivec add_dots(ivec sum, uvec w0, uvec w1, uvec x0, uvec x1) {
  if constexpr (is_wide(kind)) {
    const ivec low = reinterpret_cast<ivec>(multiply_halves(w0, x0));
    return sum + (low + reinterpret_cast<ivec>(multiply_halves(w1, x1)));
  } else {
    const whole halves = add_halves(multiply_bytes(w0, x0), multiply_bytes(w1, x1));
    if constexpr (kind == dot_kind::nibbles)
      return reinterpret_cast<ivec>(add_halves(reinterpret_cast<whole>(sum), halves));
    else
      return sum + reinterpret_cast<ivec>(join_halves(halves));
  }
}

// The sum of a group in whole lanes.
template <dot_kind kind>
WEIR_INLINE ivec whole_sum(ivec sum) {
  if constexpr (kind == dot_kind::nibbles)
    return reinterpret_cast<ivec>(join_halves(reinterpret_cast<whole>(sum)));
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
  static constexpr std::size_t words = words_of(f.kind);
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
        sums[r][v] = add_dots<f.kind>(sums[r][v], w0[v], w1[v], x0, x1);
    }
    x += 2 * stride;
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
    } else if constexpr (f.kind == dot_kind::wide_bytes) {
      WEIR_UNROLL_BY(4)
      for (std::size_t v = 0; v < vectors; ++v) w0[v] = even_bytes(word(v)), w1[v] = odd_bytes(word(v));
      add_pair(w0, w1);
    } else {
      WEIR_UNROLL_BY(4)
      for (std::size_t v = 0; v < vectors; ++v) w0[v] = word(v) & low_bits, w1[v] = word(v) >> 4 & low_bits;
      if constexpr (f.kind == dot_kind::nibbles) {
        add_pair(w0, w1);
      } else {
        add_looked_up(w0);
        add_looked_up(w1);
      }
    }
    at += 4 * panel_rows;
  }

  WEIR_INLINE void add_looked_up(const uvec (&codes)[vectors]) {
    uvec w0[vectors], w1[vectors];
    WEIR_UNROLL_BY(4)
    for (std::size_t v = 0; v < vectors; ++v) {
      const uvec bytes = values.look_up(codes[v]);
      w0[v] = even_bytes(bytes);
      w1[v] = odd_bytes(bytes);
    }
    add_pair(w0, w1);
  }

  // Adds group `g` of the 32 inputs whose scale and sums are at `facts`.
  WEIR_INLINE void add_group(const float* facts, std::size_t g) {
    const std::byte* scales_at = at;
    at += scale_bytes_of(b);
    WEIR_UNROLL_BY(8)
    for (std::size_t r = 0; r < rows; ++r) WEIR_UNROLL_BY(4)
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
      if constexpr (f.kind == dot_kind::wide_nibbles && values.unit != 1) scales[v] *= broadcast(values.unit);
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
        const auto* facts = reinterpret_cast<const float*>(walk.x + walk.words * walk.stride);
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

// ---- activations ----

struct rounded_group {
  alignas(64) std::int32_t codes[dot_group];
  float scale;
};

// Rounds 32 inputs.
WEIR_INLINE void round_group(const float* x, rounded_group& to) {
  ivec most{};  // magnitudes of floats are in the order of their bits, and what is not finite is above all
  for (std::size_t i = 0; i < dot_group; i += lanes) {
    const ivec size = load_as<ivec>(x + i) & 0x7fffffff;
    most = size > most ? size : most;
  }
  std::int32_t bits = 0;
  for (std::size_t i = 0; i < lanes; ++i) bits = most[i] > bits ? most[i] : bits;
  const auto largest = std::bit_cast<float>(bits);
  const bool finite = bits < 0x7f800000, zero = largest < 0x1p-120f;
  to.scale = !finite ? std::numeric_limits<float>::quiet_NaN() : zero ? 0 : largest / 127;
  if (!finite || zero) {
    std::memset(to.codes, 0, sizeof to.codes);
    return;
  }
  // A number of at most 2^22 in size that is added to 1.5 * 2^23 is rounded to the lowest bits of the sum.
  constexpr float large = 0x1.8p23f;
  const vec inverse = broadcast(127 / largest);
  for (std::size_t i = 0; i < dot_group; i += lanes) {
    const vec sum = rounded(load_f32(x + i) * inverse) + broadcast(large);
    store_as(to.codes + i, reinterpret_cast<ivec>(sum) - std::bit_cast<std::int32_t>(large));
  }
}

// Puts codes in the order of the words.
template <dot_kind kind, class T, std::size_t... i>
WEIR_INLINE void order_codes(const std::int32_t* codes, std::uint32_t* words, std::index_sequence<i...>) {
  constexpr std::size_t elements = 4 / sizeof(T);
  typedef T piece __attribute__((vector_size(16)));
  constexpr std::size_t count = sizeof...(i), pieces = dot_group / count;
  for (std::size_t p = 0; p < pieces; ++p) {
    T narrow[count];
    for (std::size_t j = 0; j < count; ++j) narrow[j] = static_cast<T>(codes[p * count + j]);
    const piece v = load_as<piece>(narrow);
    store_as(words + 4 * p, __builtin_shufflevector(
                                v, v, static_cast<int>(place_in_words(kind, i / elements, i % elements))...));
  }
}

template <dot_kind kind>
void prepare_dots(const float* x, std::size_t rows, std::size_t k, std::byte* to) {
  constexpr std::size_t words = words_of(kind);
  using element = std::conditional_t<is_wide(kind), std::int16_t, std::int8_t>;
  auto* out = reinterpret_cast<std::uint32_t*>(to);
  rounded_group group;
  std::uint32_t ordered[words];
  for (std::size_t at = 0; at < k; at += dot_group, out += (words + 3) * rows)
    for (std::size_t r = 0; r < rows; ++r) {
      round_group(x + r * k + at, group);
      order_codes<kind, element>(group.codes, ordered, std::make_index_sequence<16 / sizeof(element)>{});
      for (std::size_t i = 0; i < words; ++i) out[i * rows + r] = ordered[i];
      float* facts = reinterpret_cast<float*>(out + words * rows) + r;
      std::int32_t first = 0, last = 0;
      for (std::size_t i = 0; i < 16; ++i) first += group.codes[i], last += group.codes[16 + i];
      facts[0] = group.scale;
      facts[rows] = static_cast<float>(first);
      facts[2 * rows] = static_cast<float>(last);
    }
}

template <dot_kind kind>
std::size_t bytes_for_dots(std::size_t rows, std::size_t k) {
  return k / dot_group * (words_of(kind) + 3) * rows * sizeof(std::uint32_t);
}

// Multiplies and adds whole numbers in registers alone; returns the operations done.
double spin_dots(std::size_t rounds) {
  constexpr std::size_t chains = 8;
  const uvec w = uvec{} + 0x01010101u, x = uvec{} + 0x01010101u;
  ivec sums[chains] = {};
  for (std::size_t i = 0; i < rounds; ++i) WEIR_UNROLL_BY(8)
  for (std::size_t c = 0; c < chains; ++c) {
    sums[c] = reinterpret_cast<ivec>(add_halves(reinterpret_cast<whole>(sums[c]), multiply_bytes(w, x)));
    sums[c] = rounded(sums[c]);  // keeps the compiler from leaving it out
  }
  for (ivec& sum : sums) sum = rounded(sum);
  return 2.0 * 4 * static_cast<double>(rounds * chains * lanes);
}

template <dtype type>
constexpr product_path dots_with{
    .most_rows = most_dot_rows,
    .slice_k = 512,
    .prepared_bytes = bytes_for_dots<dot_kind_of(type)>,
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
