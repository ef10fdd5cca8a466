// attention_widen.h — how the loading warpgroup of attention_wgmma.cu gets tiles of fp8 pages: bulk copies
// into a ring of stored tiles, out of which the four warps widen each tile to f16 in the layout that wgmma
// reads. The consumers see no difference.
#pragma once

#include "kernels/cuda/attention_tile.h"

namespace weir::kernels::cuda {

#ifdef __CUDA_ARCH_FEAT_SM90_ALL

// All four warps of the loading warpgroup call load(). `thread` is the index in the warpgroup.
template <int head_dim>
class widening_loader {
  static constexpr int units = head_dim / 16;  // of a token's row as it is stored

 public:
  __device__ __forceinline__ widening_loader(const rows_view& view, const attention_args& args,
                                             const part& which, const rings& to, int thread_of)
      : v(view), a(args), p(which), r(to), thread(thread_of), lane(thread_of % 32) {}

  // Loads all tiles of the part. The ring of stored tiles has a stage for each stage of the rings.
  __device__ __forceinline__ void load() {
    for (int t = p.begin; t < min(p.begin + stages, p.end); ++t) ask(t);
    for (int t = p.begin; t < p.end; ++t) {
      const int n = t - p.begin, stage = n % stages;
      const std::uint32_t parity = n / stages % 2;
      barrier_wait(r.stored_full + stage * 8, parity);
      const std::uint32_t stored = r.stored + stage * 2 * stored_bytes<head_dim>;
      widen(stored, r.keys + stage * tile_bytes<head_dim>, r.key_free + stage * 8, r.key_full + stage * 8,
            parity ^ 1);
      widen(stored + stored_bytes<head_dim>, r.values + stage * tile_bytes<head_dim>,
            r.value_free + stage * 8, r.value_full + stage * 8, parity ^ 1);
      named_barrier(4, loaders);  // no warp reads the stage any more
      if (t + stages < p.end) ask(t + stages);
    }
  }

 private:
  // Begins to copy the keys and the values of tile `t`, by the first warp. As in attention_wgmma.cu a last
  // tile of one page has that page twice.
  __device__ __forceinline__ void ask(int t) {
    if (thread >= 32) return;
    const int n = t - p.begin, stage = n % stages, slot = n * 2 % 32;
    if (slot == 0) ids = v.pages[p.b.pages_at + min(p.first_page + t * 2 + lane, p.last_page)];
    const std::int32_t page[2] = {__shfl_sync(~0u, ids, slot), __shfl_sync(~0u, ids, slot + 1)};
    if (lane != 0) return;
    constexpr int half = stored_bytes<head_dim> / 2;
    const std::uint32_t full = r.stored_full + stage * 8, to = r.stored + stage * 2 * stored_bytes<head_dim>;
    barrier_expect(full, 2 * stored_bytes<head_dim>);
#pragma unroll
    for (int i = 0; i < 2; ++i) {
      const std::size_t at = (std::size_t(page[i]) * a.heads.kv_heads + blockIdx.x) * half;
      copy_bulk(to + i * half, a.pages.keys + at, half, full);
      copy_bulk(to + stored_bytes<head_dim> + i * half, a.pages.values + at, half, full);
    }
  }

  // Widens one tile of keys or of values into a stage of its ring, as soon as the consumers are done with it.
  // A thread has one token, so that eight neighbours touch different banks.
  __device__ __forceinline__ void widen(std::uint32_t stored, std::uint32_t to, std::uint32_t free,
                                        std::uint32_t full, std::uint32_t parity) {
    barrier_wait(free, parity);
    const int token = thread % page_tokens;
    stored += thread / page_tokens * (stored_bytes<head_dim> / 2);
    constexpr int some = 4;  // units that are read before the first is written
#pragma unroll
    for (int first = 0; first < units; first += some) {
      std::uint32_t w[some][4];
#pragma unroll
      for (int u = 0; u < some; ++u)
        asm volatile("ld.shared.v4.u32 {%0, %1, %2, %3}, [%4];"
                     : "=r"(w[u][0]), "=r"(w[u][1]), "=r"(w[u][2]), "=r"(w[u][3])
                     : "r"(stored + unit_at(first + u, token, units, page_tokens) * 16)
                     : "memory");
#pragma unroll
      for (int i = 0; i < 2 * some; ++i) {
        const wide_pairs low = widen_keys(w[i / 2][i % 2 * 2]), high = widen_keys(w[i / 2][i % 2 * 2 + 1]);
        asm volatile("st.shared.v4.u32 [%0], {%1, %2, %3, %4};" ::"r"(
                         to + unit_at(2 * first + i, thread, 2 * units, tile) * 16),
                     "r"(low.low), "r"(low.high), "r"(high.low), "r"(high.high)
                     : "memory");
      }
    }
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
    barrier_arrive_warp(full);
  }

  const rows_view& v;
  const attention_args& a;
  const part& p;
  const rings& r;
  const int thread, lane;
  std::int32_t ids = 0;  // page numbers of 16 tiles, two a tile (the first warp)
};

#endif

}  // namespace weir::kernels::cuda
