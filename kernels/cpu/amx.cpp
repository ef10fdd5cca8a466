// Products of bf16 weights on the matrix unit. Each activation is the sum of two bf16 halves, and a tile of
// weights meets first the high halves of a block, then the low ones, in one accumulator: 16 bits of each
// activation count, and every row's sum has one order, k by k.
//
// Prepared activations: [k / 32][tile of 16 rows][high, low][row][32], zero beyond k.
#include "kernels/cpu/amx.h"

#include "kernels/cpu/packing.h"

#if defined(__x86_64__)

#include <immintrin.h>

namespace weir::kernels {
namespace {

constexpr std::size_t tile_rows = 16;
constexpr std::size_t row_bytes = 64;  // of a tile

std::size_t smaller(std::size_t a, std::size_t b) { return a < b ? a : b; }

__mmask16 first_lanes(std::size_t n) { return static_cast<__mmask16>(n >= 16 ? 0xffffu : (1u << n) - 1); }

// Tiles 0-3 are sums [row tile][output tile], 4 and 5 activations, 6 and 7 weights.
struct alignas(64) tile_config {
  std::uint8_t palette = 1, start_row = 0, reserved[14] = {};
  std::uint16_t row_bytes[16] = {};
  std::uint8_t rows[16] = {};
};

void begin(std::size_t rows) {
  const auto first = static_cast<std::uint8_t>(smaller(rows, tile_rows));
  const auto second = static_cast<std::uint8_t>(rows - first);
  tile_config config;
  const std::uint8_t of_tile[8] = {first, first, second, second, first, second ? second : first, 16, 16};
  for (int i = 0; i < 8; ++i) {
    config.rows[i] = of_tile[i];
    config.row_bytes[i] = of_tile[i] ? row_bytes : 0;
  }
  asm volatile("" ::"r"(&config) : "memory");  // g++ 12 forgets that the next line reads it
  _tile_loadconfig(&config);
}

void end() { _tile_release(); }

std::size_t prepared_bytes(std::size_t rows, std::size_t k) {
  return (k + tile_k - 1) / tile_k * 2 * rows * row_bytes;
}

// 32 activations as halves whose sum has 16 bits of each.
void split(__m512 a, __m512 b, std::byte* high, std::byte* low) {
  const auto halves = [](__m512 even, __m512 odd) { return _mm512_cvtne2ps_pbh(odd, even); };
  const auto rest = [](__m512 x) {
    const __m512i top = _mm512_maskz_cvtepu16_epi32(0xffff, reinterpret_cast<__m256i>(_mm512_cvtneps_pbh(x)));
    return _mm512_sub_ps(x, _mm512_castsi512_ps(_mm512_maskz_slli_epi32(0xffff, top, 16)));
  };
  _mm512_storeu_si512(high, reinterpret_cast<__m512i>(halves(a, b)));
  _mm512_storeu_si512(low, reinterpret_cast<__m512i>(halves(rest(a), rest(b))));
}

void prepare(const float* x, std::size_t rows, std::size_t k, std::byte* to) {
  for (std::size_t first = 0; first < rows; first += tile_rows) {
    const std::size_t n = smaller(tile_rows, rows - first);
    for (std::size_t r = 0; r < n; ++r) {
      std::byte* out = to + first * 2 * row_bytes + r * row_bytes;
      const float* row = x + (first + r) * k;
      for (std::size_t i = 0; i < k; i += tile_k, out += rows * 2 * row_bytes) {
        const __mmask16 a = first_lanes(k - i), b = first_lanes(k - i > 16 ? k - i - 16 : 0);
        split(_mm512_maskz_loadu_ps(a, row + i), _mm512_maskz_loadu_ps(b, row + i + 16), out,
              out + n * row_bytes);
      }
    }
  }
}

constexpr std::size_t streams = 8;  // see simd/linear.h

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
    if (next) {
      for (std::size_t s = 0; s < streams; ++s)
        for (std::size_t line = 0; line < 2 * tile_bytes / streams; line += 64)
          __builtin_prefetch(next + s * part + line, 0, 2);
      next += 2 * tile_bytes / streams;
    }
    // What is multiplied two steps later is brought into the nearest cache meanwhile, some lines at a time.
    const auto soon = [at = w + 4 * tile_bytes](std::size_t eighth) {
      if constexpr (two)
        for (std::size_t line = 0; line < 2 * tile_bytes / 8; line += 64)
          __builtin_prefetch(at + eighth * (2 * tile_bytes / 8) + line, 0, 3);
    };
    _tile_loadd(6, w, row_bytes);
    _tile_loadd(4, x, row_bytes);
    soon(0);
    _tile_dpbf16ps(0, 4, 6);
    _tile_loadd(7, w + tile_bytes, row_bytes);
    soon(1);
    _tile_dpbf16ps(1, 4, 7);
    if constexpr (two) {
      _tile_loadd(5, x + 2 * first * row_bytes, row_bytes);
      soon(2);
      _tile_dpbf16ps(2, 5, 6);
      soon(3);
      _tile_dpbf16ps(3, 5, 7);
      _tile_loadd(4, x + first * row_bytes, row_bytes);
      soon(4);
      _tile_dpbf16ps(0, 4, 6);
      soon(5);
      _tile_dpbf16ps(1, 4, 7);
      _tile_loadd(5, x + (2 * first + second) * row_bytes, row_bytes);
      soon(6);
      _tile_dpbf16ps(2, 5, 6);
      soon(7);
      _tile_dpbf16ps(3, 5, 7);
    } else {
      _tile_loadd(5, x + first * row_bytes, row_bytes);
      _tile_dpbf16ps(0, 5, 6);
      _tile_dpbf16ps(1, 5, 7);
    }
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

void multiply(const product_tile& t) {
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
    .slice_k = 256,
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
