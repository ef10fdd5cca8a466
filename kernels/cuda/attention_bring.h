// attention_bring.h — the warp of attention_bulk.cu that brings keys and values.
#pragma once

#include "kernels/cuda/attention_ring.h"

namespace weir::kernels::cuda {

// Brings what is met: one warp.
template <int head_dim>
class bringer {
  // bytes of a token's row
  static constexpr int wide = panel_units(head_dim / 8) * 16, panels = head_dim * 2 / wide;

 public:
  __device__ __forceinline__ bringer(const decode_args& args, ring<head_dim>& to)
      : g(args),
        r(to),
        shape(args.a.heads),
        lane(static_cast<int>(threadIdx.x % 32)),
        heads(static_cast<int>(args.a.heads.kv_heads)),
        all(*args.v.listed * heads) {}

  // What an item needs to know is on its way while those before it are brought: its entry for one item's
  // time, its pages for most of one, and the number of who comes after it, but for the first two of a block.
  __device__ __forceinline__ void run() {
    const int blocks = static_cast<int>(gridDim.x);
    int index = static_cast<int>(blockIdx.x), next = index + blocks;
    decode_row entry = entry_of(index), entry_next = entry_of(next);
    if (index < all) ids = pages_of(entry);
    while (index < all) {
      const bool waited_before = waited;
      if (waited_before) ask(next);
      bring(entry, index % heads, entry_next, next < all);
      wait();
      if (!waited_before) ask(next);
      index = next;
      entry = entry_next;
      ids = ids_next;
      if (next < all) next = 2 * blocks + static_cast<int>(__shfl_sync(~0u, asked, 0));
      entry_next = entry_of(next);
    }
    next_stage();
    if (lane == 0) {
      r.what[stage].of.head = -1;
      barrier_arrive(shared_address(&r.full[stage]));
    }
  }

 private:
  __device__ __forceinline__ decode_row entry_of(int index) const {
    return g.v.decode_rows[min(index, all - 1) / heads];
  }

  // For who comes behind `next`, if there is one. Each block that has a second item asks until there is no
  // more, which makes the number 0 again. Not before the kernel before is over: another like this one,
  // further before, may still ask.
  __device__ __forceinline__ void ask(int next) {
    if (lane == 0 && next < all)
      asked = atomicInc(g.scratch.arrived, static_cast<unsigned>(all) - gridDim.x - 1);
  }

  // An entry's pieces of its row: none where the window leaves fewer than there are parts.
  struct range {
    int parts, begin, end, last_page;
    __device__ __forceinline__ range(const decode_row& e, std::uint32_t window) {
      const seen_tokens seen(e.position, window);
      const int pieces = seen.pieces(), part = e.part;
      parts = min(static_cast<int>(e.parts), pieces);
      begin = seen.first_piece() + pieces * min(part, parts) / parts;
      end = seen.first_piece() + pieces * min(part + 1, parts) / parts;
      last_page = seen.to / page_tokens;
    }
  };

  // Of 32 pages from one on, or from an entry's first on: one a lane.
  __device__ __forceinline__ std::int32_t pages_from(const decode_row& e, const range& in, int page) const {
    return g.v.pages[e.pages_at + min(page + lane, in.last_page)];
  }
  __device__ __forceinline__ std::int32_t pages_of(const decode_row& e) const {
    const range in(e, g.a.window);
    return pages_from(e, in, in.begin / page_pieces);
  }

