// The router's products of many rows of elements, by tensor cores (PTX ISA, «mma.m16n8k8» of tf32).
//
// An element is exact as tf32. A weight in f32 is taken as the sum of two numbers of tf32, which leaves out
// less than 2^-20 of it; a weight that was bf16 in its file is exact. Sums are made in f32.
//
// A warp has 16 rows by 32 outputs, and every fourth chunk of 32 columns. The four warps of such a tile add
// their sums through shared memory. Numbers are read once into registers, one chunk ahead, and never copied:
// a lane has eight neighbouring columns of a chunk, and the k-th number of an instruction is whichever column
// both operands mean by it.
#include "kernels/cuda/device/launch.h"
#include "kernels/cuda/element.h"
#include "kernels/cuda/experts/route.h"

namespace weir::kernels::cuda {
namespace {

constexpr std::uint32_t tiles = 4, parts = 4, warps = tiles * parts, columns = 32;
constexpr std::uint32_t tile_rows = 16, tile_outputs = 32, pieces = tile_outputs / 8;

// c += a · b for c [16, 8], a [16, 8], b [8, 8], of tf32. With r = lane / 4 and q = lane % 4 a lane holds
//   c[0], c[1]  row r, columns 2 q and 2 q + 1;  c[2], c[3]  the same of row r + 8
//   a0, a1      rows r and r + 8, column q;      a2, a3      the same of column q + 4
//   b0, b1      column r, rows q and q + 4
__device__ __forceinline__ void mma_tf32(float (&c)[4], float a0, float a1, float a2, float a3, float b0,
                                         float b1) {
  asm volatile(
      "mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, "
      "{%0,%1,%2,%3};"
      : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
      : "r"(__float_as_uint(a0)), "r"(__float_as_uint(a1)), "r"(__float_as_uint(a2)),
        "r"(__float_as_uint(a3)), "r"(__float_as_uint(b0)), "r"(__float_as_uint(b1)));
}

// What a lane has of a chunk: eight columns of two rows of x, and of a row of the router for each piece.
struct chunk_numbers {
  uint4 x[2];
  float4 w[pieces][2];
};

template <dtype type>
__device__ __forceinline__ void multiply(float (&sums)[pieces][4], const chunk_numbers& n) {
  const std::uint32_t low[4] = {n.x[0].x, n.x[0].y, n.x[0].z, n.x[0].w};
  const std::uint32_t high[4] = {n.x[1].x, n.x[1].y, n.x[1].z, n.x[1].w};
#pragma unroll
  for (int j = 0; j < 4; ++j) {
    const float2 r = floats_of<type>(low[j]), s = floats_of<type>(high[j]);
#pragma unroll
    for (std::uint32_t i = 0; i < pieces; ++i) {
      const float4 w = n.w[i][j / 2];
      const float first = j % 2 ? w.z : w.x, second = j % 2 ? w.w : w.y;
      const float f = __uint_as_float(__float_as_uint(first) & 0xffffe000);
      const float g = __uint_as_float(__float_as_uint(second) & 0xffffe000);
      mma_tf32(sums[i], r.x, s.x, r.y, s.y, f, g);
      mma_tf32(sums[i], r.x, s.x, r.y, s.y, first - f, second - g);
    }
  }
}

template <dtype type>
__global__ void __launch_bounds__(warps * 32, 1) tile_kernel(const router_product a) {
  __shared__ float added[parts][tiles * tile_rows][tile_outputs + 1];
  let_next_start();
  const std::uint32_t warp = threadIdx.x / 32, lane = threadIdx.x % 32, part = warp / tiles;
  const std::uint32_t rows = blockIdx.x * tiles * tile_rows, outputs = blockIdx.y * tile_outputs;
  const std::uint32_t row = warp % tiles * tile_rows + lane / 4, column = lane % 4 * 8;
  const element* x[2];
  const float* w[pieces];
#pragma unroll
  for (std::uint32_t i = 0; i < 2; ++i)
    x[i] = static_cast<const element*>(a.x) + std::size_t{min(rows + row + i * 8, a.rows - 1)} * a.width +
           column;
#pragma unroll
  for (std::uint32_t i = 0; i < pieces; ++i)
    w[i] = a.router + std::size_t{min(outputs + i * 8 + lane / 4, a.outputs - 1)} * a.width + column;
  const auto read = [&](chunk_numbers& n, std::uint32_t at) {
    if (at >= a.width) return;
#pragma unroll
    for (std::uint32_t i = 0; i < 2; ++i) n.x[i] = __ldcg(reinterpret_cast<const uint4*>(x[i] + at));
#pragma unroll
    for (std::uint32_t i = 0; i < pieces; ++i)
#pragma unroll
      for (std::uint32_t j = 0; j < 2; ++j) n.w[i][j] = __ldg(reinterpret_cast<const float4*>(w[i] + at) + j);
  };
  wait_for_previous();
  float sums[pieces][4] = {};
  chunk_numbers one, other;
  constexpr std::uint32_t step = parts * columns;
  read(one, part * columns);
  for (std::uint32_t at = part * columns; at < a.width; at += 2 * step) {
    read(other, at + step);
    multiply<type>(sums, one);
    if (at + step >= a.width) break;
    read(one, at + 2 * step);
    multiply<type>(sums, other);
  }
#pragma unroll
  for (std::uint32_t i = 0; i < pieces; ++i)
#pragma unroll
    for (std::uint32_t j = 0; j < 4; ++j)
      added[part][row + j / 2 * 8][i * 8 + lane % 4 * 2 + j % 2] = sums[i][j];
  __syncthreads();
  for (std::uint32_t i = threadIdx.x; i < tiles * tile_rows * tile_outputs; i += warps * 32) {
    const std::uint32_t r = i / tile_outputs, n = i % tile_outputs, out = outputs + n;
    if (rows + r >= a.rows || out >= a.outputs) continue;
    float sum = a.bias && out < a.experts ? a.bias[out] : 0.0f;
#pragma unroll
    for (std::uint32_t p = 0; p < parts; ++p) sum += added[p][r][n];
    a.products[std::size_t{rows + r} * a.outputs + out] = sum;
  }
}

}  // namespace

bool can_route_tiles(const device& d, const router_product& p) {
  return !d.deterministic && p.width % columns == 0;
}

void route_tiles(device& d, dtype type, const router_product& p) {
  const auto kernel = type == dtype::f16 ? tile_kernel<dtype::f16> : tile_kernel<dtype::bf16>;
  constexpr std::uint32_t rows = tiles * tile_rows;
  launch(d, kernel, dim3((p.rows + rows - 1) / rows, (p.outputs + tile_outputs - 1) / tile_outputs),
         warps * 32, 0, p);
}

}  // namespace weir::kernels::cuda
