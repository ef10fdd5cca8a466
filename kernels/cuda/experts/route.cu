#include "kernels/cuda/experts/route.h"

#include <algorithm>

#include "kernels/cuda/device/launch.h"
#include "kernels/cuda/device/warp.h"
#include "kernels/cuda/element.h"
#include "kernels/cuda/experts/choose.h"

namespace weir::kernels::cuda {
namespace {

constexpr int product_warps = 4, choice_warps = 4;

// Numbers i to i + 3 of a row. REQUIRES: i is a multiple of 4, and so is the width
template <dtype type>
__device__ __forceinline__ float4 four_of(const void* x, std::size_t i) {
  if constexpr (type == dtype::f32) {
    return __ldcg(reinterpret_cast<const float4*>(static_cast<const float*>(x) + i));
  } else {
    const uint2 v = __ldcg(reinterpret_cast<const uint2*>(static_cast<const element*>(x) + i));
    const float2 low = floats_of<type>(v.x), high = floats_of<type>(v.y);
    return make_float4(low.x, low.y, high.x, high.y);
  }
}

template <dtype type>
__device__ __forceinline__ float one_of(const void* x, std::size_t i) {
  if constexpr (type == dtype::f32)
    return static_cast<const float*>(x)[i];
  else
    return floats_of<type>(static_cast<const element*>(x)[i].bits).x;
}

// A warp makes the products of `outs` outputs and `ins` rows. Those behind the last one repeat it, and are
// not written.
template <dtype type, int outs, int ins>
__global__ void __launch_bounds__(product_warps * 32) product_kernel(const router_product a) {
  let_next_start();
  wait_for_previous();
  const std::uint32_t lane = threadIdx.x % 32, first = blockIdx.y * ins,
                      out = (blockIdx.x * product_warps + threadIdx.x / 32) * outs;
  if (out >= a.outputs) return;
  std::size_t x[ins];
  const float* w[outs];
#pragma unroll
  for (int i = 0; i < ins; ++i) x[i] = std::size_t{min(first + i, a.rows - 1)} * a.width;
#pragma unroll
  for (int o = 0; o < outs; ++o) w[o] = a.router + std::size_t{min(out + o, a.outputs - 1)} * a.width;
  float sums[outs][ins] = {};
  if (a.width % 4 == 0) {
    for (std::uint32_t at = lane * 4; at < a.width; at += 128) {
      float4 by[outs];
#pragma unroll
      for (int o = 0; o < outs; ++o) by[o] = *reinterpret_cast<const float4*>(w[o] + at);
#pragma unroll
      for (int i = 0; i < ins; ++i) {
        const float4 v = four_of<type>(a.x, x[i] + at);
#pragma unroll
        for (int o = 0; o < outs; ++o) {
          float& sum = sums[o][i];
          sum = __fmaf_rn(v.x, by[o].x, sum);
          sum = __fmaf_rn(v.y, by[o].y, sum);
          sum = __fmaf_rn(v.z, by[o].z, sum);
          sum = __fmaf_rn(v.w, by[o].w, sum);
        }
      }
    }
  } else {
    for (std::uint32_t at = lane; at < a.width; at += 32)
#pragma unroll
      for (int i = 0; i < ins; ++i) {
        const float v = one_of<type>(a.x, x[i] + at);
#pragma unroll
        for (int o = 0; o < outs; ++o) sums[o][i] = __fmaf_rn(v, w[o][at], sums[o][i]);
      }
  }
#pragma unroll
  for (int o = 0; o < outs; ++o)
#pragma unroll
    for (int i = 0; i < ins; ++i) {
      const float sum = warp_sum(sums[o][i]);
      const std::uint32_t n = out + o, row = first + i;
      if (lane != 0 || n >= a.outputs || row >= a.rows) continue;
      a.products[std::size_t{row} * a.outputs + n] = sum + (a.bias && n < a.experts ? a.bias[n] : 0.0f);
    }
}

// One warp for each row.
__global__ void __launch_bounds__(choice_warps * 32)
    choice_kernel(const router_product of, const choice_args a) {
  extern __shared__ float room[];  // [choice_warps, 2, experts]
  let_next_start();
  wait_for_previous();
  const std::uint32_t warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  const std::size_t row = std::size_t{blockIdx.x} * choice_warps + warp;
  if (row >= of.rows) return;
  const float* products = of.products + row * of.outputs;
  choose_row(a, row, lane, room + std::size_t{warp} * 2 * a.how.experts,
             [products](std::uint32_t e) { return __ldcg(products + e); });
}
static_assert(choice_warps * 2 * most_experts * sizeof(float) <= 48u << 10);

// Many rows are multiplied four experts by four rows at a time; few rows are spread over more warps.
constexpr std::uint32_t few_rows = 64;

template <dtype type>
void start(device& d, const router_product& a) {
  const auto run = [&](auto kernel, std::uint32_t outs, std::uint32_t ins) {
    const std::uint32_t each = outs * product_warps;
    launch(d, kernel, dim3((a.outputs + each - 1) / each, (a.rows + ins - 1) / ins), product_warps * 32, 0,
           a);
  };
  if (a.rows <= few_rows) return run(product_kernel<type, 1, 4>, 1, 4);
  if constexpr (type != dtype::f32)
    if (can_route_tiles(d, a)) return route_tiles(d, type, a);
  run(product_kernel<type, 4, 4>, 4, 4);
}

}  // namespace

void route_rows(device& d, const route& op, const void* x, dtype type, const std::int32_t* pages_at) {
  const std::uint32_t outputs = op.how.experts + (op.shared ? 1 : 0);
  const auto most = static_cast<std::uint32_t>(device::workspace_bytes / (outputs * sizeof(float)));
  const std::size_t size = type == dtype::f32 ? 4 : 2;
  auto* const products = static_cast<float*>(d.workspace);
  for (std::uint32_t at = 0; at < op.rows; at += most) {
    const std::uint32_t rows = std::min(most, op.rows - at);
    const router_product p{static_cast<const std::byte*>(x) + std::size_t{at} * op.width * size,
                           op.router,
                           op.bias,
                           products,
                           rows,
                           op.width,
                           op.how.experts,
                           outputs};
    type == dtype::f32   ? start<dtype::f32>(d, p)
    : type == dtype::f16 ? start<dtype::f16>(d, p)
                         : start<dtype::bf16>(d, p);
    const std::size_t slot = std::size_t{at} * op.how.chosen;
    const choice_args c{op.choice_bias,    pages_at ? pages_at + at : nullptr,   op.ids + slot,
                        op.weights + slot, op.shared ? op.shared + at : nullptr, op.how};
    launch(d, choice_kernel, dim3((rows + choice_warps - 1) / choice_warps), choice_warps * 32,
           choice_warps * 2 * op.how.experts * sizeof(float), p, c);
  }
}

}  // namespace weir::kernels::cuda
