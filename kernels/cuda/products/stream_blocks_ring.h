// stream_blocks_ring.h — how the kernels of stream_blocks_bulk.cu and stream_blocks_single.cu get their
// cells: the division of a product among blocks and warps, and each warp's ring of stages in shared memory.
//
// There is one block on each multiprocessor. It computes tiles of 16 rows of the weights, which are two rows
// of cells; for gated one is of gate and the other of up. The warps of a block divide K among them: each has
// a run of cells, which lie side by side in memory, and loads them by bulk copies. Where K is too long for
// one block, blocks share it and add to the output by atomics. This is done for residual additions (add_f32)
// alone.
#pragma once

#include "kernels/cuda/device/barrier.h"
#include "kernels/cuda/device/launch.h"
#include "kernels/cuda/device/mma.h"
#include "kernels/cuda/products/block_layout.h"
#include "kernels/cuda/products/bulk_division.h"
#include "kernels/cuda/products/put_output.h"
#include "kernels/cuda/products/stream_blocks.h"

namespace weir::kernels::cuda {

struct bulk_args {
  const unsigned char* w;
  const element* x;
  void* out;
  std::uint64_t across;  // bytes from one row of cells to the next
  // As in stream_blocks.cu. parts: how many blocks share K. tiles: of the product. stages: of a ring.
  std::uint32_t n, k, m, stride, cells, slabs, step, other, parts, tiles, stages;
  std::uint32_t early;  // stages that the kernel of one row asks for before it reads x
  product_out kind;
  activation gate;
  norm_before norm;
  // block_product::gathers: where the columns' elements are in a row of x, and how many such a row has;
  // otherwise null.
  const std::uint32_t* inputs;
  std::uint32_t width;
};

// The arguments for a product, and the number of blocks. stages: of a ring, at most.
bulk_args bulk_args_of(const device& d, const block_product& p, std::uint32_t stages);
dim3 bulk_grid(const device& d, const bulk_args& a);

#ifdef __CUDA_ARCH_FEAT_SM90_ALL
// The ring of the calling warp. All lanes call its functions.
template <dtype type>
class cell_ring {
 public:
  static constexpr std::uint32_t cell = cell_form(type).bytes;
  std::uint32_t first, run;  // the warp's run of cells in each row of cells
  std::uint32_t bytes;       // of the run in one row of cells

  // Begins to load the first `early` stages. `shared` begins with the rings of all warps; `arrived` is
  // [warps, most_stages] in shared memory. REQUIRES: early <= a.stages
  __device__ __forceinline__ cell_ring(const bulk_args& a, unsigned char* shared, std::uint64_t* arrived,
                                       std::uint32_t early)
      : a_(a), early_(early), first_tile_(blockIdx.x), step_(gridDim.x) {
    constexpr std::uint32_t warps = bulk_block::warps;
    // The warp's number by a shuffle: the compiler then knows that a warp's addresses are the same in all
    // lanes.
    const std::uint32_t warp = __shfl_sync(~0u, threadIdx.x / 32, 0);
    std::uint32_t begin = 0, count = a_.cells;
    if (a_.parts > 1) {  // a division takes some 30 instructions
      const std::uint32_t share = blockIdx.x % a_.parts;
      begin = a_.cells * share / a_.parts;
      count = a_.cells * (share + 1) / a_.parts - begin;
      first_tile_ /= a_.parts;
      step_ /= a_.parts;
    }
    first = begin + count * warp / warps;
    run = begin + count * (warp + 1) / warps - first;
    bytes = run * cell;
    ring_ = shared + warp * bulk_block::ring_bytes;
    barriers_ = shared_address(arrived + warp * bulk_block::most_stages);
    if (threadIdx.x % 32 == 0) {
      for (std::uint32_t i = 0; i < a_.stages; ++i) barrier_init(barriers_ + 8 * i, 1);
      barrier_inits_end();
    }
    __syncwarp();
    ask_tile_ = first_tile();
    for (std::uint32_t i = 0; i < early_; ++i) ask();
  }
  // Begins to load the other stages. The kernel calls it when it has its x: a warp that asks for more than
  // there is room to queue is held up, and so is what it reads behind that.
  __device__ __forceinline__ void ask_rest() {
    for (std::uint32_t i = early_; i < a_.stages; ++i) ask();
  }

  // The tiles of a block are first_tile(), first_tile() + step(), …
  __device__ __forceinline__ std::uint32_t first_tile() const { return first_tile_; }
  __device__ __forceinline__ std::uint32_t step() const { return step_; }

  // Waits for the run of the next tile, and returns its address: the run in the first row of cells; `bytes`
  // behind it that in the second. REQUIRES: run > 0
  __device__ __forceinline__ const unsigned char* wait() const {
    barrier_wait(barriers_ + 8 * stage_, phase_);
    return ring_ + stage_ * 2 * bytes;
  }
  // Leaves that stage, and begins to load the next tile's run that fits.
  __device__ __forceinline__ void leave() {
    __syncwarp();
    if (++stage_ == a_.stages) {
      stage_ = 0;
      phase_ ^= 1;
    }
    ask();
  }

 private:
  __device__ __forceinline__ void ask() {
    if (ask_tile_ >= a_.tiles || run == 0) return;
    const std::uint32_t barrier = barriers_ + 8 * ask_stage_, slab = ask_tile_ * a_.step,
                        to = shared_address(ring_) + ask_stage_ * 2 * bytes;
    const unsigned char* from = a_.w + first * std::uint64_t{cell};
    ask_tile_ += step();
    if (threadIdx.x % 32 == 0) {
      barrier_expect(barrier, 2 * bytes);
      copy_bulk(to, from + slab * a_.across, bytes, barrier);
      copy_bulk(to + bytes, from + min(slab + a_.other, a_.slabs - 1) * a_.across, bytes, barrier);
    }
    if (++ask_stage_ == a_.stages) ask_stage_ = 0;
  }

  const bulk_args& a_;
  const std::uint32_t early_;
  std::uint32_t first_tile_, step_;
  unsigned char* ring_;
  std::uint32_t barriers_, ask_tile_, ask_stage_ = 0, stage_ = 0, phase_ = 0;
};

// Writes output `row` of row `column` of x, whose sum is v; for gated v is of gate and `up` of up.
__device__ __forceinline__ void put_bulk(const bulk_args& a, std::uint32_t row, std::uint32_t column, float v,
                                         float up) {
  const std::size_t at = std::size_t{column} * a.stride + row;
  if (a.kind == product_out::gated) {
    static_cast<element*>(a.out)[at] = element_of<dtype::bf16>(gated(a.gate, v, up));
    return;
  }
  if (row >= a.n) return;
  auto* out = static_cast<float*>(a.out) + at;
  if (a.kind == product_out::element)
    static_cast<element*>(a.out)[at] = element_of<dtype::bf16>(v);
  else if (a.kind == product_out::f32)
    *out = v;
  else if (a.parts > 1)
    atomicAdd(out, v);
  else
    *out += v;
}
#endif

}  // namespace weir::kernels::cuda
