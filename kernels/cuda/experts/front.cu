// The beginning of a mixture of experts for few rows, in one kernel in place of three: what is to be added to
// the row, the norm, the router's products and the choice.
//
// The blocks of a cluster have one row. Each block makes the row and its norm anew, which costs reads of the
// L2 cache alone, and products of its share of the experts, a warp for each. The warp reads its expert's row
// of the router before the kernel in front has ended. Products go to block 0 of the cluster, which chooses,
// and stores the row and its norm: by then no block reads the row any more.
//
// Each product is summed in the order of route_rows().
#include "kernels/cuda/device/barrier.h"
#include "kernels/cuda/device/launch.h"
#include "kernels/cuda/device/mma.h"
#include "kernels/cuda/experts/choose.h"
#include "kernels/cuda/experts/route.h"
#include "kernels/cuda/stream_row.h"

namespace weir::kernels::cuda {
namespace {

constexpr std::uint32_t blocks = 8, warps = 16, threads = warps * 32;
// The quads of a router's row that a lane reads before the kernel in front has ended.
[[maybe_unused]] constexpr int early_quads = 16;
constexpr std::uint32_t most_rows = 8;

struct front_args {
  float* x;
  pending_sum before;
  norm_args norm;
  element* out;
  const float *router, *bias;
  std::uint32_t width, outputs;  // outputs: the experts, and the gate of a shared one
  choice_args choice;
};

#ifdef __CUDA_ARCH_FEAT_SM90_ALL

// Stores a number to the same place of the shared memory of block 0 of the cluster.
__device__ __forceinline__ void store_to_first(float* place, float v) {
  std::uint32_t there;
  asm("mapa.shared::cluster.u32 %0, %1, 0;" : "=r"(there) : "r"(shared_address(place)));
  asm volatile("st.shared::cluster.f32 [%0], %1;" ::"r"(there), "f"(v) : "memory");
}

template <dtype type>
__device__ __forceinline__ void add_product(float& sum, const float4& w, const uint2& x) {
  const float2 low = floats_of<type>(x.x), high = floats_of<type>(x.y);
  sum = __fmaf_rn(low.x, w.x, sum);
  sum = __fmaf_rn(low.y, w.y, sum);
  sum = __fmaf_rn(high.x, w.z, sum);
  sum = __fmaf_rn(high.y, w.w, sum);
}

#endif

template <dtype type, int quads>
__global__ void __launch_bounds__(threads) front_kernel(const front_args a) {
#ifdef __CUDA_ARCH_FEAT_SM90_ALL
  // [width / 4] quads of elements; [outputs] products; [2, experts] room of the choice
  extern __shared__ __align__(16) uint2 normed[];
  __shared__ float room[32];
  let_next_start();
  cluster_arrive();
  const std::uint32_t block = blockIdx.x, warp = threadIdx.x / 32, lane = threadIdx.x % 32, all = a.width / 4;
  float* const products = reinterpret_cast<float*>(normed + all);
  const std::uint32_t first = block * warps + warp;
  const auto* w =
      reinterpret_cast<const float4*>(a.router + std::size_t{min(first, a.outputs - 1)} * a.width);
  float4 early[early_quads];
#pragma unroll
  for (int i = 0; i < early_quads; ++i) {
    const std::uint32_t at = lane + static_cast<std::uint32_t>(i) * 32;
    early[i] = at < all ? __ldg(w + at) : make_float4(0, 0, 0, 0);
  }
  const norm_weights<quads> behind(a.before.behind.by.weight, a.width), front(a.norm.by.weight, a.width);
  wait_for_previous();

  const std::size_t row = blockIdx.y;
  float4 stream[quads], n[quads];
  sum_row(stream, a.x, a.before, behind, row, a.width, room);
  each_quad<quads>(a.width, [&](int j, std::uint32_t) { n[j] = stream[j]; });
  if (a.norm.by.weight) normalise(n, a.norm, front, a.width, room);
  each_quad<quads>(a.width, [&](int j, std::uint32_t i) {
    normed[i] = make_uint2(pair_of<type>(n[j].x, n[j].y), pair_of<type>(n[j].z, n[j].w));
  });
  __syncthreads();
  cluster_wait();  // all blocks run: block 0 has its shared memory

  for (std::uint32_t e = first; e < a.outputs; e += blocks * warps) {
    float sum = 0;
    const auto* from = reinterpret_cast<const float4*>(a.router + std::size_t{e} * a.width);
#pragma unroll
    for (int i = 0; i < early_quads; ++i) {
      const std::uint32_t at = lane + static_cast<std::uint32_t>(i) * 32;
      if (at < all) add_product<type>(sum, e == first ? early[i] : __ldg(from + at), normed[at]);
    }
    for (std::uint32_t at = lane + early_quads * 32; at < all; at += 32)
      add_product<type>(sum, __ldg(from + at), normed[at]);
    sum = warp_sum(sum);
    if (lane == 0)
      store_to_first(products + e, sum + (a.bias && e < a.choice.how.experts ? a.bias[e] : 0.0f));
  }
  cluster_barrier();
  if (block != 0) return;
  store_row(stream, a.x, a.before, row, a.width);
  auto* to = reinterpret_cast<uint2*>(a.out + row * a.width);
  each_quad<quads>(a.width, [&](int, std::uint32_t i) { to[i] = normed[i]; });
  if (warp == 0)
    choose_row(a.choice, row, lane, products + a.outputs,
               [products](std::uint32_t e) { return products[e]; });
#endif
}

std::size_t shared_of(const front_args& a) {
  return std::size_t{a.width} * sizeof(element) +
         (std::size_t{a.outputs} + 2 * std::size_t{a.choice.how.experts}) * sizeof(float);
}

}  // namespace

bool can_begin_mixture(const device& d, const route& op) {
  if (d.deterministic) return false;
  constexpr std::uint32_t widest = threads * 4 * 4;
  return d.path == code_path::hopper && op.rows <= most_rows && op.width % 8 == 0 && op.width <= widest &&
         std::size_t{op.width} * sizeof(element) + (3 * std::size_t{op.how.experts} + 1) * sizeof(float) <=
             48u << 10;
}

void begin_mixture(device& d, dtype type, float* x, const pending_sum& before, const norm_args& n,
                   const route& op, const std::int32_t* pages_at, element* normed) {
  const front_args a{x,
                     before,
                     n,
                     normed,
                     op.router,
                     op.bias,
                     op.width,
                     op.how.experts + (op.shared ? 1 : 0),
                     {op.choice_bias, pages_at, op.ids, op.weights, op.shared, op.how}};
  const auto run = [&](auto quads) {
    const auto kernel =
        type == dtype::f16 ? front_kernel<dtype::f16, quads> : front_kernel<dtype::bf16, quads>;
    launch_clusters(d, kernel, dim3(blocks, op.rows), dim3(blocks), threads, shared_of(a), a);
  };
  if (op.width <= threads * 4) return run(std::integral_constant<int, 1>{});
  if (op.width <= threads * 8) return run(std::integral_constant<int, 2>{});
  run(std::integral_constant<int, 4>{});
}

}  // namespace weir::kernels::cuda