  __device__ __forceinline__ void bring(const decode_row& e, int head, const decode_row& entry_next,
                                        bool more) {
    const range in(e, g.a.window);
    int first_page = in.begin / page_pieces;  // of ids
    const int kept = items % stages<head_dim>;
    items += in.begin < in.end;
    for (int i = in.begin; i < in.end;) {
      const int page = i / page_pieces, stop = min(in.end, (page + 1) * page_pieces);
      if (page >= first_page + 32) {
        first_page = page;
        ids = pages_from(e, in, page);
      }
      const std::int32_t id = __shfl_sync(~0u, ids, page - first_page);
      if (used >= stages<head_dim>) wait();
      next_stage();
      if (lane == 0) {
        chunk& c = r.what[stage];
        c.of = {e.row, head, e.part, in.parts, e.slot};
        c.position = e.position;
        c.page = id;
        c.at = page * page_pieces;
        c.first = i - c.at;
        c.end = stop - c.at;
        c.kept = kept;
        c.begins = i == in.begin;
        c.ends = stop == in.end;
        barrier_expect(shared_address(&r.full[stage]),
                       static_cast<std::uint32_t>((stop - i) * piece_bytes<head_dim> +
                                                  (i == in.begin ? slot_bytes() : 0)));
      }
      __syncwarp();
      copy(id, head, i - page * page_pieces, stop - i);
      if (i == in.begin) {
        if (waited)
          bring_slot(e.row, head, kept, stage);
        else
          owed = e.row, owed_head = head;  // to the first slot, with the first stage
        if (more) ids_next = pages_of(entry_next);
      }
      i = stop;
    }
    if (in.begin == in.end && more) ids_next = pages_of(entry_next);
  }

  __device__ __forceinline__ void next_stage() {
    stage = used % stages<head_dim>;
    barrier_wait(shared_address(&r.empty[stage]), (used / stages<head_dim> + 1) & 1);
    ++used;
  }

  __device__ __forceinline__ int slot_bytes() const { return g.fresh ? shape.bytes() : shape.queries; }

  // For the kernel before, behind as much of the first item as there is room for. Only then its slot can be
  // brought.
  __device__ __forceinline__ void wait() {
    if (waited) return;
    waited = true;
    wait_for_previous();
    if (owed >= 0) bring_slot(owed, owed_head, 0, 0);
  }

  __device__ __forceinline__ void bring_slot(int row, int head, int kept, int with) {
    const std::uint32_t to = shared_address(slot_at(r, shape, kept)), barrier = shared_address(&r.full[with]);
    const element* qkv = g.a.qkv + static_cast<std::size_t>(row) * g.a.heads.width();
    if (lane == 0) copy_bulk(to, qkv + head * (shape.queries / 2), shape.queries, barrier);
    if (!g.fresh || lane == 0 || lane > 4) return;
    const std::size_t angle = static_cast<std::size_t>(row) * (head_dim / 2);
    const element* key = qkv + (g.a.heads.heads + head) * head_dim;
    const void* from = lane == 1   ? static_cast<const void*>(key)
                       : lane == 2 ? static_cast<const void*>(key + heads * head_dim)
                       : lane == 3 ? static_cast<const void*>(g.t.cos + angle)
                                   : static_cast<const void*>(g.t.sin + angle);
    const int before = lane <= 2 ? (lane - 1) * shape.row : 2 * shape.row + (lane - 3) * shape.angles;
    copy_bulk(to + shape.queries + before, from, lane <= 2 ? shape.row : shape.angles, barrier);
  }

  // `n` pieces of the page, from `first` on: a lane a panel, of its keys and then of its values.
  __device__ __forceinline__ void copy(std::int32_t id, int head, int first, int n) {
    if (lane >= 2 * panels) return;
    const auto* pages =
        reinterpret_cast<const unsigned char*>(lane < panels ? g.a.pages.keys : g.a.pages.values);
    const std::size_t place = (static_cast<std::size_t>(id) * heads + head) * page_tokens * head_dim * 2 +
                              (lane % panels * page_tokens + first * piece_tokens) * wide;
    copy_bulk(shared_address(r.stage[stage]) + (lane * page_tokens + first * piece_tokens) * wide,
              pages + place, n * piece_tokens * wide, shared_address(&r.full[stage]));
  }

  const decode_args& g;
  ring<head_dim>& r;
  const slot_shape shape;
  const int lane, heads, all;  // all: items
  int used = 0, stage = 0, items = 0;  // chunks, where the last of them is, items
  unsigned asked = 0;
  bool waited = false;
  int owed = -1, owed_head = 0;  // the first item's row
  std::int32_t ids = 0, ids_next = 0;  // pages_of this item's entry, and of the next one's
};

}  // namespace weir::kernels::cuda
