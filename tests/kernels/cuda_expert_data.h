// cuda_expert_data.h — for tests of mixtures of experts on a device: matrices of experts on the host and
// packed on the device.
#pragma once

#include <memory>
#include <vector>

#include "tests/kernels/expert_data.h"

namespace weir::tests {

struct expert_set {
  random_experts rows;
  packed_experts packed;
  kernels::expert_matrices on_host = rows.view, there = packed.view;

  expert_set(rng& r, const std::shared_ptr<const kernels::backend>& b, kernels::dtype type,
             std::uint32_t count, std::uint32_t n, std::uint32_t k)
      : rows(r, type, count, n, k), packed(b, rows.view) {}

  // The numbers of row `row` of an expert's matrix.
  std::vector<float> row(std::uint32_t expert, std::uint32_t row) const {
    const kernels::matrix m = on_host.of(expert);
    std::vector<float> out(m.cols);
    const auto* at = static_cast<const std::byte*>(m.data) + row * kernels::bytes_of(m.type, m.cols);
    kernels::dequantise(m.type, at, m.cols, out.data());
    return out;
  }
};

// The experts of `slots` slots.
inline std::vector<std::int32_t> draw_experts(rng& r, std::uint32_t slots, std::uint32_t experts,
                                              histogram how) {
  return chosen_experts(r, how, slots, 1, experts);
}

}  // namespace weir::tests
