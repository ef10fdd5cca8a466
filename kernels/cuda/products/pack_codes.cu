#include "kernels/cuda/products/pack_codes.h"

#include <algorithm>

#include "kernels/cuda/products/cell_writer.h"

namespace weir::kernels::cuda {
namespace {

constexpr unsigned threads = 128;

// A thread has one row of one cell: threads that are neighbours have rows that are, so that words of codes
// that lie down columns are read side by side.
template <dtype type>
__global__ void pack_codes_kernel(file_codes from, std::uint32_t first, cells to) {
  constexpr cell_form form(type);
  const std::uint64_t i = blockIdx.x * std::uint64_t{blockDim.x} + threadIdx.x;
  if (i >= std::uint64_t{from.rows} * up(from.columns, cell_columns)) return;
  const auto row = static_cast<std::uint32_t>(i % from.rows),
             across = static_cast<std::uint32_t>(i / from.rows);
  unsigned char* cell = to.cell(first + row, from.column / cell_columns + across, form.bytes);
  const std::uint32_t r = (first + row) % cell_rows;
  for (int j = 0; j < 4; ++j) {
    const std::uint32_t block = across * 4 + static_cast<std::uint32_t>(j);
    if (block * 32 >= from.columns) return;
    std::uint8_t codes[32];
    read_codes(from, row, block, codes);
    const std::uint64_t group = from.value_at(row, from.blocks[block]);
    block_parts b;
    b.scale = from.scales[group];
    b.zero = static_cast<float>(from.zeros[group] - format_of(type).offset);
    put_codes<type>(cell, r, j, codes);
    put_scales<type>(cell + form.code_bytes + r * form.words * 4, j, 0, b);
  }
}

// Packs a rectangle whose arrays are in memory of the device.
void pack_codes(device& d, const file_codes& from, std::uint32_t first, const matrix& to) {
  if (d.failed() || from.rows == 0) return;
  const auto start = [&](auto kernel) {
    const std::uint64_t items = std::uint64_t{from.rows} * up(from.columns, cell_columns);
    kernel<<<static_cast<unsigned>(up(items, threads)), threads, 0, d.stream>>>(from, first, cells(to));
  };
  switch (to.type) {
    case dtype::q4_0:
      start(pack_codes_kernel<dtype::q4_0>);
      break;
    case dtype::q8_0:
      start(pack_codes_kernel<dtype::q8_0>);
      break;
    case dtype::fp8:
      start(pack_codes_kernel<dtype::fp8>);
      break;
    case dtype::int4:
      start(pack_codes_kernel<dtype::int4>);
      break;
    case dtype::int4_32:
      start(pack_codes_kernel<dtype::int4_32>);
      break;
    case dtype::int8:
      start(pack_codes_kernel<dtype::int8>);
      break;
    case dtype::mxfp4:
      start(pack_codes_kernel<dtype::mxfp4>);
      break;
    default:  // a type that no directory has
      WEIR_CUDA(d, cudaErrorInvalidValue);
      return;
  }
  WEIR_CUDA(d, cudaGetLastError());
}

}  // namespace

// The codes pass through the workspace of products, which is free between two products.
void upload_codes(device& d, const file_codes& on_host, std::uint32_t first, const matrix& to) {
  WEIR_CUDA(d, cudaMemcpyAsync(d.workspace, on_host.codes, on_host.bytes, cudaMemcpyHostToDevice, d.stream));
  pack_codes(d, on_host.copied_to(d.workspace), first, to);
}

}  // namespace weir::kernels::cuda
