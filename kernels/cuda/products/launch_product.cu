#include "kernels/cuda/products/launch_product.h"

#include <cassert>

namespace weir::kernels::cuda {

product_device facts_of(const device& d) {
  return {d.path, d.lt != nullptr, d.encode_map != nullptr, d.deterministic,
          static_cast<std::uint32_t>(d.multiprocessors)};
}

product_function function_for(const device& d, const product& p, bool normed) {
  product_facts f{p.type, p.n, p.k, p.m, p.kind, p.w, p.x, p.out, p.out_stride};
  f.normed = normed;
  f.fresh = p.fresh;
  return choose_product(facts_of(d), f);
}

product_function function_for(const device& d, const block_product& p) {
  if (is_plain(p.w.type)) return product_function::none;
  product_facts f{p.w.type, p.w.rows, p.w.cols, p.m, p.kind, p.w.data, p.x, p.out, p.out_stride};
  f.normed = p.norm.rows != nullptr;
  f.gathers = p.gathers;
  f.width = p.w.width();
  f.paired = p.x_order == column_order::paired;
  return choose_product(facts_of(d), f);
}

void launch_product(device& d, product_function by, const product& p, const norm_before& norm) {
  switch (by) {
    case product_function::stream:
      return stream_product(d, p, norm);
    case product_function::stream_wide:
      return stream_wide_product(d, p);
    case product_function::product_wgmma:
      return wgmma_product(d, p);
    case product_function::stream_general:
      return stream_general_product(d, p);
    case product_function::tile_product:
      return tile_product(d, p);
    default:
      assert(!"this function does not multiply elements");
  }
}

void launch_product(device& d, product_function by, const block_product& p) {
  switch (by) {
    case product_function::stream_blocks:
      return stream_blocks(d, p);
    case product_function::stream_blocks_bulk:
      return stream_bulk(d, p);
    case product_function::stream_blocks_single:
      return stream_single(d, p);
    case product_function::tile_blocks:
      return tile_blocks(d, p);
    case product_function::wide_blocks:
      return wide_blocks(d, p);
    default:
      assert(!"this function does not multiply quantised weights");
  }
}

}  // namespace weir::kernels::cuda
