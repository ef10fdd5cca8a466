#include "kernels/cuda/layers.h"

#include <algorithm>

#include "kernels/cuda/device/launch.h"
#include "kernels/cuda/device/warp.h"
#include "kernels/cuda/products/block_layout.h"
#include "kernels/cuda/products/gate.h"
#include "kernels/cuda/stream_row.h"

namespace weir::kernels::cuda {
namespace {

constexpr unsigned threads = 256;

template <dtype type>
__global__ void embed_kernel(const std::int32_t* tokens, const std::int32_t* drawn, const void* table,
                             std::uint32_t hidden, float* x, float factor, float* cleared) {
  let_next_start();
  const std::int32_t said = tokens[blockIdx.x], token = said < 0 ? drawn[-1 - said] : said;
  const std::size_t from = static_cast<std::size_t>(token) * hidden, to = std::size_t{blockIdx.x} * hidden;
  for (std::uint32_t i = threadIdx.x * 2; i < hidden; i += blockDim.x * 2) {
    float2 v;
    if constexpr (type == dtype::f32)
      v = *reinterpret_cast<const float2*>(static_cast<const float*>(table) + from + i);
    else
      v = floats_of<type>(static_cast<const element*>(table) + from + i);
    *reinterpret_cast<float2*>(x + to + i) = make_float2(v.x * factor, v.y * factor);
    if (cleared) *reinterpret_cast<float2*>(cleared + to + i) = make_float2(0, 0);
  }
}

// The index of the block along y is that of the table.
__global__ void angles_kernel(const std::uint32_t* positions, angle_tables t, std::uint32_t rows,
                              std::size_t apart, float* cos, float* sin) {
  let_next_start();
  wait_for_previous();
  const std::uint32_t i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= rows * t.half) return;
  const std::uint32_t of = blockIdx.y * t.half + i % t.half;
  const float angle = __fmul_rn(static_cast<float>(positions[i / t.half]), t.frequencies[of]);
  float s, c;
  sincosf(angle, &s, &c);
  sin[blockIdx.y * apart + i] = t.factors[of] * s;
  cos[blockIdx.y * apart + i] = t.factors[of] * c;
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
    put_quad(to, i, paired, pairs.x, pairs.y);
  }
}

// As norm_kernel, for norms and sums of every kind.
template <dtype type, int quads>
__global__ void __launch_bounds__(1024)
    sum_kernel(float* x, pending_sum p, const std::int32_t* from, norm_args n, std::uint32_t width,
               element* out, bool paired) {
  __shared__ float room[32];
  let_next_start();
  const norm_weights<quads> behind(p.behind.by.weight, width), front(n.by.weight, width);
  wait_for_previous();
  const std::size_t source = from ? static_cast<std::size_t>(from[blockIdx.x]) : blockIdx.x;
  float4 row[quads];
  sum_row(row, x, p, behind, source, width, room);
  if (!from) store_row(row, x, p, source, width);
  if (n.by.weight) normalise(row, n, front, width, room);
  auto* to = reinterpret_cast<uint2*>(out + std::size_t{blockIdx.x} * width);
  each_quad<quads>(width, [&](int j, std::uint32_t i) {
    put_quad(to, i, paired, pair_of<type>(row[j].x, row[j].y), pair_of<type>(row[j].z, row[j].w));
  });
}

// One block for each row, which it reads again for each sum.
__global__ void stream_norm_kernel(float* x, norm_args n, std::uint32_t width, float factor) {
  __shared__ float room[32];
  let_next_start();
  wait_for_previous();
  float* row = x + std::size_t{blockIdx.x} * width;
  float mean = 0, squares = 0;
  if (n.centred) {
    for (std::uint32_t i = threadIdx.x; i < width; i += blockDim.x) mean += row[i];
    mean = block_sum(mean, room) / static_cast<float>(width);
  }
  for (std::uint32_t i = threadIdx.x; i < width; i += blockDim.x)
    squares += (row[i] - mean) * (row[i] - mean);
  const float scale = rsqrtf(block_sum(squares, room) / static_cast<float>(width) + n.eps);
  for (std::uint32_t i = threadIdx.x; i < width; i += blockDim.x)
    row[i] = factor * ((row[i] - mean) * scale * n.by.weight[i] + (n.by.bias ? n.by.bias[i] : 0.0f));
}

