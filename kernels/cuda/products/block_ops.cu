// Single operations with quantised weights, and the embedding of a decoder: one simple kernel each.
#include <algorithm>

#include "kernels/cuda/device/launch.h"
#include "kernels/cuda/device/warp.h"
#include "kernels/cuda/layers.h"
#include "kernels/cuda/products/block_layout.h"
#include "kernels/cuda/products/block_values.h"

namespace weir::kernels::cuda {
namespace {

constexpr unsigned threads = 128;

struct table_args {
  const unsigned char* at;
  std::uint32_t cols, across;  // across: cells side by side
};

table_args args_of(const matrix& m) {
  return {static_cast<const unsigned char*>(m.data), m.cols,
          static_cast<std::uint32_t>(up(m.cols, cell_columns))};
}

// Writes row `row` of the table times `factor`. The threads of the block share the row.
template <dtype type>
__device__ __forceinline__ void widen_row(const table_args& t, std::uint32_t row, float* out, float factor) {
  constexpr cell_form form(type);
  const unsigned char* cells = t.at + std::uint64_t{row / cell_rows} * t.across * form.bytes;
  for (std::uint32_t i = threadIdx.x; i < t.cols / 4; i += blockDim.x) {
    const std::uint32_t q = i % 4, part = i / 4 % 8;
    const cell_reader<type> w(cells + std::uint64_t{i / 32} * form.bytes, row % cell_rows * 4 + q);
    const float4 v = w.four(static_cast<int>(part / 2), static_cast<int>(part % 2));
    *reinterpret_cast<float4*>(out + 4 * i) =
        make_float4(v.x * factor, v.y * factor, v.z * factor, v.w * factor);
  }
}

template <dtype type>
__global__ void gather_kernel(table_args t, const std::int32_t* ids, float* out, float factor) {
  widen_row<type>(t, static_cast<std::uint32_t>(ids[blockIdx.x]), out + std::size_t{blockIdx.x} * t.cols,
                  factor);
}

template <dtype type>
__global__ void embed_kernel(const std::int32_t* tokens, const std::int32_t* drawn, table_args t, float* x,
                             float factor, float* cleared) {
  let_next_start();
  const std::int32_t said = tokens[blockIdx.x], token = said < 0 ? drawn[-1 - said] : said;
  const std::size_t to = std::size_t{blockIdx.x} * t.cols;
  widen_row<type>(t, static_cast<std::uint32_t>(token), x + to, factor);
  for (std::uint32_t i = threadIdx.x; cleared && i < t.cols; i += blockDim.x) cleared[to + i] = 0;
}

// The four elements of row `row` of x that columns 4 * i to 4 * i + 3 of the weights multiply.
__device__ __forceinline__ float4 four_of(const linear& op, std::uint32_t row, std::uint32_t i) {
  const float* x = op.x + std::size_t{row} * (op.w.input_count ? op.w.input_count : op.w.cols);
  if (!op.w.inputs) return *reinterpret_cast<const float4*>(x + 4 * i);
  const uint4 from = reinterpret_cast<const uint4*>(op.w.inputs)[i];
  return make_float4(x[from.x], x[from.y], x[from.z], x[from.w]);
}

// One warp for each column of the output; it computes linear_rows rows.
constexpr std::uint32_t linear_rows = 4;
template <dtype type>
__global__ void linear_kernel(linear op, table_args t) {
  constexpr cell_form form(type);
  const std::uint32_t n = (blockIdx.x * blockDim.x + threadIdx.x) / 32, lane = threadIdx.x % 32;
  if (n >= op.w.rows) return;
  const std::uint32_t first = blockIdx.y * linear_rows, rows = min(linear_rows, op.rows - first);
  const unsigned char* cells = t.at + std::uint64_t{n / cell_rows} * t.across * form.bytes;
  float sums[linear_rows] = {};
  for (std::uint32_t i = lane; i < t.cols / 4; i += 32) {
    const cell_reader<type> reader(cells + std::uint64_t{i / 32} * form.bytes, n % cell_rows * 4 + i % 4);
    const int part = static_cast<int>(i / 4 % 8);
    const float4 w = reader.four(part / 2, part % 2);
    for (std::uint32_t r = 0; r < linear_rows; ++r) {
      if (r >= rows) continue;
      const float4 x = four_of(op, first + r, i);
      sums[r] += w.x * x.x + w.y * x.y + w.z * x.z + w.w * x.w;
    }
  }
  for (std::uint32_t r = 0; r < linear_rows; ++r) {
    const float sum = warp_sum(sums[r]);
    if (lane == 0 && r < rows)
      op.out[std::size_t{first + r} * op.out_stride + n] = sum + (op.bias ? op.bias[n] : 0.0f);
  }
}

}  // namespace

void gather_blocks(device& d, const matrix& table, const std::int32_t* ids, std::uint32_t count, float* out,
                   float factor) {
  if (d.failed() || count == 0) return;
  with_block_type(table.type, [&](auto type) {
    gather_kernel<type><<<count, threads, 0, d.stream>>>(args_of(table), ids, out, factor);
  });
  WEIR_CUDA(d, cudaGetLastError());
}

void embed_blocks(device& d, const rows_view& v, const matrix& table, float* x, float factor,
                  float* cleared) {
  with_block_type(table.type, [&](auto type) {
    launch_after_all(d, embed_kernel<type>, dim3(v.rows), threads, v.tokens, v.drawn, args_of(table), x,
                     factor, cleared);
  });
}

void linear_blocks(device& d, const linear& said) {
  linear op = said;
  op.out_stride = said.stride();
  if (d.failed() || op.rows == 0) return;
  const dim3 grid(static_cast<unsigned>(up(op.w.rows, threads / 32)),
                  static_cast<unsigned>(up(op.rows, linear_rows)));
  with_block_type(op.w.type,
                  [&](auto type) { linear_kernel<type><<<grid, threads, 0, d.stream>>>(op, args_of(op.w)); });
  WEIR_CUDA(d, cudaGetLastError());
}

}  // namespace weir::kernels::cuda
