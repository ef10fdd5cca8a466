// Products of up to 8 rows on the Hopper path. The weights are read once, at the speed of the memory.
//
// A block computes tiles of 16 rows of the weights. The warps of a block divide K among them in pieces of 256
// columns. Each warp loads its pieces by bulk copies into a ring buffer of its own in shared memory; the
// warps synchronise only at the end of a tile, to add their sums. A warp keeps its part of x in registers.
// The loads of the first pieces begin before the kernel waits for the kernel that computes x.
#include "kernels/cuda/barrier.h"
#include "kernels/cuda/launch.h"
#include "kernels/cuda/mma.h"
#include "kernels/cuda/products.h"

namespace weir::kernels::cuda {
namespace {

constexpr int warps = 8, piece = 256, rows_of_tile = 16, stages = 3, pieces_of_warp = 2;
// Rows of a piece are stored 64 bytes further apart than they are long: eight lanes that read two rows then
// use different banks.
constexpr int row_stride = piece * 2 + 64, stage_bytes = rows_of_tile * row_stride;
constexpr int ring_bytes = warps * stages * stage_bytes;

// The warps store their sums of a tile in shared memory, in two buffers that tiles use alternately. A warp
// that is already at the next tile thus does not overwrite sums that are still read.
constexpr int tile = rows_of_tile * 8, room = warps * tile;
constexpr std::size_t shared_bytes = ring_bytes + 2 * room * sizeof(float);

// x is [m, k], w is [n, k]; `tiles` is the number of tiles of w.
struct stream_args {
  const element* w;
  const element* x;
  void* out;
  std::uint32_t n, k, m, tiles;
};

// The row of the weights that is row `r` of tile `tile`. For silu a tile has eight rows of gate and the same
// eight rows of up.
template <product_out kind>
__device__ std::uint32_t row_of(const stream_args& a, std::uint32_t tile, std::uint32_t r) {
  if constexpr (kind == product_out::silu) return (r < 8 ? 0 : a.n / 2 - 8) + tile * 8 + r;
  return tile * rows_of_tile + r;
}

// The sum over the warps of element `e` of a tile: value e % 4 of lane e / 4 in the accumulators of mma().
__device__ __forceinline__ float sum_of_warps(const float* part, int e) {
  float sum = 0;
#pragma unroll
  for (int w = 0; w < warps; ++w) sum += part[w * tile + e];
  return sum;
}

template <dtype type, product_out kind>
__device__ void finish_tile(const stream_args& a, const float* part, std::uint32_t index) {
  const int e = static_cast<int>(threadIdx.x), lane = e / 4, j = e % 4;
  const std::uint32_t column = static_cast<std::uint32_t>(lane % 4 * 2 + j % 2);
  if (e >= tile || column >= a.m) return;
  if constexpr (kind == product_out::silu) {
    if (j >= 2) return;
    const float gate = sum_of_warps(part, e), up = sum_of_warps(part, e + 2);
    static_cast<element*>(a.out)[std::size_t{column} * (a.n / 2) + index * 8 + lane / 4] =
        element_of<type>(gate / (1.0f + __expf(-gate)) * up);
  } else {
    const float sum = sum_of_warps(part, e);
    const std::size_t at = std::size_t{column} * a.n + index * rows_of_tile + lane / 4 + (j >= 2 ? 8 : 0);
    if constexpr (kind == product_out::element) static_cast<element*>(a.out)[at] = element_of<type>(sum);
    if constexpr (kind == product_out::f32) static_cast<float*>(a.out)[at] = sum;
  }
}

template <dtype type, product_out kind>
__global__ void __launch_bounds__(warps * 32, 1) stream_kernel(stream_args a) {
#ifdef __CUDA_ARCH_FEAT_SM90_ALL
  extern __shared__ __align__(128) unsigned char shared[];
  __shared__ __align__(8) std::uint64_t arrived[warps * stages];
  const int warp = static_cast<int>(threadIdx.x / 32), lane = static_cast<int>(threadIdx.x % 32);
  const std::uint32_t first = blockIdx.x, step = gridDim.x;
  const int pieces = static_cast<int>(a.k / piece);
  const int mine = pieces > warp + warps ? 2 : pieces > warp ? 1 : 0;
  const int tiles = first < a.tiles ? static_cast<int>((a.tiles - first + step - 1) / step) : 0;

  unsigned char* ring = shared + warp * stages * stage_bytes;
  auto* part = reinterpret_cast<float*>(shared + ring_bytes);
  const std::uint32_t barriers = shared_address(arrived + warp * stages);
  if (lane == 0) {
    for (int i = 0; i < stages; ++i) barrier_init(barriers + 8 * i, 1);
    barrier_inits_end();
  }
  __syncwarp();

  // Begins to load the next piece of this warp into the next stage of its ring.
  int asked = 0, ask_stage = 0, ask_piece = 0;
  const int total = tiles * mine;
  const auto ask = [&]() {
    if (asked == total) return;
    const std::uint32_t barrier = barriers + 8 * ask_stage;
    if (lane == 0) barrier_expect(barrier, rows_of_tile * piece * 2);
    __syncwarp();
    if (lane < rows_of_tile) {
      const std::uint32_t index = first + static_cast<std::uint32_t>(asked / mine) * step;
      const element* from = a.w + std::size_t{row_of<kind>(a, index, lane)} * a.k +
                            static_cast<std::uint32_t>(warp + ask_piece * warps) * piece;
      copy_bulk(shared_address(ring + ask_stage * stage_bytes + lane * row_stride), from, piece * 2, barrier);
    }
    ++asked;
    if (++ask_stage == stages) ask_stage = 0;
    if (++ask_piece == mine) ask_piece = 0;
  };
  for (int i = 0; i < stages; ++i) ask();
  let_next_start();
  wait_for_previous();

  // This lane holds row lane / 4 of x, and of each 32 columns the eight from lane % 4 * 8 on. The order of k
  // within an instruction is free, as long as x and the weights have the same order.
  uint4 x[pieces_of_warp][8];
  const std::uint32_t row = static_cast<std::uint32_t>(lane / 4);
#pragma unroll
  for (int c = 0; c < pieces_of_warp; ++c)
#pragma unroll
    for (int i = 0; i < 8; ++i) {
      x[c][i] = make_uint4(0, 0, 0, 0);
      if (row < a.m && c < mine)
        x[c][i] = __ldcg(reinterpret_cast<const uint4*>(a.x + std::size_t{row} * a.k +
                                                        static_cast<std::uint32_t>(warp + c * warps) * piece +
                                                        i * 32 + lane % 4 * 8));
    }

  int stage = 0;
  std::uint32_t phase = 0;
  for (int t = 0; t < tiles; ++t) {
    float sums[4] = {};
#pragma unroll
    for (int c = 0; c < pieces_of_warp; ++c) {
      if (c >= mine) continue;
      barrier_wait(barriers + 8 * stage, phase);
      const unsigned char* at = ring + stage * stage_bytes + lane / 4 * row_stride + lane % 4 * 16;
#pragma unroll
      for (int i = 0; i < 8; ++i) {
        const uint4 low = *reinterpret_cast<const uint4*>(at + i * 64);
        const uint4 high = *reinterpret_cast<const uint4*>(at + 8 * row_stride + i * 64);
        mma<type>(sums, low.x, high.x, low.y, high.y, x[c][i].x, x[c][i].y);
        mma<type>(sums, low.z, high.z, low.w, high.w, x[c][i].z, x[c][i].w);
      }
      __syncwarp();
      if (++stage == stages) {
        stage = 0;
        phase ^= 1;
      }
      ask();
    }
    float* sums_of_tile = part + t % 2 * room;
    *reinterpret_cast<float4*>(sums_of_tile + warp * tile + lane * 4) =
        make_float4(sums[0], sums[1], sums[2], sums[3]);
    __syncthreads();
    finish_tile<type, kind>(a, sums_of_tile, first + static_cast<std::uint32_t>(t) * step);
  }
#endif
}

template <dtype type, product_out kind>
void start(device& d, const product& p) {
  const stream_args a{static_cast<const element*>(p.w),
                      static_cast<const element*>(p.x),
                      p.out,
                      p.n,
                      p.k,
                      p.m,
                      p.n / rows_of_tile};
  const auto kernel = stream_kernel<type, kind>;
  allow_shared(d, kernel, shared_bytes);
  launch(d, kernel, dim3(static_cast<unsigned>(d.multiprocessors)), warps * 32, shared_bytes, a);
}

// Whether stream_kernel supports the product. It does not do add_f32: stream_wide.cu, which divides K among
// blocks, was 1.05 to 1.25 times as fast.
bool is_narrow(const device& d, const product& p) {
  return is_element(p.type) && d.path == code_path::hopper && p.kind != product_out::add_f32 && p.m <= 8 &&
         p.n % rows_of_tile == 0 && p.k % piece == 0 && p.k <= warps * pieces_of_warp * piece;
}

}  // namespace

bool can_stream(const device& d, const product& p) {
  return !d.deterministic && !p.out_stride &&
         (is_narrow(d, p) || can_stream_wide(d, p) || wgmma_pays(d, p) || can_stream_general(d, p));
}

void stream_product(device& d, const product& p) {
  if (d.path == code_path::general) return stream_general_product(d, p);
  if (wgmma_pays(d, p)) return wgmma_product(d, p);
  if (!is_narrow(d, p)) return stream_wide_product(d, p);
  with_constants(p, [&](auto type, auto kind) {
    if constexpr (kind != product_out::add_f32) start<type, kind>(d, p);  // is_narrow() excludes it
  });
}

}  // namespace weir::kernels::cuda
