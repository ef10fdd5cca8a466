// products.h — out = x · wᵀ + bias on all threads: who multiplies which panels of the weights, in which
// order.
//
// Each worker has a share of the panels, always the same one, so that it streams through one piece of memory
// and can ask for what comes next: the next panel, and at the end of its share the beginning of it in the
// matrix that followed this one the last time. A worker that has done its share helps the others.
//
// One block of rows (what the registers hold) streams the weights once. More blocks are multiplied chunk by
// chunk: the chunk of weights stays in the second cache for all blocks, a block's slice along k in the first.
//
// Thread safety: multiply() from the owner of the backend alone.
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

  void multiply(const linear& op, const product_path& path, team& workers);

 private:
  struct job;
  struct alignas(64) share {
    std::atomic<std::uint32_t> next{0};  // chunk that nobody has taken
    std::uint32_t last = 0;
    const std::byte* then = nullptr;  // what its worker will read after this product
  };
  struct worker {
    scratch<float> sums;       // [panels of a chunk, rows of a block, panel_rows]
    scratch<std::byte> panel;  // where weights that are not packed are laid out, panel by panel
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

  // What was multiplied after what: hints for fetching ahead, nothing else.
  static constexpr std::size_t remembered = 1024;
  struct succession {
    const void* before = nullptr;
    matrix after;
  };
  std::array<succession, remembered> successions_;
  const void* previous_ = nullptr;
};

}  // namespace weir::kernels
