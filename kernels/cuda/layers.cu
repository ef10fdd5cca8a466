#include "kernels/cuda/layers.h"

#include <algorithm>

#include "kernels/cuda/device/launch.h"
#include "kernels/cuda/device/warp.h"
#include "kernels/cuda/products/block_layout.h"

namespace weir::kernels::cuda {
namespace {

constexpr unsigned threads = 256;

template <dtype type>
__global__ void embed_kernel(const std::int32_t* tokens, const std::int32_t* drawn, const void* table,
                             std::uint32_t hidden, float* x) {
  let_next_start();
  const std::int32_t said = tokens[blockIdx.x], token = said < 0 ? drawn[-1 - said] : said;
  const std::size_t from = static_cast<std::size_t>(token) * hidden;
  for (std::uint32_t i = threadIdx.x * 2; i < hidden; i += blockDim.x * 2) {
    auto* to = reinterpret_cast<float2*>(x + std::size_t{blockIdx.x} * hidden + i);
    if constexpr (type == dtype::f32)
      *to = *reinterpret_cast<const float2*>(static_cast<const float*>(table) + from + i);
    else
      *to = floats_of<type>(static_cast<const element*>(table) + from + i);
  }
}

__global__ void angles_kernel(const std::uint32_t* positions, const float* frequencies, std::uint32_t rows,
                              std::uint32_t half, float* cos, float* sin) {
  let_next_start();
  wait_for_previous();
  const std::uint32_t i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= rows * half) return;
  const float angle = __fmul_rn(static_cast<float>(positions[i / half]), frequencies[i % half]);
  sincosf(angle, &sin[i], &cos[i]);
}

// One block for each row. The row stays in registers. A block without much shared memory fits on a
// multiprocessor beside the blocks of the product before it, and the product after it can start early.
template <dtype type, int quads>
__global__ void norm_kernel(float* x, const float* bias, const std::int32_t* from, const float* weight,
                            std::uint32_t width, float eps, element* out, bool paired) {
  __shared__ float room[32];
  let_next_start();
  wait_for_previous();
  const std::size_t source = from ? static_cast<std::size_t>(from[blockIdx.x]) : blockIdx.x;
  auto* at = reinterpret_cast<float4*>(x + source * width);
  float4 row[quads];
  float squares = 0;
#pragma unroll
  for (int j = 0; j < quads; ++j) {
    const std::uint32_t i = threadIdx.x + static_cast<std::uint32_t>(j) * blockDim.x;
    row[j] = make_float4(0, 0, 0, 0);
    if (i >= width / 4) continue;
    float4 v = __ldcg(at + i);
    if (bias) {
      const float4 b = reinterpret_cast<const float4*>(bias)[i];
      v = make_float4(v.x + b.x, v.y + b.y, v.z + b.z, v.w + b.w);
      if (!from) at[i] = v;
    }
    row[j] = v;
    squares += v.x * v.x + v.y * v.y + v.z * v.z + v.w * v.w;
  }
  const float scale = rsqrtf(block_sum(squares, room) / static_cast<float>(width) + eps);
  auto* to = reinterpret_cast<uint2*>(out + std::size_t{blockIdx.x} * width);
#pragma unroll
  for (int j = 0; j < quads; ++j) {
    const std::uint32_t i = threadIdx.x + static_cast<std::uint32_t>(j) * blockDim.x;
    if (i >= width / 4) continue;
    const float4 v = row[j], w = reinterpret_cast<const float4*>(weight)[i];
    const uint2 pairs = make_uint2(pair_of<type>(v.x * scale * w.x, v.y * scale * w.y),
                                   pair_of<type>(v.z * scale * w.z, v.w * scale * w.w));
    if (paired) {
      auto* place = reinterpret_cast<std::uint32_t*>(to) + i / 4 * 8 + i % 4;
      place[0] = pairs.x;
      place[4] = pairs.y;
    } else {
      to[i] = pairs;
    }
  }
}

template <dtype type>
__global__ void silu_kernel(const element* x, const float* bias, std::uint32_t width, element* out) {
  let_next_start();
  wait_for_previous();
  const element* gate = x + std::size_t{blockIdx.y} * 2 * width;
  const std::uint32_t i = (blockIdx.x * blockDim.x + threadIdx.x) * 8;
  if (i >= width) return;
  const uint4 g = __ldcg(reinterpret_cast<const uint4*>(gate + i));
  const uint4 u = __ldcg(reinterpret_cast<const uint4*>(gate + width + i));
  const std::uint32_t gs[4] = {g.x, g.y, g.z, g.w}, us[4] = {u.x, u.y, u.z, u.w};
  std::uint32_t results[4];
#pragma unroll
  for (int j = 0; j < 4; ++j) {
    float2 a = floats_of<type>(gs[j]);
    float2 b = floats_of<type>(us[j]);
    if (bias) {
      a = make_float2(a.x + bias[i + 2 * j], a.y + bias[i + 2 * j + 1]);
      b = make_float2(b.x + bias[width + i + 2 * j], b.y + bias[width + i + 2 * j + 1]);
    }
    results[j] = pair_of<type>(a.x / (1.0f + __expf(-a.x)) * b.x, a.y / (1.0f + __expf(-a.y)) * b.y);
  }
  *reinterpret_cast<uint4*>(out + std::size_t{blockIdx.y} * width + i) =
      make_uint4(results[0], results[1], results[2], results[3]);
}

// Blocks share a row, whose elements a thread puts in order eight at a time. `paired`: see column_order.
// `staged`: the row is brought into shared memory first. Single elements that are far apart move 32 bytes
// each from memory, or from the L2 cache.
template <bool staged>
__global__ void order_kernel(const element* x, const uint4* inputs, std::uint32_t width, std::uint32_t eights,
                             bool paired, uint2* out) {
  extern __shared__ __align__(16) unsigned short in_shared[];
  const std::uint32_t step = gridDim.x * blockDim.x;
  std::uint32_t i = blockIdx.x * blockDim.x + threadIdx.x;
  const auto inputs_of = [=](std::uint32_t at, uint4& a, uint4& b) {
    if (at >= eights) return;
    a = __ldg(inputs + 2 * at);
    b = __ldg(inputs + 2 * at + 1);
  };
  uint4 a{}, b{};
  inputs_of(i, a, b);  // nobody writes these
  let_next_start();
  wait_for_previous();
  const auto* row = reinterpret_cast<const unsigned short*>(x) + std::size_t{blockIdx.y} * width;
  if constexpr (staged) {
    for (std::uint32_t j = threadIdx.x; j < width / 8; j += blockDim.x)
      reinterpret_cast<uint4*>(in_shared)[j] = __ldcg(reinterpret_cast<const uint4*>(row) + j);
    __syncthreads();
  }
  const auto element_at = [row](std::uint32_t at) {
    return std::uint32_t{staged ? in_shared[at] : __ldcg(row + at)};
  };
  const auto pair = [&](std::uint32_t low, std::uint32_t high) {
    return element_at(low) | element_at(high) << 16;
  };
  uint2* const to = out + std::size_t{blockIdx.y} * eights * 2;
  for (; i < eights; i += step, inputs_of(i, a, b)) {
    const uint4 v = make_uint4(pair(a.x, a.y), pair(a.z, a.w), pair(b.x, b.y), pair(b.z, b.w));
    const std::uint32_t at = i / 2 * 4 + i % 2;
    if (paired) {
      to[at] = make_uint2(v.x, v.z);
      to[at + 2] = make_uint2(v.y, v.w);
    } else {
      *reinterpret_cast<uint4*>(to + 2 * i) = v;
    }
  }
}

template <dtype type>
void norm_rows(device& d, float* x, const float* bias, const std::int32_t* from, const float* weight,
               std::uint32_t rows, std::uint32_t width, float eps, element* out, column_order order) {
  // For few rows latency counts, so that a row gets more threads.
  const std::uint32_t all = width / 4;
  const auto start = [&](auto kernel, std::uint32_t quads) {
    launch(d, kernel, dim3(rows), ((all + quads - 1) / quads + 31) / 32 * 32, 0, x, bias, from, weight, width,
           eps, out, order == column_order::paired);
  };
  if (!d.deterministic && rows <= 64 && all <= 1024) return start(norm_kernel<type, 1>, 1);
  if (all <= 2048) return start(norm_kernel<type, 2>, 2);
  start(norm_kernel<type, 4>, 4);
}

}  // namespace

