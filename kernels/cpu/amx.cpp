// Products of bf16 weights on the matrix unit. Each activation is the sum of two bf16 halves, which keeps 16
// bits of it. A tile of weights is multiplied first by the high halves of a block of activations, then by the
// low halves, and both products are added to one accumulator. Every row's sum over k therefore has one order.
//
// A tile multiplication is defined to the last bit (Intel's Software Developer's Manual, TDPBF16PS). Over 16
// pairs of k it is one chain of fused multiply-adds for the even k and one for the odd k, rounded to nearest,
// without subnormals; the sum of the two chains is added to the accumulator. A row that is alone is
// multiplied by vector instructions that do exactly this: where two threads share a core, loading tiles for
// one row is slower than memory.
//
// The layout of prepared activations is [k / 32][tile of 16 rows][high, low][row][32], with zeros beyond k.
// That of a row alone is [k / 32][high, low][even, odd][16], widened to f32.
#include "kernels/cpu/amx.h"

#include "kernels/cpu/packing.h"

#if defined(__x86_64__)

#include <immintrin.h>

namespace weir::kernels {
namespace {

constexpr std::size_t tile_rows = 16;
constexpr std::size_t row_bytes = 64;  // bytes of a tile's row

std::size_t smaller(std::size_t a, std::size_t b) { return a < b ? a : b; }

__mmask16 first_lanes(std::size_t n) { return static_cast<__mmask16>(n >= 16 ? 0xffffu : (1u << n) - 1); }

// The configuration of the tiles: 0 to 3 are sums [row tile][output tile], 4 and 5 activations, 6 and 7
// weights.
struct alignas(64) tile_config {
  std::uint8_t palette = 1, start_row = 0, reserved[14] = {};
  std::uint16_t row_bytes[16] = {};
  std::uint8_t rows[16] = {};
};

void begin(std::size_t rows) {
  if (rows == 1) return;
  const auto first = static_cast<std::uint8_t>(smaller(rows, tile_rows));
  const auto second = static_cast<std::uint8_t>(rows - first);
  tile_config config;
  const std::uint8_t of_tile[8] = {first, first, second, second, first, second ? second : first, 16, 16};
  for (int i = 0; i < 8; ++i) {
    config.rows[i] = of_tile[i];
    config.row_bytes[i] = of_tile[i] ? row_bytes : 0;
  }
  asm volatile("" ::"r"(&config) : "memory");  // g++ 12 does not see that the next line reads `config`
  _tile_loadconfig(&config);
}

void end() { _tile_release(); }  // harmless where there is nothing to release

std::size_t prepared_bytes(std::size_t rows, std::size_t k) {
  return (k + tile_k - 1) / tile_k * (rows == 1 ? 4 : 2 * rows) * row_bytes;
}

using half_vector = __m256i;  // 16 bf16

__m512 widen(half_vector x) {
  return _mm512_castsi512_ps(_mm512_maskz_slli_epi32(0xffff, _mm512_maskz_cvtepu16_epi32(0xffff, x), 16));
}

// The two halves of 16 activations. Their sum keeps 16 bits of each activation.
struct halves {
  half_vector high, low;
  explicit halves(__m512 x)
      : high(reinterpret_cast<half_vector>(_mm512_cvtneps_pbh(x))),
        low(reinterpret_cast<half_vector>(_mm512_cvtneps_pbh(_mm512_sub_ps(x, widen(high))))) {}
};

// Calls f(elements 0 to 15, elements 16 to 31) for each 32 elements of a row; beyond k they are zeros.
template <class F>
void for_tiles(const float* row, std::size_t k, const F& f) {
  for (std::size_t i = 0; i < k; i += tile_k) {
    const __mmask16 a = first_lanes(k - i), b = first_lanes(k - i > 16 ? k - i - 16 : 0);
    f(_mm512_maskz_loadu_ps(a, row + i), _mm512_maskz_loadu_ps(b, row + i + 16));
  }
}

void prepare_alone(const float* x, std::size_t k, std::byte* to) {
  const __m512i evens = _mm512_setr_epi32(0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30);
  const __m512i odds = _mm512_setr_epi32(1, 3, 5, 7, 9, 11, 13, 15, 17, 19, 21, 23, 25, 27, 29, 31);
  for_tiles(x, k, [&](__m512 a, __m512 b) {
    const halves even(_mm512_permutex2var_ps(a, evens, b)), odd(_mm512_permutex2var_ps(a, odds, b));
    for (const half_vector each : {even.high, odd.high, even.low, odd.low}) {
      _mm512_storeu_ps(to, widen(each));
      to += row_bytes;
    }
  });
}

void prepare(const float* x, std::size_t rows, std::size_t k, std::byte* to) {
  if (rows == 1) return prepare_alone(x, k, to);
  for (std::size_t first = 0; first < rows; first += tile_rows) {
    const std::size_t n = smaller(tile_rows, rows - first);
    for (std::size_t r = 0; r < n; ++r) {
      std::byte* high = to + first * 2 * row_bytes + r * row_bytes;
      for_tiles(x + (first + r) * k, k, [&](__m512 a, __m512 b) {
        std::byte* low = high + n * row_bytes;
        const halves left(a), right(b);
        _mm256_storeu_si256(reinterpret_cast<__m256i*>(high), left.high);
        _mm256_storeu_si256(reinterpret_cast<__m256i*>(high + 32), right.high);
        _mm256_storeu_si256(reinterpret_cast<__m256i*>(low), left.low);
        _mm256_storeu_si256(reinterpret_cast<__m256i*>(low + 32), right.low);
        high += rows * 2 * row_bytes;
      });
    }
  }
}

constexpr std::size_t streams = 8;  // as in simd/linear.h

template <bool two>
void multiply_tiles(const product_tile& t) {
  const std::size_t first = two ? tile_rows : t.rows, second = t.rows - first;
  if (!t.from) {
    _tile_zero(0);
    _tile_zero(1);
    if constexpr (two) {
      _tile_zero(2);
      _tile_zero(3);
    }
  } else {
    const std::size_t stride = t.from_stride * sizeof(float);
    const float* lower = t.from + tile_rows * t.from_stride;
    _tile_loadd(0, t.from, stride);
    _tile_loadd(1, t.from + 16, stride);
    if constexpr (two) {
      _tile_loadd(2, lower, stride);
      _tile_loadd(3, lower + 16, stride);
    }
  }
  const std::size_t steps = (t.k + tile_k - 1) / tile_k;
  const std::size_t part = steps * 2 * tile_bytes / streams;
  const std::byte *x = t.x, *w = t.panel, *next = t.next;
  for (std::size_t i = 0; i < steps; ++i, w += 2 * tile_bytes, x += 2 * t.rows * row_bytes) {
    // Prefetches some lines between the tiles. With `next` these are lines of what follows this panel, into
    // the L2 cache. Without it, as with several blocks, a block of more than 16 rows prefetches the weights
    // of two steps later into the L1 cache.
    const auto ask = [&](std::size_t part_of_8) __attribute__((always_inline)) {
      if constexpr (two) {
        if (!next) {
          for (std::size_t line = 0; line < 4; ++line)
            __builtin_prefetch(w + 4 * tile_bytes + (4 * part_of_8 + line) * 64, 0, 3);
          return;
        }
      }
      if (next)
        for (std::size_t line = 0; line < 4; ++line)
          __builtin_prefetch(next + part_of_8 * part + line * 64, 0, 2);
    };
    _tile_loadd(6, w, row_bytes);
    _tile_loadd(4, x, row_bytes);
    ask(0);
    _tile_dpbf16ps(0, 4, 6);
    _tile_loadd(7, w + tile_bytes, row_bytes);
    ask(1);
    _tile_dpbf16ps(1, 4, 7);
    if constexpr (two) {
      _tile_loadd(5, x + 2 * first * row_bytes, row_bytes);
      ask(2);
      _tile_dpbf16ps(2, 5, 6);
      ask(3);
      _tile_dpbf16ps(3, 5, 7);
      _tile_loadd(4, x + first * row_bytes, row_bytes);
      ask(4);
      _tile_dpbf16ps(0, 4, 6);
      ask(5);
      _tile_dpbf16ps(1, 4, 7);
      _tile_loadd(5, x + (2 * first + second) * row_bytes, row_bytes);
      ask(6);
      _tile_dpbf16ps(2, 5, 6);
      ask(7);
      _tile_dpbf16ps(3, 5, 7);
    } else {
      ask(2);
      ask(3);
      _tile_loadd(5, x + first * row_bytes, row_bytes);
      ask(4);
      ask(5);
      _tile_dpbf16ps(0, 5, 6);
      ask(6);
      ask(7);
      _tile_dpbf16ps(1, 5, 7);
    }
    if (next) next += 2 * tile_bytes / streams;
  }
  const std::size_t stride = t.to_stride * sizeof(float);
  _tile_stored(0, t.to, stride);
  _tile_stored(1, t.to + 16, stride);
  if constexpr (two) {
    float* lower = t.to + tile_rows * t.to_stride;
    _tile_stored(2, lower, stride);
    _tile_stored(3, lower + 16, stride);
  }
}

// Multiplies one row and gives the same bits as the tiles would.
__attribute__((noinline)) void multiply_vectors(const product_tile& t) {
  const __m512i upper = _mm512_set1_epi32(static_cast<int>(0xffff0000u));
  __m512 sums[2] = {_mm512_setzero_ps(), _mm512_setzero_ps()};
  if (t.from)
    for (std::size_t v = 0; v < 2; ++v) sums[v] = _mm512_loadu_ps(t.from + 16 * v);
  const std::size_t steps = (t.k + tile_k - 1) / tile_k;
  const std::size_t part = steps * 2 * tile_bytes / streams;
  const std::byte *w = t.panel, *next = t.next ? t.next : t.panel;
  const auto* x = reinterpret_cast<const float*>(t.x);
  for (std::size_t i = 0; i < steps; ++i, w += 2 * tile_bytes, x += 64) {
    __m512 chains[2][2][2] = {};  // [output tile][high, low][even, odd]
    for (std::size_t quarter = 0; quarter < 16; quarter += 4, next += 64) {
      const std::byte* stream = next;
#pragma GCC unroll 4
      for (std::size_t p = quarter; p < quarter + 4; ++p, stream += 2 * part) {
        __builtin_prefetch(stream, 0, 2);
        __builtin_prefetch(stream + part, 0, 2);
#pragma GCC unroll 2
        for (std::size_t v = 0; v < 2; ++v) {
          const __m512i pair = _mm512_loadu_si512(w + v * tile_bytes + p * row_bytes);
          const __m512 even = _mm512_castsi512_ps(_mm512_maskz_slli_epi32(0xffff, pair, 16));
          const __m512 odd = _mm512_castsi512_ps(_mm512_and_si512(pair, upper));
#pragma GCC unroll 2
          for (std::size_t half = 0; half < 2; ++half) {
            chains[v][half][0] = _mm512_fmadd_ps(_mm512_set1_ps(x[32 * half + p]), even, chains[v][half][0]);
            chains[v][half][1] =
                _mm512_fmadd_ps(_mm512_set1_ps(x[32 * half + 16 + p]), odd, chains[v][half][1]);
          }
        }
      }
    }
    for (std::size_t half = 0; half < 2; ++half)
      for (std::size_t v = 0; v < 2; ++v)
        sums[v] = _mm512_add_ps(sums[v], _mm512_add_ps(chains[v][half][0], chains[v][half][1]));
  }
  for (std::size_t v = 0; v < 2; ++v) _mm512_storeu_ps(t.to + 16 * v, sums[v]);
}

void multiply_alone(const product_tile& t) {
  constexpr unsigned no_subnormals = 0x8040;  // they count as 0 in operands and in results
  const unsigned before = _mm_getcsr();
  _mm_setcsr(before | no_subnormals);
  multiply_vectors(t);
  _mm_setcsr(before);
}

void multiply(const product_tile& t) {
  if (t.rows == 1) return multiply_alone(t);
  t.rows > tile_rows ? multiply_tiles<true>(t) : multiply_tiles<false>(t);
}

double spin(std::size_t rounds) {
  begin(2 * tile_rows);
  for (std::size_t i = 0; i < rounds; ++i) {
    _tile_dpbf16ps(0, 4, 6);
    _tile_dpbf16ps(1, 4, 7);
    _tile_dpbf16ps(2, 5, 6);
    _tile_dpbf16ps(3, 5, 7);
  }
  end();
  return 4.0 * 2 * tile_rows * 16 * tile_k * static_cast<double>(rounds);
}

constexpr product_path tiles{
    .most_rows = 2 * tile_rows,
    .slice_k = 2048,
    .prepared_bytes = prepared_bytes,
    .prepare = prepare,
    .multiply = multiply,
    .spin = spin,
    .begin = begin,
    .end = end,
};

}  // namespace

const product_path* amx_tiles() { return &tiles; }

}  // namespace weir::kernels

#endif
