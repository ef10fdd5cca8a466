// wgmma_division.h — how product_wgmma.cu divides a product among blocks. Plain C++.
#pragma once

#include <array>
#include <cstdint>

#include "kernels/cuda/products/choose_product.h"

namespace weir::kernels::cuda {

// The rows of the weights that a block may have, best measured; 0: no more.
constexpr std::array<std::uint32_t, 4> wgmma_widths(product_out kind) {
  if (kind == product_out::gated) return {256, 224, 192, 128};
  if (kind == product_out::add_f32) return {128, 96, 64};
  return {96, 48};
}

constexpr std::uint32_t wgmma_chunk = 64;  // columns of K of a stage

struct wgmma_division {
  std::uint32_t x_groups, blocks;  // of a plan
  std::uint32_t x_tiles;
  std::uint32_t w_rows, adders;
  std::uint32_t rounds;  // shares that a cluster computes, at most
  std::uint64_t time;    // of all rounds, in units of one column of one row of the weights that a block reads

  std::uint32_t x_rows() const { return x_groups * 64 * blocks; }  // of a cluster
};

// Chooses the division that takes the least time.
wgmma_division divide_wgmma(std::uint32_t multiprocessors, product_out kind, std::uint32_t n, std::uint32_t k,
                            std::uint32_t m);

}  // namespace weir::kernels::cuda