void embed(device& d, const rows_view& v, const matrix& table, float* x) {
  if (!is_plain(table.type)) return embed_blocks(d, v, table, x, 1.0f);
  const auto kernel = table.type == dtype::f32   ? embed_kernel<dtype::f32>
                      : table.type == dtype::f16 ? embed_kernel<dtype::f16>
                                                 : embed_kernel<dtype::bf16>;
  launch_after_all(d, kernel, dim3(v.rows), threads, v.tokens, v.drawn, table.data, table.cols, x);
}

void angles(device& d, const rows_view& v, const float* frequencies, std::uint32_t half, float* cos,
            float* sin) {
  launch(d, angles_kernel, dim3((v.rows * half + threads - 1) / threads), threads, 0, v.positions,
         frequencies, v.rows, half, cos, sin);
}

void norm(device& d, dtype type, float* x, const float* bias, const std::int32_t* from, const float* weight,
          std::uint32_t rows, std::uint32_t width, float eps, element* out, column_order order) {
  if (type == dtype::f16)
    return norm_rows<dtype::f16>(d, x, bias, from, weight, rows, width, eps, out, order);
  norm_rows<dtype::bf16>(d, x, bias, from, weight, rows, width, eps, out, order);
}

void order_inputs(device& d, const matrix& w, const element* x, std::uint32_t rows, element* out,
                  column_order order) {
  const std::uint32_t eights = w.cols / 8, bytes = w.width() * sizeof(element);
  const bool staged = rows >= 16 && bytes <= 48u << 10 && w.width() % 8 == 0;
  launch(d, staged ? order_kernel<true> : order_kernel<false>,
         dim3(staged ? 1 : (eights + threads - 1) / threads, rows), staged ? 512 : threads,
         staged ? bytes : 0, x, reinterpret_cast<const uint4*>(w.inputs), w.width(), eights,
         order == column_order::paired, reinterpret_cast<uint2*>(out));
}

void silu_mul_rows(device& d, dtype type, const element* x, const float* bias, std::uint32_t rows,
                   std::uint32_t width, element* out) {
  const auto kernel = type == dtype::f16 ? silu_kernel<dtype::f16> : silu_kernel<dtype::bf16>;
  const dim3 grid((width / 8 + threads - 1) / threads, rows);
  launch(d, kernel, grid, threads, 0, x, bias, width, out);
}

}  // namespace weir::kernels::cuda
