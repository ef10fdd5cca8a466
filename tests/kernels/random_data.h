// random_data.h — inputs and poisoned outputs for operations, of random shapes and values.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <random>
#include <vector>

#include "kernels/blocks.h"
#include "kernels/tensor.h"

namespace weir::tests {

using rng = std::mt19937;

inline std::uint32_t pick(rng& r, std::uint32_t low, std::uint32_t high) {
  return std::uniform_int_distribution<std::uint32_t>(low, high)(r);
}

inline std::vector<float> random_floats(rng& r, std::size_t count, float spread = 1) {
  std::normal_distribution<float> normal(0, spread);
  std::vector<float> v(count);
  for (float& x : v) x = normal(r);
  return v;
}

inline std::vector<float> poison(std::size_t count) {
  return std::vector<float>(count, std::numeric_limits<float>::quiet_NaN());
}

// Overwrites some blocks of a matrix: all bytes become 0, or all become 0x3b. Where blocks share a scale, all
// blocks of the same 128 columns are overwritten together.
inline void make_some_extreme(rng& r, kernels::dtype type, std::uint32_t rows, std::uint32_t cols,
                              std::byte* memory) {
  const std::size_t block = kernels::facts(type).block_bytes, weights = kernels::facts(type).block_weights,
                    across = cols / weights, together = kernels::format_of(type).shared ? 128 / weights : 1;
  for (std::size_t row = 0; row < rows; ++row)
    for (std::size_t at = 0; at < across; at += together)
      if (pick(r, 0, 9) == 0)
        std::memset(memory + (row * across + at) * block, pick(r, 0, 1) ? 0 : 0x3b,
                    std::min(together, across - at) * block);
}

// A weight matrix of any type, with its memory.
struct random_matrix {
  kernels::matrix view;
  std::vector<std::uint32_t> memory;

  random_matrix(rng& r, kernels::dtype type, std::uint32_t rows, std::uint32_t cols) {
    const std::size_t count = std::size_t{rows} * cols;
    memory.resize(count);
    std::normal_distribution<float> normal(0, 1);
    for (std::size_t i = 0; i < count; ++i) {
      const float x = normal(r);
      auto* halves = reinterpret_cast<std::uint16_t*>(memory.data());
      if (type == kernels::dtype::f32) memory[i] = std::bit_cast<std::uint32_t>(x);
      if (type == kernels::dtype::bf16) halves[i] = kernels::to_bf16(x);
      if (type == kernels::dtype::f16) halves[i] = random_f16(r);
    }
    view = {memory.data(), type, rows, cols};
  }

  // Any finite pattern up to 4 in size, subnormals too.
  static std::uint16_t random_f16(rng& r) {
    return static_cast<std::uint16_t>((pick(r, 0, 1) << 15) | pick(r, 0, 0x43ff));
  }
};

// The largest difference, in units of the largest expected value; infinite where something is NaN.
inline double worst_difference(const std::vector<float>& wanted, const std::vector<float>& got) {
  double largest = 1e-30, worst = 0;
  for (const float x : wanted) largest = std::max(largest, std::abs(double{x}));
  for (std::size_t i = 0; i < wanted.size(); ++i) {
    const double difference = std::abs(double{wanted[i]} - got[i]);
    if (!(difference <= largest * 1e6)) return std::numeric_limits<double>::infinity();
    worst = std::max(worst, difference);
  }
  return worst / largest;
}

}  // namespace weir::tests
