// choose_product.h — which function computes a product on a device. This is the only place that decides it:
// what can compute a product, and what is the quickest. The rules for a type of weights, for a way to write
// outputs, for another kernel stand here alone; launch_product.cu launches what was chosen.
//
// docs/kernels.md has the answers for the products of a model as a table; a test writes and compares it.
//
// Thread safety: pure functions, any thread. Plain C++: no device is needed to ask.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/cuda/device/code_path.h"
#include "kernels/tensor.h"

namespace weir::kernels::cuda {

// What becomes of the product of x [m, k] and w [n, k].
enum class product_out {
  element,  // out[m, n], of the weights' type
  f32,      // out[m, n], f32
  add_f32,  // out[m, n] += x · wᵀ, f32
  // The first n / 2 rows of w are gate, the others up: out[m, n / 2] = f(gate) * up, of the weights' type,
  // for an activation that can_gate() (gate.h).
  gated
};

// The functions, each in the file of its name.
enum class product_function : std::uint8_t {
  none,                  // no function does all of it: the caller does a part of it by a kernel of its own
  linear,                // the single operation (ops.cu)
  blas,                  // cuBLASLt (products.cu)
  tile_product,          // any number of rows, any device
  stream,                // few rows on the Hopper path
  stream_wide,           // more of them
  product_wgmma,         // more of them, by warpgroups
  stream_general,        // few rows on the general path
  stream_blocks,         // these five multiply quantised weights as they are
  stream_blocks_bulk,    //
  stream_blocks_single,  //
  tile_blocks,           //
  wide_blocks            //
};
constexpr const char* product_functions[] = {"none",
                                             "linear",
                                             "blas",
                                             "tile_product",
                                             "stream",
                                             "stream_wide",
                                             "product_wgmma",
                                             "stream_general",
                                             "stream_blocks",
                                             "stream_blocks_bulk",
                                             "stream_blocks_single",
                                             "tile_blocks",
                                             "wide_blocks"};
constexpr const char* name(product_function f) noexcept { return product_functions[static_cast<int>(f)]; }

// Whether the function multiplies quantised weights as they are. The others multiply elements: quantised
// weights are rounded to bf16 first.
constexpr bool reads_blocks(product_function f) noexcept { return f >= product_function::stream_blocks; }

// What the choice needs to know of a device.
struct product_device {
  code_path path = code_path::general;
  bool blas = false;         // cuBLASLt is there
  bool tensor_maps = false;  // the driver makes maps of tensors (device::encode_map); not on the general path
  bool deterministic = false;  // a row's bits depend on that row alone
  std::uint32_t multiprocessors = 0;
};

// What it needs to know of a product. Addresses that are not known yet are null; they will be multiples of
// 256.
struct product_facts {
  dtype type = dtype::bf16;  // of the weights, [n, k]; f32: of a single operation (ops.h)
  std::uint32_t n = 0, k = 0, m = 0;
  product_out kind = product_out::element;
  const void *w = nullptr, *x = nullptr, *out = nullptr;
  std::uint32_t out_stride = 0;  // elements from one row of `out` to the next; 0: as many as a row has
  bool normed = false;           // a norm of the row in front of the product is a part of it (norm_before.h)
  bool gathers = false;          // putting the row in the order of the weights' inputs is a part of it
  std::uint32_t width = 0;       // where `gathers`: how many elements the row has
  bool paired = false;           // x is in paired order (element.h)
  bool fresh = false;  // the kernel in front of the product writes the weights, which others may read early

  std::uint32_t stride() const noexcept {
    return out_stride ? out_stride : kind == product_out::gated ? n / 2 : n;
  }
};

// `none` only where more than the product is asked for: SwiGLU, a norm, an order of x.
product_function choose_product(const product_device& d, const product_facts& p);

// Up to so many rows the kernel of ops.cu reads the weights only once.
constexpr std::uint32_t linear_rows = 4;
// The shapes that stream.cu takes.
constexpr std::uint32_t stream_rows = 8, stream_outputs = 16, stream_piece = 256, stream_columns = 4096;
// The most rows of stream_blocks*.cu, of tile_blocks.cu and of wide_blocks.cu.
constexpr std::uint32_t most_block_rows = 8, most_tiled_rows = 64, most_wide_block_rows = 4096;
// The part of device::workspace in which wide_blocks.cu puts x in paired order.
constexpr std::size_t paired_bytes = 32u << 20;

}  // namespace weir::kernels::cuda
