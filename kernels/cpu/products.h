// products.h — out = x · wᵀ + bias on all threads: which thread multiplies which panels of the weights, in
// which order.
//
// Each worker has a share of the panels, always the same one, so that it streams through one piece of memory.
// It prefetches what comes next: the next panel, and at the end of its share the beginning of its share of
// the matrix that followed this one the last time. A worker that has done its share takes chunks of the
// others' shares.
//
// A block is as many rows of x as the registers hold. A single block streams the weights once. Several blocks
// are multiplied chunk by chunk: a chunk of weights stays in the L2 cache for all blocks, a block's slice
// along k in the L1 cache. Where the weights have inputs of their own, rows of x are first put in the order
// of the columns.
//
// Thread safety: multiply() from one thread at a time, the one that uses the backend.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "kernels/cpu/scratch.h"
#include "kernels/cpu/simd.h"
#include "kernels/cpu/team.h"
#include "kernels/ops.h"

namespace weir::kernels {

class products {
 public:
  explicit products(unsigned workers) : shares_(workers), workers_(workers) {}

  // Computes `op` by `path` on all threads of `workers`, and returns when it is done.
  void multiply(const linear& op, const product_path& path, team& workers);

 private:
  struct job;
  struct alignas(64) share {
    std::atomic<std::uint32_t> next{0};  // the first chunk that no worker has taken
    std::uint32_t last = 0;              // the number of chunks
    const std::byte* then = nullptr;     // a guess at what the worker reads after this product; or null
  };
  struct worker {
    scratch<float> sums;       // [panels of a chunk, rows of a block, panel_rows]
    scratch<std::byte> panel;  // a panel of weights that come as rows, packed for this product
  };

  void prepare(const job& j, team& workers);
  void share_out(const job& j);
  void work(const job& j, unsigned worker);
  void multiply_chunk(const job& j, const share& from, std::uint32_t chunk, worker& at);
  static void finish(const job& j, std::size_t first, std::size_t last, std::size_t row, std::size_t rows,
                     const float* sums);
  void remember(const matrix& w);

  std::vector<share> shares_;
  std::vector<worker> workers_;
  scratch<std::byte> prepared_;  // the activations, block by block
  scratch<float> ordered_;       // [rows, k] the activations in the order of the columns, where w has inputs

  // Which matrix was multiplied after which, for prefetching only: results do not depend on it.
  static constexpr std::size_t remembered = 1024;
  struct succession {
    const void* before = nullptr;
    matrix after;
  };
  std::array<succession, remembered> successions_;
  const void* previous_ = nullptr;  // the weights of the last product
};

}  // namespace weir::kernels
