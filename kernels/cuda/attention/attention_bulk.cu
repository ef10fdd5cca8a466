// Decode attention by bulk copies, on the Hopper path, for steps with more pairs of a row and a key head than
// multiprocessors.
//
// The rows are listed longest first, and rows that are much longer than the others are listed in parts
// (list_decodes). Each block takes items from the list until none is left. A block has three kinds of warps,
// which work at the same time, so that loading does not stop at the end of a context. The load warp copies
// keys and values page by page, and with each item its queries and its fresh key and value. Four compute
// warps multiply one piece of each page each. The join warp merges the four results of an item. Where a row
// is in parts, the join warp that finishes the last part merges the parts.
#include <algorithm>

#include "kernels/cuda/attention/attention_fresh.h"
#include "kernels/cuda/attention/attention_join.h"
#include "kernels/cuda/attention/attention_load.h"
#include "kernels/cuda/pages/head_size.h"

namespace weir::kernels::cuda {
namespace {

// A compute warp: adds its piece of each page to its sums.
template <page_type pages, int head_dim, bool usual>
class compute_warp {
  static constexpr int pairs = head_dim / 8, lines = join_lines<head_dim>;
  static constexpr int stages = cuda::stages<pages, head_dim>;

 public:
  __device__ __forceinline__ compute_warp(const decode_args& args, ring<pages, head_dim>& from)
      : g(args),
        r(from),
        shape(args.a.heads),
        warp(static_cast<int>(threadIdx.x / 32)),
        lane(static_cast<int>(threadIdx.x % 32)),
        group(static_cast<int>(args.a.heads.heads / args.a.heads.kv_heads)) {}

  __device__ __forceinline__ void run() {
    float unit = score_unit<usual>(g, 0);  // of usual models it is the same for all rows
    queries<pages, head_dim> q;
    for (int used = 0;; ++used) {
      const int stage = used % stages;
      barrier_wait(shared_address(&r.full[stage]), (used / stages) & 1);
      const chunk c = r.what[stage];
      if (c.of.head < 0) break;
      const unsigned char* slot = slot_at(r, shape, c.kept);
      const auto* cos = reinterpret_cast<const float*>(slot + shape.queries + 2 * shape.row);
      const float* sin = cos + head_dim / 2;
      if (c.begins) {
        if constexpr (!usual) unit = score_unit<usual>(g, c.position);
        q.template load<usual>(g, static_cast<std::uint32_t>(c.of.head),
                               reinterpret_cast<const element*>(slot), cos, sin, lane);
        m.clear();
      }
      if (warp >= c.first && warp < c.end) {
        const seen_tokens seen(c.position, g.a.rule.window);
        unsigned char* page = r.stage[stage];
        if (g.fresh && c.at + warp == seen.last_piece()) {
          const auto* key = reinterpret_cast<const element*>(slot + shape.queries);
          fresh_numbers<pages, head_dim> fresh;
          fresh.template load<usual>(g, fresh_row(key, key + head_dim, cos, sin), lane);
          fresh.template lay<usual, page_tokens>(g, static_cast<std::uint32_t>(c.of.head), c.position, c.page,
                                                 page, r.rooms[warp], lane);
          // Orders the accesses above before a later bulk copy that overwrites the stage.
          asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
          __syncwarp();
        }
        m.template add<page_tokens>(q, shared_address(page), warp * piece_tokens, c.at + warp, seen, unit,
                                    usual ? 0.0f : g.a.rule.cap, lane);
      }
      barrier_arrive_warp(shared_address(&r.empty[stage]));
      if (!c.ends) continue;
      m.sum_totals();
      for (int line = 0; line < group; line += lines) tell(c.of, line);
    }
    item none{};
    none.head = -1;
    tell(none, 0);
  }

 private:
  // Passes the sums of query heads `line` to `line` + lines - 1 of the group on to the join warp. An item
  // whose head is -1 ends the join warp.
  __device__ __forceinline__ void tell(const item& of, int line) {
    barrier_wait(shared_address(&r.sums_empty), (told++ + 1) & 1);
    if (threadIdx.x == 0) r.joined = of;
    const int mine = lane / 4 - line % 8;
    if (mine >= 0 && mine < lines) {
      if (line < 8)
        put<0>(mine);
      else
        put<1>(mine);
    }
    barrier_arrive_warp(shared_address(&r.sums_full));
  }

  // Writes one head's sums for the join warp: of head lane / 4, or with `upper` of head lane / 4 + 8.
  template <int upper>
  __device__ __forceinline__ void put(int at) {
#pragma unroll
    for (int i = 0; i < pairs; ++i)
      *reinterpret_cast<float2*>(&r.sums[warp][at][pair_at<pages>(i, lane)]) =
          pair_of_sums<pages>(m.result, i, upper);
    if (lane % 4 == 0) r.ends[warp][at] = make_float2(m.largest[upper], m.total[upper]);
  }

  const decode_args& g;
  ring<pages, head_dim>& r;
  const slot_shape shape;
  const int warp, lane, group;
  attention_sums<pages, head_dim> m;
  int told = 0;
};

// The blocks that must fit on a multiprocessor by their registers; 0: what the compiler chooses lets two fit.
template <page_type pages, int head_dim>
constexpr unsigned least_blocks = pages == page_type::q8&& head_dim == 128 ? 2 : 0;

template <page_type pages, int head_dim, bool usual>
__global__ void __launch_bounds__(bulk_threads, (least_blocks<pages, head_dim>))
    bulk_kernel(const __grid_constant__ decode_args g) {
#ifdef __CUDA_ARCH_FEAT_SM90_ALL
  extern __shared__ __align__(128) unsigned char raw[];
  auto& r = *reinterpret_cast<ring<pages, head_dim>*>(raw);
  let_next_start();
  if (threadIdx.x == 0) {
    for (int s = 0; s < stages<pages, head_dim>; ++s) {
      barrier_init(shared_address(&r.full[s]), 1);
      barrier_init(shared_address(&r.empty[s]), compute_warps * warp_arrivals);
    }
    barrier_init(shared_address(&r.sums_full), compute_warps * warp_arrivals);
    barrier_init(shared_address(&r.sums_empty), warp_arrivals);
    barrier_inits_end();
  }
  __syncthreads();
  const int warp = static_cast<int>(threadIdx.x / 32);
  // As in attention_decode.cu. With g.fresh the load warp waits later: what it loads before that was written
  // before the step.
  if (!g.fresh || warp != compute_warps) wait_for_previous();
  if (warp == compute_warps)
    loader<pages, head_dim>(g, r).run();
  else if (warp < compute_warps)
    compute_warp<pages, head_dim, usual>(g, r).run();
  else
    joiner<pages, head_dim>(g, r).run();
#endif
}

template <page_type pages, int head_dim>
std::size_t shared_bytes(const head_shape& h) {
  static_assert(sizeof(ring<pages, head_dim>) == bulk_ring_bytes(pages, head_dim));
  return sizeof(ring<pages, head_dim>) +
         stages<pages, head_dim> * static_cast<std::size_t>(slot_shape(h).bytes());
}

}  // namespace

void bulk_attention(device& d, const decode_args& g) {
  with_heads(g.a.heads, [&](auto pages, auto size) {
    const std::size_t shared = shared_bytes<pages, size>(g.a.heads);
    const auto kernel = g.is_usual() ? bulk_kernel<pages, size, true> : bulk_kernel<pages, size, false>;
    allow_shared(d, kernel, shared);
    launch(d, kernel, dim3(bulk_blocks(d, g.a.heads)), bulk_threads, shared, g);
  });
}

}  // namespace weir::kernels::cuda
