// division.h — how products are divided into blocks of rows, slices along k and chunks of panels: what the
// product of one matrix (products.h) and those of experts (experts.h) have in common.
//
// Thread safety: pure functions.
#pragma once

#include <unistd.h>

#include <algorithm>
#include <cstddef>

#include "kernels/cpu/packing.h"
#include "kernels/cpu/simd.h"

namespace weir::kernels {

constexpr std::size_t most_chunk_panels = 64;           // bounds the sums of a chunk
constexpr std::size_t worth_sharing_bytes = 64u << 10;  // of weights, or of activations

constexpr std::size_t divide_up(std::size_t a, std::size_t b) noexcept { return (a + b - 1) / b; }

// The index of the first item of part `i`, where `count` items are divided evenly into `parts` parts.
constexpr std::size_t start_of(std::size_t i, std::size_t count, std::size_t parts) noexcept {
  return i * count / parts;
}

// The first row of block `i`, where `rows` rows are cut into blocks of at most path.most_rows. Blocks are
// even. Those of quantised weights are full, but for the last one: their loops exist for full groups of rows
// and for four, two and one, and a block of one row less than a full one would go over its weights three
// times.
inline std::size_t first_row_of(std::size_t i, std::size_t rows, const product_path& path,
                                dtype type) noexcept {
  if (!is_plain(type)) return std::min(rows, i * path.most_rows);
  return start_of(i, rows, divide_up(rows, path.most_rows));
}

// Bytes of a chunk of weights, which stays in the L2 cache beside the rows: half of the cache, but at least
// 256 KiB and at most 1 MiB.
inline std::size_t chunk_bytes() {
#ifdef _SC_LEVEL2_CACHE_SIZE
  static const long cache = ::sysconf(_SC_LEVEL2_CACHE_SIZE);
#else
  constexpr long cache = 0;  // not known
#endif
  return std::clamp<std::size_t>(static_cast<std::size_t>(std::max(cache, 0l)) / 2, 256u << 10, 1u << 20);
}

// The most panels of a chunk.
inline std::size_t panels_that_fit(std::size_t panel_size) {
  return std::clamp<std::size_t>(chunk_bytes() / panel_size, 1, most_chunk_panels);
}

// Elements of k of a slice. A single block streams through a panel in long slices.
inline std::size_t slice_of(const product_path& path, dtype type, std::size_t blocks) noexcept {
  constexpr std::size_t stream_bytes = 128u << 10;
  if (blocks > 1) return path.slice_k;
  const std::size_t whole = std::max<std::size_t>(tile_k, facts(type).block_weights);
  return std::max<std::size_t>(1, stream_bytes / panel_bytes(type, whole)) * whole;
}

}  // namespace weir::kernels
