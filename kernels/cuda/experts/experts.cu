#include "kernels/cuda/experts/experts.h"

#include "kernels/cuda/experts/put_expert.h"

namespace weir::kernels::cuda {

void multiply_experts(device& d, dtype type, const expert_lists& lists, const expert_product& p,
                      const expert_division& by) {
  if (d.failed() || p.slots == 0) return;
  const matrix& m = p.w.first;
  const expert_args a{static_cast<const unsigned char*>(m.data),
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
  if (is_plain(m.type)) {
    if (p.places != slot_places::by_slot) return expert_groups(d, type, p, a, by);
    if (!by.single) return expert_tiles(d, type, a, by);
    return can_stream_bulk(d, a) ? expert_stream_bulk(d, type, a) : expert_stream(d, type, a);
  }
  by.single ? expert_stream_blocks(d, m.type, a) : expert_tile_blocks(d, m.type, a, by);
}

}  // namespace weir::kernels::cuda
