// attention_load.h — the load warp of attention_bulk.cu: takes items and copies their keys and values,
// queries and angles into the block's ring (attention_ring.h), by bulk copies.
#pragma once

#include "kernels/cuda/attention/attention_ring.h"

namespace weir::kernels::cuda {

// The load warp of a block. Every function is called by all 32 lanes.
template <page_type pages, int head_dim>
class loader {
  // row: bytes of a token's row. wide: of those, the bytes in a panel. panels: panels of a head.
  static constexpr int row = head_dim * number_bytes(pages);
  static constexpr int wide = panel_units(row / 16) * 16, panels = row / wide;
  static constexpr int half = head_bytes(pages, head_dim, page_tokens);  // bytes of a page's keys
  static constexpr int scales = half - page_tokens * row;                // of these, bytes of scales
  static constexpr int stages = cuda::stages<pages, head_dim>;

 public:
  __device__ __forceinline__ loader(const decode_args& args, ring<pages, head_dim>& to)
      : g(args),
        r(to),
        shape(args.a.heads),
        lane(static_cast<int>(threadIdx.x % 32)),
        heads(static_cast<int>(args.a.heads.kv_heads)),
        all(*args.v.listed * heads) {}

  // Loads items until there are none left, then passes on a chunk whose head is -1.
  //
  // The first two items of a block are those with its own index and with its index + gridDim.x; the index of
  // each further one comes from a counter in memory of the device (ask). What an item needs is read ahead, so
  // that the load warp does not wait for it: while one item is loaded, the list entry and the page numbers of
  // the next one are read, and the index of the one behind that is taken.
  __device__ __forceinline__ void run() {
    const int blocks = static_cast<int>(gridDim.x);
    int index = static_cast<int>(blockIdx.x), next = index + blocks;
    decode_row entry = entry_of(index), entry_next = entry_of(next);
    if (index < all) ids = pages_of(entry);
    while (index < all) {
      const bool waited_before = waited;
      if (waited_before) ask(next);
      load(entry, index % heads, entry_next, next < all);
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
  // The list entry of item `index`, or of the last item where the list has no such item.
  __device__ __forceinline__ decode_row entry_of(int index) const {
    return g.v.decode_rows[min(index, all - 1) / heads];
  }

  // Takes the index of the item after `next` from the counter, where there is a `next`; lane 0 has it in
  // `asked`. All blocks together ask once for each item that is not a block's first, and the last of these
  // calls wraps the counter to 0 for the next kernel. No block may call it before the kernels in front of
  // this one have ended: one of them may be of this kind, and still use the counter.
  __device__ __forceinline__ void ask(int next) {
    if (lane == 0 && next < all)
      asked = atomicInc(g.scratch.arrived, static_cast<unsigned>(all) - gridDim.x - 1);
  }

  // The pieces [begin, end) of the sequence that an entry stands for, and the index of the sequence's last
  // page. Where the window leaves fewer pieces than there are parts, `parts` is the number of pieces, and the
  // entries of the other parts are empty.
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

  // The numbers of the sequence's pages `page` to `page` + 31, one a lane; behind the last page, that of the
  // last page.
  __device__ __forceinline__ std::int32_t pages_from(const decode_row& e, const range& in, int page) const {
    return g.v.pages[e.pages_at + min(page + lane, in.last_page)];
  }
  // The numbers of the entry's first 32 pages, one a lane.
  __device__ __forceinline__ std::int32_t pages_of(const decode_row& e) const {
    const range in(e, g.a.rule.window);
    return pages_from(e, in, in.begin / page_pieces);
  }

  // Loads the item of entry `e` and key head `head`, page by page, each page into the next stage. The item's
  // slot is loaded with the first page. `ids` are the entry's pages_of. Where there are `more` items, reads
  // pages_of(entry_next) into ids_next.
  __device__ __forceinline__ void load(const decode_row& e, int head, const decode_row& entry_next,
                                       bool more) {
    const range in(e, g.a.rule.window);
    int first_page = in.begin / page_pieces;  // the page whose number is in lane 0 of ids
    const int kept = items % stages;
    items += in.begin < in.end;
    for (int i = in.begin; i < in.end;) {
      const int page = i / page_pieces, stop = min(in.end, (page + 1) * page_pieces);
      if (page >= first_page + 32) {
        first_page = page;
        ids = pages_from(e, in, page);
      }
      const std::int32_t id = __shfl_sync(~0u, ids, page - first_page);
      if (used >= stages) wait();
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
                       static_cast<std::uint32_t>(2 * ((stop - i) * piece_tokens * row + scales) +
                                                  (i == in.begin ? slot_bytes() : 0)));
      }
      __syncwarp();
      copy(id, head, i - page * page_pieces, stop - i);
      if (i == in.begin) {
        if (waited)
          load_slot(e.row, head, kept, stage);
        else
          owed = e.row, owed_head = head;  // wait() loads it into slot 0, with stage 0
        if (more) ids_next = pages_of(entry_next);
      }
      i = stop;
    }
    if (in.begin == in.end && more) ids_next = pages_of(entry_next);
  }

