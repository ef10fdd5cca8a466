// attention_widen.h — how attention_wgmma.cu loads tiles of pages of fp8 or q8: bulk copies into a ring of
// stored tiles, out of which all loading warps widen each tile to f16 in the layout that wgmma reads. The
// consumers see no difference. A code of q8 times its scale is rounded to f16.
#pragma once

#include "kernels/cuda/attention/attention_tile.h"

namespace weir::kernels::cuda {

#ifdef __CUDA_ARCH_FEAT_SM90_ALL

// All loading warps call load(). `thread` is the index among the loaders. Stored tiles are counted in the
// order in which they are loaded: tile 2 * n is the keys of the part's tile n, tile 2 * n + 1 its values.
template <page_type pages, int head_dim>
class widening_loader {
  static constexpr int units = head_dim / 16;  // of a token's row as it is stored
  static constexpr int bytes = stored_bytes<pages, head_dim>,
                       page_bytes = head_bytes(pages, head_dim, page_tokens),
                       in_slot = slot_tiles<pages, head_dim>, slots = stored_slots<pages, head_dim>;

 public:
  __device__ __forceinline__ widening_loader(const rows_view& view, const attention_args& args,
                                             const part& which, const rings& to, int thread_of)
      : v(view),
        a(args),
        p(which),
        r(to),
        thread(thread_of),
        lane(thread_of % 32),
        all(2 * (which.end - which.begin)) {}

  // Loads all tiles of the part.
  __device__ __forceinline__ void load() {
    const int rounds = all / in_slot;
    for (int i = 0; i < min(slots, rounds); ++i) ask(i);
    for (int i = 0; i < rounds; ++i) {
      barrier_wait(r.stored_full + i % slots * 8, i / slots % 2);
#pragma unroll
      for (int j = 0; j < in_slot; ++j) {
        const int at = i * in_slot + j, n = at / 2, stage = n % stages;
        const bool keys = at % 2 == 0;
        widen(r.stored + (i % slots * in_slot + j) * bytes,
              (keys ? r.keys : r.values) + stage * tile_bytes<head_dim>,
              (keys ? r.key_free : r.value_free) + stage * 8, (keys ? r.key_full : r.value_full) + stage * 8,
              n / stages % 2 ^ 1);
      }
      named_barrier(4, loaders<pages, head_dim>);  // no warp reads the slot any more
      if (i + slots < rounds) ask(i + slots);
    }
  }

 private:
  // Begins to copy the stored tiles of round `i` to their slot, by the first warp. As in attention_wgmma.cu a
  // last tile of one page has that page twice.
  __device__ __forceinline__ void ask(int i) {
    if (thread >= 32) return;
    constexpr int of_tile = tile_pages<head_dim>;
    const int n = i * in_slot / 2, slot = n * of_tile % 32;
    if (slot == 0 && i * in_slot % 2 == 0)
      ids = v.pages[p.b.pages_at + min(p.first_page + (p.begin + n) * of_tile + lane, p.last_page)];
    std::int32_t page[of_tile];
#pragma unroll
    for (int j = 0; j < of_tile; ++j) page[j] = __shfl_sync(~0u, ids, slot + j);
    if (lane != 0) return;
    const std::uint32_t full = r.stored_full + i % slots * 8, to = r.stored + i % slots * in_slot * bytes;
    barrier_expect(full, in_slot * bytes);
#pragma unroll
    for (int j = 0; j < in_slot; ++j)
#pragma unroll
      for (int k = 0; k < of_tile; ++k)
        copy_bulk(to + j * bytes + k * page_bytes,
                  ((i * in_slot + j) % 2 == 0 ? a.pages.keys : a.pages.values) +
                      (std::size_t(page[k]) * a.heads.kv_heads + blockIdx.x) * page_bytes,
                  page_bytes, full);
  }

  // Widens a stored tile into a stage of its ring, as soon as the consumers are done with it. A thread has
  // one token, or a part of its row, so that eight neighbours touch different banks.
  __device__ __forceinline__ void widen(std::uint32_t stored, std::uint32_t to, std::uint32_t free,
                                        std::uint32_t full, std::uint32_t parity) {
    barrier_wait(free, parity);
    // mine: units of a thread. some: of these, units that are read before the first is written.
    constexpr int tile = cuda::tile<head_dim>, mine = units / (loaders<pages, head_dim> / tile),
                  some = mine < 4 ? mine : 4;
    const int row = thread % tile, token = row % page_tokens, begin = thread / tile * mine;
    stored += row / page_tokens * page_bytes;
#pragma unroll
    for (int at = 0; at < mine; at += some) {
      const int first = begin + at;
      std::uint32_t w[some][4];
#pragma unroll
      for (int u = 0; u < some; ++u)
        asm volatile("ld.shared.v4.u32 {%0, %1, %2, %3}, [%4];"
                     : "=r"(w[u][0]), "=r"(w[u][1]), "=r"(w[u][2]), "=r"(w[u][3])
                     : "r"(stored + unit_at(first + u, token, units, page_tokens) * 16)
                     : "memory");
      __half2 scales[some / 2];
      if constexpr (pages == page_type::q8)
#pragma unroll
        for (int g = 0; g < some / 2; ++g) scales[g] = scale_of(stored, first / 2 + g, token);
#pragma unroll
      for (int i = 0; i < 2 * some; ++i) {
        const wide_pairs low = wide(w[i / 2][i % 2 * 2], scales[i / 4]),
                         high = wide(w[i / 2][i % 2 * 2 + 1], scales[i / 4]);
        asm volatile("st.shared.v4.u32 [%0], {%1, %2, %3, %4};" ::"r"(
                         to + unit_at(2 * first + i, row, 2 * units, tile) * 16),
                     "r"(low.low), "r"(low.high), "r"(high.low), "r"(high.high)
                     : "memory");
      }
    }
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
    barrier_arrive_warp(full);
  }

  // Four numbers as f16.
  static __device__ __forceinline__ wide_pairs wide(std::uint32_t four, __half2 scale) {
    if constexpr (pages == page_type::fp8) return widen_keys(four);
    const wide_pairs w = widen_code_keys(four);
    const auto by = *reinterpret_cast<const std::uint32_t*>(&scale);
    return {multiply_pairs(w.low, by), multiply_pairs(w.high, by)};
  }
  // The scale of a token's group in a page at `stored`. It is 515.5 at most, so that its numbers are at most
  // 65,469: a number that becomes infinite would become NaN at once.
  static __device__ __forceinline__ __half2 scale_of(std::uint32_t stored, int group, int token) {
    std::uint16_t bits;
    asm volatile("ld.shared.u16 %0, [%1];"
                 : "=h"(bits)
                 : "r"(stored + page_tokens * head_dim + (group * page_tokens + token) * 2)
                 : "memory");
    return __half2half2(__hmin_nan(__ushort_as_half(bits), __float2half_rn(515.5f)));
  }

  const rows_view& v;
  const attention_args& a;
  const part& p;
  const rings& r;
  const int thread, lane, all;  // all: stored tiles
  std::int32_t ids = 0;         // page numbers of 16 tiles, two a tile (the first warp)
};

#endif

}  // namespace weir::kernels::cuda
