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
    return by.single ? expert_stream(d, type, a) : expert_tiles(d, type, a, by);
  }
  by.single ? expert_stream_blocks(d, weights, a) : expert_tile_blocks(d, weights, a, by);
}

bool multiply_mixture(device& d, dtype type, const expert_lists& lists, const expert_product& in,
                      const expert_product& out, const expert_division& by, const mixture_sum& sum) {
  if (d.failed() || in.slots == 0) return false;
  if (by.single && is_plain(in.w.first.type) && is_plain(out.w.first.type)) {
    const expert_args first = args_of(lists, in), second = args_of(lists, out);
    if (can_stream_both(d, type, first, second)) {
      expert_stream_both(d, type, first, second, lists.added, sum);
      return sum.x != nullptr;
    }
  }
  multiply_experts(d, type, lists, in, by);
  multiply_experts(d, type, lists, out, by);
  return false;
}

}  // namespace weir::kernels::cuda