__global__ void scale_kernel(const float* from, std::uint32_t count, float factor, float* to) {
  const std::uint32_t i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < count) to[i] = factor * from[i];
}

__global__ void cap_kernel(float* x, std::size_t count, float cap) {
  let_next_start();
  wait_for_previous();
  const std::size_t step = std::size_t{gridDim.x} * blockDim.x;
#pragma unroll 4
  for (std::size_t i = blockIdx.x * std::size_t{blockDim.x} + threadIdx.x; i < count; i += step)
    x[i] = cap * tanhf(__ldcg(x + i) / cap);
}

__device__ __forceinline__ float activated(activation kind, float g) {
  if (kind == activation::relu2) return g <= 0 ? 0.0f : g * g;  // a NaN stays one
  return gated(kind, g, 1.0f);
}

template <dtype type>
__global__ void activate_kernel(const element* x, const float* bias, feed_forward f, element* out) {
  let_next_start();
  wait_for_previous();
  const std::uint32_t width = f.inter, i = (blockIdx.x * blockDim.x + threadIdx.x) * 8;
  const element* row = x + std::size_t{blockIdx.y} * (f.gated ? 2 * width : width);
  if (i >= width) return;
  const uint4 g = __ldcg(reinterpret_cast<const uint4*>(row + i));
  const uint4 u = f.gated ? __ldcg(reinterpret_cast<const uint4*>(row + width + i)) : make_uint4(0, 0, 0, 0);
  const std::uint32_t gs[4] = {g.x, g.y, g.z, g.w}, us[4] = {u.x, u.y, u.z, u.w};
  std::uint32_t results[4];
#pragma unroll
  for (int j = 0; j < 4; ++j) {
    float2 a = floats_of<type>(gs[j]);
    float2 b = floats_of<type>(us[j]);
    if (bias) {
      a = make_float2(a.x + bias[i + 2 * j], a.y + bias[i + 2 * j + 1]);
      if (f.gated) b = make_float2(b.x + bias[width + i + 2 * j], b.y + bias[width + i + 2 * j + 1]);
    }
    if (!f.gated) b = make_float2(1, 1);
    results[j] = f.kind == activation::clamped
                     ? pair_of<type>(clamped(a.x, b.x, f.limit), clamped(a.y, b.y, f.limit))
                     : pair_of<type>(activated(f.kind, a.x) * b.x, activated(f.kind, a.y) * b.y);
  }
  *reinterpret_cast<uint4*>(out + std::size_t{blockIdx.y} * width + i) =
      make_uint4(results[0], results[1], results[2], results[3]);
}

// A thread has two neighbouring columns.
template <dtype type>
__global__ void gate_kernel(const element* gates, std::uint32_t stride, const float* bias,
                            std::uint32_t width, element* attended, column_order order) {
  let_next_start();
  wait_for_previous();
  const std::uint32_t i = (blockIdx.x * blockDim.x + threadIdx.x) * 2;
  if (i >= width) return;
  float2 g = floats_of<type>(
      __ldcg(reinterpret_cast<const std::uint32_t*>(gates + std::size_t{blockIdx.y} * stride + i)));
  if (bias) g = make_float2(g.x + bias[i], g.y + bias[i + 1]);
  auto* at =
      reinterpret_cast<std::uint32_t*>(attended + std::size_t{blockIdx.y} * width + place_in(order, i));
  const float2 v = floats_of<type>(__ldcg(at));
  *at = pair_of<type>(v.x / (1.0f + __expf(-g.x)), v.y / (1.0f + __expf(-g.y)));
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

// Calls f(quads, threads) for rows of `width` numbers, of which a thread of a block has `quads` times four.
// For few rows latency counts, so that a row gets more threads.
template <class F>
void with_quads(const device& d, std::uint32_t rows, std::uint32_t width, const F& f) {
  const std::uint32_t all = width / 4;
  const auto with = [&](auto quads) { f(quads, ((all + quads - 1) / quads + 31) / 32 * 32); };
  if (!d.deterministic && rows <= 64 && all <= 1024) return with(std::integral_constant<int, 1>{});
  if (all <= 2048) return with(std::integral_constant<int, 2>{});
  with(std::integral_constant<int, 4>{});
}

}  // namespace

