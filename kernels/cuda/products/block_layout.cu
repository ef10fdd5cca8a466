#include "kernels/cuda/products/block_layout.h"

#include <algorithm>

#include "kernels/block_readers.h"
#include "kernels/cuda/products/block_codes.h"
#include "kernels/cuda/products/cell_writer.h"
#include "kernels/random_blocks.h"

namespace weir::kernels::cuda {
namespace {

constexpr unsigned threads = 128;

unsigned blocks_for(std::uint64_t items) {
  return static_cast<unsigned>(std::clamp<std::uint64_t>(up(items, threads), 1, 1u << 20));
}

// Writes `rows` rows of blocks from `from` to the cells, from row `first` on. One thread for each block.
template <dtype type>
__global__ void pack_kernel(const unsigned char* from, std::uint32_t rows, std::uint32_t first, cells to) {
  constexpr cell_form form(type);
  constexpr block_format f = format_of(type);
  constexpr std::uint32_t weights = facts(type).block_weights;
  const std::uint32_t per_row = to.cols / weights;
  const std::uint64_t all = std::uint64_t{rows} * per_row;
  for (std::uint64_t i = blockIdx.x * std::uint64_t{blockDim.x} + threadIdx.x; i < all;
       i += std::uint64_t{gridDim.x} * blockDim.x) {
    block_parts b;
    block_readers::read_block(type, from + i * facts(type).block_bytes, b);
    const auto row = first + static_cast<std::uint32_t>(i / per_row), r = row % cell_rows;
    for (std::uint32_t at = 0; at < weights; at += 32) {
      const std::uint32_t column = static_cast<std::uint32_t>(i % per_row) * weights + at;
      const int j = static_cast<int>(column % cell_columns / 32);
      unsigned char* cell = to.cell(row, column / cell_columns, form.bytes);
      put_codes<type>(cell, r, j, b.codes.data() + at);
      put_scales<type>(cell + form.code_bytes + r * form.words * 4, j, static_cast<int>(at / f.group), b);
    }
  }
}

__device__ __forceinline__ void put_four(float* to, float4 v) { *reinterpret_cast<float4*>(to) = v; }
__device__ __forceinline__ void put_four(element* to, float4 v) {
  *reinterpret_cast<uint2*>(to) = make_uint2(pair_of<dtype::bf16>(v.x, v.y), pair_of<dtype::bf16>(v.z, v.w));
}

// Writes the weights of a cell that a lane holds: of each 16 columns four, from lane % 4 * 4 on.
template <dtype type, class T>
__device__ __forceinline__ void unpack_lane(const unsigned char* cell, std::uint32_t lane,
                                            std::uint32_t columns, T* out) {
  const cell_reader<type> w(cell, lane);
#pragma unroll
  for (int part = 0; part < 8; ++part)
    if (part * 16u < columns) put_four(out + part * 16, w.four(part / 2, part % 2));
}
// The same in bf16, with 16 bytes read at once. Codes and scales are exact, so that the numbers are the same.
template <dtype type>
__device__ __forceinline__ void unpack_pairs(const unsigned char* cell, std::uint32_t lane,
                                             std::uint32_t columns, element* out) {
  cell_row<type> w;
  w.load(cell, lane);
#pragma unroll
  for (int j = 0; j < 4; ++j) {
    std::uint32_t pairs[4];
    w.expand(j, pairs);
#pragma unroll
    for (int h = 0; h < 2; ++h) {
      if ((2 * j + h) * 16u >= columns) return;
      const float s = w.scale(j, h);
      float m = 0;
      if constexpr (format_of(type).minima) m = w.minimum(j, h);
      const auto number = [&](std::uint32_t bits) {
        const float code = __uint_as_float(bits);
        return format_of(type).minima ? fmaf(code, s, m) : code * s;
      };
      put_four(out + (2 * j + h) * 16,
               make_float4(number(pairs[2 * h] << 16), number(pairs[2 * h] & 0xffff0000),
                           number(pairs[2 * h + 1] << 16), number(pairs[2 * h + 1] & 0xffff0000)));
    }
  }
}

// Converts rows of cells to numbers. One thread for the weights of a cell that a lane holds.
template <dtype type, class T>
__global__ void unpack_kernel(cells from, std::uint32_t first, std::uint32_t count, T* to) {
  const std::uint64_t all = up(count, cell_rows) * from.across * 32;
  for (std::uint64_t i = blockIdx.x * std::uint64_t{blockDim.x} + threadIdx.x; i < all;
       i += std::uint64_t{gridDim.x} * blockDim.x) {
    const auto lane = static_cast<std::uint32_t>(i % 32),
               index = static_cast<std::uint32_t>(i / 32 % from.across),
               row = static_cast<std::uint32_t>(i / 32 / from.across) * cell_rows + lane / 4;
    if (row >= count) continue;
    const unsigned char* cell = from.cell(first + row, index, cell_form(type).bytes);
    T* out = to + std::uint64_t{row} * from.cols + index * cell_columns + lane % 4 * 4;
    const std::uint32_t columns = min(cell_columns, from.cols - index * cell_columns);
    // The doubled codes of mxfp4 have no -0.
    if constexpr (std::is_same_v<T, element> && type != dtype::mxfp4)
      unpack_pairs<type>(cell, lane, columns, out);
    else
      unpack_lane<type>(cell, lane, columns, out);
  }
}

template <class T>
void unpack(device& d, const matrix& from, std::uint32_t first, std::uint32_t count, T* to) {
  if (d.failed() || count == 0) return;
  const cells c(from);
  with_block_type(from.type, [&](auto type) {
    unpack_kernel<type, T>
        <<<blocks_for(up(count, cell_rows) * c.across * 32), threads, 0, d.stream>>>(c, first, count, to);
  });
  WEIR_CUDA(d, cudaGetLastError());
}

__global__ void random_kernel(unsigned char* to, std::uint64_t bytes, random_scales scales,
                              std::uint32_t block_bytes, std::uint64_t seed, std::uint64_t first) {
  for (std::uint64_t i = blockIdx.x * std::uint64_t{blockDim.x} + threadIdx.x; i < bytes;
       i += std::uint64_t{gridDim.x} * blockDim.x)
    to[i] = random_block_byte(scales, block_bytes, seed, first + i);
}

// How many rows of `m` the device's workspace holds as blocks.
std::uint32_t rows_at_once(const matrix& m) {
  return static_cast<std::uint32_t>(
      std::max<std::uint64_t>(1, device::workspace_bytes / bytes_of(m.type, m.cols)));
}

}  // namespace

void pack_blocks(device& d, const matrix& rows, const matrix& to, std::uint32_t first) {
  if (d.failed() || rows.rows == 0) return;
  const std::uint64_t blocks = std::uint64_t{rows.rows} * rows.cols / facts(rows.type).block_weights;
  with_block_type(rows.type, [&](auto type) {
    pack_kernel<type><<<blocks_for(blocks), threads, 0, d.stream>>>(
        static_cast<const unsigned char*>(rows.data), rows.rows, first, cells(to));
  });
  WEIR_CUDA(d, cudaGetLastError());
}

void unpack_blocks(device& d, const matrix& from, std::uint32_t first, std::uint32_t count, element* to) {
  unpack(d, from, first, count, to);
}
void unpack_blocks(device& d, const matrix& from, std::uint32_t first, std::uint32_t count, float* to) {
  unpack(d, from, first, count, to);
}

// The blocks pass through the workspace of products, which is free between two products.
void upload_blocks(device& d, const matrix& to, std::uint32_t first, const matrix& rows) {
  const std::uint32_t most = rows_at_once(rows);
  for (std::uint32_t at = 0; at < rows.rows && !d.failed(); at += most) {
    matrix some = rows;
    some.rows = std::min(most, rows.rows - at);
    const auto* from = static_cast<const std::byte*>(rows.data) + at * bytes_of(rows.type, rows.cols);
    WEIR_CUDA(d, cudaMemcpyAsync(d.workspace, from, some.bytes(), cudaMemcpyHostToDevice, d.stream));
    some.data = d.workspace;
    pack_blocks(d, some, to, first + at);
  }
}

void fill_random_blocks(device& d, const matrix& to, std::uint32_t first, std::uint32_t rows,
                        std::uint64_t seed) {
  const std::uint32_t most = rows_at_once(to);
  for (std::uint32_t at = 0; at < rows && !d.failed(); at += most) {
    matrix some{d.workspace, to.type, std::min(most, rows - at), to.cols};
    const std::uint64_t bytes = some.bytes();
    random_kernel<<<blocks_for(bytes / 16), threads, 0, d.stream>>>(
        static_cast<unsigned char*>(d.workspace), bytes, random_scales_of(to.type),
        facts(to.type).block_bytes, seed, at * bytes_of(to.type, to.cols));
    WEIR_CUDA(d, cudaGetLastError());
    pack_blocks(d, some, to, first + at);
  }
}

}  // namespace weir::kernels::cuda