  // Waits until the next stage of the ring is empty, and makes it `stage`.
  __device__ __forceinline__ void next_stage() {
    stage = used % stages;
    barrier_wait(shared_address(&r.empty[stage]), (used / stages + 1) & 1);
    ++used;
  }

  // The bytes that load_slot() copies.
  __device__ __forceinline__ int slot_bytes() const { return g.fresh ? shape.bytes() : shape.queries; }

  // Waits for the kernel in front of this one, the first time it is called, and then loads the slot of the
  // first item, which that kernel computes. It is called as late as possible: keys and values of the first
  // item are already under way, as far as there are stages.
  __device__ __forceinline__ void wait() {
    if (waited) return;
    waited = true;
    wait_for_previous();
    if (owed >= 0) load_slot(owed, owed_head, 0, 0);
  }

  // Copies the item's queries, and where they are fresh its key, value and angles, into slot `kept`. The
  // copies count for the `full` barrier of stage `with`.
  __device__ __forceinline__ void load_slot(int row, int head, int kept, int with) {
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

  // Copies pieces [first, first + n) of page number `id` to the same place in the current stage, and all
  // scales of the page. One lane copies one panel of the keys or of the values, or the scales of one of them.
  __device__ __forceinline__ void copy(std::int32_t id, int head, int first, int n) {
    constexpr int copies = panels + (scales != 0);
    if (lane >= 2 * copies) return;
    const bool of_values = lane >= copies, of_scales = lane % copies == panels;
    const int at =
        of_scales ? page_tokens * row : (lane % copies * page_tokens + first * piece_tokens) * wide;
    const unsigned char* from = (of_values ? g.a.pages.values : g.a.pages.keys) +
                                (static_cast<std::size_t>(id) * heads + head) * half + at;
    copy_bulk(shared_address(r.stage[stage]) + of_values * half + at, from,
              of_scales ? scales : n * piece_tokens * wide, shared_address(&r.full[stage]));
  }

  const decode_args& g;
  ring<pages, head_dim>& r;
  const slot_shape shape;
  const int lane, heads, all;  // this lane; key heads; all items of the list
  // used: chunks begun so far. stage: the stage of the last of them. items: items begun so far that are not
  // empty.
  int used = 0, stage = 0, items = 0;
  unsigned asked = 0;   // what ask() got (lane 0)
  bool waited = false;  // the kernel in front of this one has ended
  // The row and key head of the first item while its slot is not loaded yet; else `owed` is -1.
  int owed = -1, owed_head = 0;
  // Page numbers, one a lane: 32 pages of this item, and the first 32 of the next one.
  std::int32_t ids = 0, ids_next = 0;
};

}  // namespace weir::kernels::cuda
