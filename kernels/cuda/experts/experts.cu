#include "kernels/cuda/experts/experts.h"

#include "kernels/cuda/experts/put_expert.h"

namespace weir::kernels::cuda {

namespace {

expert_args args_of(const expert_lists& lists, const expert_product& p) {
  const matrix& m = p.w.first;
  return {static_cast<const unsigned char*>(m.data),
          p.w.stride,
          p.bias,
          p.x,
          p.out,
          lists.ids,
          lists.order,
          lists.tiles,
          lists.count,
          m.rows,
          m.cols,
          p.slots,
          p.share,
          p.kind,
          p.f,
          p.limit,
          p.ids_settled};
}

}  // namespace

void multiply_experts(device& d, dtype type, const expert_lists& lists, const expert_product& p,
                      const expert_division& by) {
  if (d.failed() || p.slots == 0) return;
  const dtype weights = p.w.first.type;
  const expert_args a = args_of(lists, p);
  if (is_plain(weights)) {
    if (p.places != slot_places::by_slot) return expert_groups(d, type, p, a, by);
    if (!by.single) return expert_tiles(d, type, a, by);
    return can_stream_bulk(d, a) ? expert_stream_bulk(d, type, a, {}, nullptr) : expert_stream(d, type, a);
  }
  by.single ? expert_stream_blocks(d, weights, a) : expert_tile_blocks(d, weights, a, by);
}

bool multiply_mixture(device& d, dtype type, const expert_lists& lists, const expert_product& in,
                      const expert_product& out, const expert_division& by, const mixture_sum& sum) {
  if (d.failed() || in.slots == 0) return false;
  multiply_experts(d, type, lists, in, by);
  const expert_args second = args_of(lists, out);
  const bool adds = sum.x && by.single && is_plain(out.w.first.type) && can_stream_bulk(d, second);
  if (adds)
    expert_stream_bulk(d, type, second, sum, lists.added);
  else
    multiply_experts(d, type, lists, out, by);
  return adds;
}

}  // namespace weir::kernels::cuda