void embed(device& d, const rows_view& v, const matrix& table, float* x, float factor, float* cleared) {
  if (!is_plain(table.type)) return embed_blocks(d, v, table, x, factor, cleared);
  const auto kernel = table.type == dtype::f32   ? embed_kernel<dtype::f32>
                      : table.type == dtype::f16 ? embed_kernel<dtype::f16>
                                                 : embed_kernel<dtype::bf16>;
  launch_after_all(d, kernel, dim3(v.rows), threads, v.tokens, v.drawn, table.data, table.cols, x, factor,
                   cleared);
}

void angles(device& d, const rows_view& v, const angle_tables& t, std::size_t apart, float* cos, float* sin) {
  launch(d, angles_kernel, dim3((v.rows * t.half + threads - 1) / threads, t.count), threads, 0, v.positions,
         t, v.rows, apart, cos, sin);
}

void norm(device& d, dtype type, float* x, const pending_sum& p, const std::int32_t* from, const norm_args& n,
          std::uint32_t rows, std::uint32_t width, element* out, column_order order) {
  const bool is_simple = n.is_plain() && !p.branch && !p.experts.made && !p.biases[1],
             paired = order == column_order::paired;
  const auto run = [&](auto of) {
    with_quads(d, rows, width, [&](auto quads, std::uint32_t in_block) {
      if (is_simple)
        launch(d, norm_kernel<of, quads>, dim3(rows), in_block, 0, x, p.biases[0], from, n.by.weight, width,
               n.eps, out, paired);
      else
        launch(d, sum_kernel<of, quads>, dim3(rows), in_block, 0, x, p, from, n, width, out, paired);
    });
  };
  if (type == dtype::f16) return run(std::integral_constant<dtype, dtype::f16>{});
  run(std::integral_constant<dtype, dtype::bf16>{});
}

void norm_stream(device& d, float* x, const norm_args& n, std::uint32_t rows, std::uint32_t width,
                 float factor) {
  launch(d, stream_norm_kernel, dim3(rows), 512, 0, x, n, width, factor);
}

void scale(device& d, const float* from, std::uint32_t count, float factor, float* to) {
  launch_after_all(d, scale_kernel, dim3((count + threads - 1) / threads), threads, from, count, factor, to);
}

void cap_logits(device& d, float* x, std::size_t count, float cap) {
  const std::size_t most = 8 * static_cast<std::size_t>(d.multiprocessors);
  launch(d, cap_kernel, dim3(static_cast<unsigned>(std::min((count + threads - 1) / threads, most))), threads,
         0, x, count, cap);
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

void activate_rows(device& d, dtype type, const element* x, const float* bias, std::uint32_t rows,
                   const feed_forward& f, element* out) {
  const auto kernel = type == dtype::f16 ? activate_kernel<dtype::f16> : activate_kernel<dtype::bf16>;
  const dim3 grid((f.inter / 8 + threads - 1) / threads, rows);
  launch(d, kernel, grid, threads, 0, x, bias, f, out);
}

void gate_rows(device& d, dtype type, const head_shape& h, const element* qkv, const float* bias,
               std::uint32_t rows, element* attended, column_order order) {
  const auto kernel = type == dtype::f16 ? gate_kernel<dtype::f16> : gate_kernel<dtype::bf16>;
  const std::uint32_t width = h.gates, first = h.width() - width;
  launch(d, kernel, dim3((width / 2 + threads - 1) / threads, rows), threads, 0, qkv + first, h.width(), bias,
         width, attended, order);
}

}  // namespace weir::kernels::cuda
