#include "kernels/cuda/products/choose_product.h"

#include <iterator>

#include "kernels/cuda/products/bulk_division.h"
#include "kernels/cuda/products/wgmma_division.h"

namespace weir::kernels::cuda {
namespace {

using enum product_function;
static_assert(std::size(product_functions) == static_cast<std::size_t>(wide_blocks) + 1);

bool begins_at(const void* at, std::uintptr_t multiple) {
  return reinterpret_cast<std::uintptr_t>(at) % multiple == 0;
}

bool halves(const product_facts& p) { return p.kind == product_out::gated; }

// Whether kernels that read eight rows of the weights at a time, 16 bytes of each, can read the product. For
// gated these rows are of gate, and the same eight are of up.
bool reads_by_eights(const product_facts& p) {
  return p.n % (halves(p) ? 16 : 8) == 0 && p.k % 8 == 0 && begins_at(p.w, 16) && begins_at(p.x, 16);
}

// stream.cu does not do add_f32: stream_wide.cu, which divides K among blocks, was 1.05 to 1.25 times as
// fast.
bool takes_stream(const product_device& d, const product_facts& p) {
  return d.path == code_path::hopper && p.kind != product_out::add_f32 && p.m <= stream_rows &&
         p.n % stream_outputs == 0 && p.k % stream_piece == 0 && p.k <= stream_columns;
}

// A row in front of its norm may have numbers that f16 cannot keep.
bool takes_stream_normed(const product_device& d, const product_facts& p) {
  return !d.deterministic && p.type == dtype::bf16 && !p.out_stride && p.m == 1 && takes_stream(d, p);
}

// The most rows for which stream_wide.cu is faster than cuBLASLt (docs/measurements/kernels.md): 64 where the
// weights are small, or for logits; 96 where they are not large and have many rows. Beside such weights the
// sums that blocks exchange take too long.
std::uint32_t most_wide_rows(const product_facts& p) {
  const std::uint64_t weights = std::uint64_t{p.n} * p.k;
  if (p.kind == product_out::f32 || weights < 8u << 20) return 64;
  return weights < 32u << 20 && p.n >= 4096 ? 96 : 128;
}

bool takes_stream_wide(const product_device& d, const product_facts& p) {
  return d.tensor_maps && p.m <= most_wide_rows(p) && reads_by_eights(p) && begins_at(p.out, 8);
}

// The most rows for which stream_general.cu is faster than what would do the product in its place: cuBLASLt,
// and SwiGLU or the residual addition by a kernel of its own (docs/measurements/gpu.md).
std::uint32_t most_general_rows(const product_device& d, const product_facts& p) {
  return halves(p) || p.kind == product_out::add_f32 || !d.blas ? 16 : 8;
}

bool takes_stream_general(const product_device& d, const product_facts& p) {
  return d.path == code_path::general && p.m <= most_general_rows(d, p) && reads_by_eights(p);
}

// Whether product_wgmma.cu can compute the product, and is quicker than the others.
bool takes_wgmma(const product_device& d, const product_facts& p) {
  const bool can = d.tensor_maps && p.kind != product_out::f32 && reads_by_eights(p) && begins_at(p.out, 16);
  if (!can || p.m <= (halves(p) ? 8 : 32)) return false;
  // Small products of more than 128 rows, and all but gated of more than 256, stay with cuBLASLt.
  if (!halves(p) && (p.m > 256 || (p.m > 128 && std::uint64_t{p.n} * p.k < 16u << 20))) return false;
  // What the blocks could compute in the time that they take: they read too slowly where few of them have
  // something to do. Where x has more rows than a block, the tensor cores bound them, and rows that a tile
  // does not have count as well.
  const wgmma_division how = divide_wgmma(d.multiprocessors, p.kind, p.n, p.k, p.m);
  const std::uint64_t most = std::uint64_t{how.rounds} * (d.multiprocessors / how.blocks) * how.w_rows;
  if (p.m <= 128) return 10 * std::uint64_t{p.n} * how.adders >= 9 * most;
  return 5 * std::uint64_t{p.m} * p.n * how.adders >= 4 * most * how.x_rows();
}

// Products with weights that are elements. cuBLASLt expects that outputs begin at a multiple of 256 bytes.
product_function of_elements(const product_device& d, const product_facts& p) {
  if (p.normed) return takes_stream_normed(d, p) ? stream : none;
  if (!d.deterministic && !p.out_stride && !p.fresh) {
    if (takes_wgmma(d, p)) return product_wgmma;
    if (takes_stream(d, p)) return stream;
    if (takes_stream_wide(d, p)) return stream_wide;
    if (takes_stream_general(d, p)) return stream_general;
  }
  if (halves(p)) return none;
  return d.blas && begins_at(p.out, 256) ? blas : tile_product;
}

// On every path, but not on a deterministic device, where a row's bits must not depend on the number of rows.
bool takes_tile_blocks(const product_device& d, const product_facts& p) {
  return !d.deterministic && p.m <= most_tiled_rows && (!halves(p) || p.n % 16 == 0) && begins_at(p.x, 16);
}

bool takes_bulk(const product_device& d, const product_facts& p) {
  if (d.path != code_path::hopper || !takes_tile_blocks(d, p) || p.m > most_block_rows) return false;
  const bulk_division how = divide_bulk(p.type, p.k, p.kind);
  return how.run <= bulk_block::longest_run && how.stages >= 2 && how.parts <= d.multiprocessors;
}

// Whether the kernel of one row puts it in the order of the weights' inputs.
bool takes_gather(const product_facts& p) {
  return p.m == 1 && p.width <= bulk_block::most_gathered && p.width % 8 == 0;
}

// Where the order of the inputs is a part of it, no column may be padding: each element of the row must be
// read once.
bool takes_norm(const product_facts& p) {
  return p.m == 1 && p.kind != product_out::add_f32 && (!p.gathers || (takes_gather(p) && p.k == p.width));
}

bool takes_wide_blocks(const product_device& d, const product_facts& p) {
  const bool has_room = p.paired || std::uint64_t{p.m} * p.k * 2 <= paired_bytes;
  return d.path == code_path::hopper && d.tensor_maps && !d.deterministic && d.multiprocessors <= 256 &&
         p.m > most_block_rows && p.m <= most_wide_block_rows && has_room &&
         p.n % (halves(p) ? 16 : 4) == 0 && p.stride() % 4 == 0 && begins_at(p.out, 8) && begins_at(p.x, 16);
}

product_function of_blocks(const product_device& d, const product_facts& p) {
  if (p.normed) return takes_norm(p) && takes_bulk(d, p) ? stream_blocks_single : none;
  if (p.gathers) return takes_gather(p) && takes_bulk(d, p) ? stream_blocks_single : none;
  if (takes_wide_blocks(d, p)) return wide_blocks;
  if (p.paired) return none;
  if (takes_tile_blocks(d, p)) {
    if (p.m > most_block_rows) return tile_blocks;
    if (!takes_bulk(d, p)) return stream_blocks;
    return p.m == 1 ? stream_blocks_single : stream_blocks_bulk;
  }
  product_facts rounded = p;
  rounded.type = dtype::bf16;
  rounded.fresh = true;
  return of_elements(d, rounded);
}

// Where cuBLASLt computes, the bits of a row may depend on the number of rows. It expects that matrices begin
// at a multiple of 256 bytes, as memory from do_allocate does.
product_function of_floats(const product_device& d, const product_facts& p) {
  const bool aligned = begins_at(p.w, 256) && begins_at(p.x, 256) && begins_at(p.out, 256);
  return d.blas && !d.deterministic && p.m > linear_rows && aligned ? blas : linear;
}

}  // namespace

product_function choose_product(const product_device& d, const product_facts& p) {
  if (!is_plain(p.type)) return of_blocks(d, p);
  return p.type == dtype::f32 ? of_floats(d, p) : of_elements(d, p);
}

}  // namespace weir::kernels::cuda
