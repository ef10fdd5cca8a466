// Decode attention by bulk copies (9.0), for more rows than there are multiprocessors for their key heads.
//
// The rows are listed longest first, those that are much longer than the others in parts (list_decodes), and each block
// takes what is next until there is no more. In a block three kinds of warps pass on to each other, so that reading never
// stops where a context ends: one brings keys and values a page at a time, and with each item its queries and its fresh key
// and value; four meet a piece of the page each; one joins what they have met of an item. Of a row in parts the last to be
// ready joins them.
#include <algorithm>
#include <climits>
#include <type_traits>

#include "kernels/cuda/attention_piece.h"
#include "kernels/cuda/barrier.h"

namespace weir::kernels::cuda {
namespace {

constexpr int page_pieces = page_tokens / piece_tokens;

constexpr int meeters = page_pieces;  // warps that meet a piece each
constexpr unsigned threads = (meeters + 2) * 32;

// Of a ring of 64 KB, or of two stages: two blocks find room beside each other.
template <int head_dim>
constexpr int stage_bytes = page_pieces * piece_bytes<head_dim>;
template <int head_dim>
constexpr int stages = std::max(2, 65536 / stage_bytes<head_dim>);

// Query heads that are joined at once.
template <int head_dim>
constexpr int join_lines = std::min(8, 512 / head_dim);

// One key head of one entry of the list.
struct item {
  int row, head;
  int part, parts, slot;  // as the entry has them
};

// What a stage of the ring holds: pieces of one page.
struct chunk {
  item of;            // head -1: there is no more
  int position;       // of the row
  int page, at;       // where the page lies; its first piece, of the row's
  int first, end;     // its pieces that are here
  int kept;           // where the item's slot is
  bool begins, ends;  // whether it is the item's first or last
};

template <int head_dim>
struct alignas(128) ring {
  unsigned char stage[stages<head_dim>][stage_bytes<head_dim>];
  float met[meeters][join_lines<head_dim>][head_dim + 4];
  float2 ends[meeters][join_lines<head_dim>];  // the largest score, the total
  chunk what[stages<head_dim>];
  item joined;
  std::uint64_t full[stages<head_dim>], empty[stages<head_dim>], met_full, met_empty;
  // Behind it: the items' slots, as many as there are stages.
};

// What an item has from the kernel before: its queries as they lie in qkv; and where they are fresh its key, its value, and
// its row's angles.
struct slot_shape {
  int queries, row, angles;  // bytes
  __host__ __device__ explicit slot_shape(const head_shape& h)
      : queries(static_cast<int>(h.heads / h.kv_heads * h.head_dim * 2)),
        row(static_cast<int>(h.head_dim * 2)),
        angles(static_cast<int>(h.head_dim / 2 * 4)) {}
  __host__ __device__ int bytes() const { return queries + 2 * row + 2 * angles; }
};

template <int head_dim>
__device__ __forceinline__ unsigned char* slot_at(ring<head_dim>& r, const slot_shape& shape, int slot) {
  return reinterpret_cast<unsigned char*>(&r + 1) + slot * shape.bytes();
}

// What one part leaves: [group, head_dim], then its largest scores and totals. Parts begin at whole fours.
__host__ __device__ inline int part_floats(const head_shape& h) {
  return static_cast<int>((h.heads / h.kv_heads * (h.head_dim + 2) + 3) / 4 * 4);
}

// Brings what is met: one warp.
template <int head_dim>
class bringer {
  static constexpr int wide = panel_units(head_dim / 8) * 16, panels = head_dim * 2 / wide;  // bytes of a token's row

 public:
  __device__ __forceinline__ bringer(const decode_args& args, ring<head_dim>& to)
      : g(args),
        r(to),
        shape(args.a.heads),
        lane(static_cast<int>(threadIdx.x % 32)),
        heads(static_cast<int>(args.a.heads.kv_heads)),
        all(*args.v.listed * heads) {}

  // What an item needs to know is on its way while those before it are brought: its entry for one item's time, its pages for
  // most of one, and the number of who comes after it, but for the first two of a block.
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

  // For who comes behind `next`, if there is one. Each block that has a second item asks until there is no more, which makes
  // the number 0 again. Not before the kernel before is over: another like this one, further before, may still ask.
  __device__ __forceinline__ void ask(int next) {
    if (lane == 0 && next < all) asked = atomicInc(g.scratch.arrived, static_cast<unsigned>(all - static_cast<int>(gridDim.x)) - 1);
  }

  struct range {
    int begin, end, last_page;  // pieces of the row; its last page
    int parts;
    __device__ __forceinline__ range(const decode_row& e, std::uint32_t window) {
      const seen_tokens seen(e.position, window);
      const int pieces = seen.pieces();
      parts = min(static_cast<int>(e.parts), pieces);
      begin = seen.first_piece() + static_cast<int>(static_cast<long long>(pieces) * e.part / parts);
      end = e.part < parts ? seen.first_piece() + static_cast<int>(static_cast<long long>(pieces) * (e.part + 1) / parts) : begin;
      last_page = seen.to / page_tokens;
    }
  };

  // Of 32 pages from an entry's first on, one a lane.
  __device__ __forceinline__ std::int32_t pages_of(const decode_row& e) const {
    const range in(e, g.a.window);
    return g.v.pages[e.pages_at + min(in.begin / page_pieces + lane, in.last_page)];
  }

  __device__ __forceinline__ void bring(const decode_row& e, int head, const decode_row& entry_next, bool more) {
    const range in(e, g.a.window);
    int first_page = in.begin / page_pieces;  // of ids
    const int kept = items % stages<head_dim>;
    items += in.begin < in.end;
    for (int i = in.begin; i < in.end;) {
      const int page = i / page_pieces, stop = min(in.end, (page + 1) * page_pieces);
      if (page >= first_page + 32) {
        first_page = page;
        ids = g.v.pages[e.pages_at + min(page + lane, in.last_page)];
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
                       static_cast<std::uint32_t>((stop - i) * piece_bytes<head_dim> + (i == in.begin ? slot_bytes() : 0)));
      }
      __syncwarp();
      copy(id, head, i - page * page_pieces, stop - i);
      if (i == in.begin) {
        if (waited)
          bring_slot(e.row, head, kept, stage);
        else
          owed = e.row, owed_head = head;  // to the first slot, with the first stage
      }
      if (i == in.begin && more) ids_next = pages_of(entry_next);
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

  // For the kernel before, behind as much of the first item as there is room for. Only then its slot can be brought.
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
    const auto* pages = reinterpret_cast<const unsigned char*>(lane < panels ? g.a.pages.keys : g.a.pages.values);
    const std::size_t place = (static_cast<std::size_t>(id) * heads + head) * page_tokens * head_dim * 2 +
                              (lane % panels * page_tokens + first * piece_tokens) * wide;
    copy_bulk(shared_address(r.stage[stage]) + (lane * page_tokens + first * piece_tokens) * wide, pages + place,
              n * piece_tokens * wide, shared_address(&r.full[stage]));
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

// Meets what is brought: each warp its piece of a chunk.
template <dtype type, int head_dim>
class meeter {
  static constexpr int units = head_dim / 8, lines = join_lines<head_dim>;

 public:
  __device__ __forceinline__ meeter(const decode_args& args, ring<head_dim>& from)
      : g(args),
        r(from),
        shape(args.a.heads),
        warp(static_cast<int>(threadIdx.x / 32)),
        lane(static_cast<int>(threadIdx.x % 32)),
        group(static_cast<int>(args.a.heads.heads / args.a.heads.kv_heads)) {}

  __device__ __forceinline__ void run() {
    const float log2_scale = g.a.scale * 1.44269504f;
    queries<type, head_dim> q;
    for (int used = 0;; ++used) {
      const int stage = used % stages<head_dim>;
      barrier_wait(shared_address(&r.full[stage]), (used / stages<head_dim>) & 1);
      const chunk c = r.what[stage];
      if (c.of.head < 0) break;
      const unsigned char* slot = slot_at(r, shape, c.kept);
      const auto* cos = reinterpret_cast<const float*>(slot + shape.queries + 2 * shape.row);
      const float* sin = cos + head_dim / 2;
      if (c.begins) {
        q.load(g, static_cast<std::uint32_t>(c.of.head), reinterpret_cast<const element*>(slot), cos, sin, lane);
        m.clear();
      }
      if (warp >= c.first && warp < c.end) {
        const seen_tokens seen(c.position, g.a.window);
        auto* page = reinterpret_cast<element*>(r.stage[stage]);
        if (g.fresh && c.at + warp == seen.last_piece()) {
          const auto* key = reinterpret_cast<const element*>(slot + shape.queries);
          lay_fresh<type, head_dim, page_tokens>(g, fresh_row(key, key + head_dim, cos, sin),
                                                 static_cast<std::uint32_t>(c.of.head), c.position, c.page, page, lane);
          asm volatile("fence.proxy.async.shared::cta;" ::: "memory");  // a copy comes over it
          __syncwarp();
        }
        m.template meet<page_tokens>(
            q, shared_address(page) + warp * piece_tokens * panel_units(units) * 16, c.at + warp, seen, log2_scale, lane);
      }
      __syncwarp();
      if (lane == 0) barrier_arrive(shared_address(&r.empty[stage]));
      if (!c.ends) continue;
      m.sum_totals();
      for (int line = 0; line < group; line += lines) tell(c.of, line);
    }
    item none{};
    none.head = -1;
    tell(none, 0);
  }

 private:
  // What this warp has met, lines from `line` on, to who joins.
  __device__ __forceinline__ void tell(const item& of, int line) {
    barrier_wait(shared_address(&r.met_empty), (told++ + 1) & 1);
    if (threadIdx.x == 0) r.joined = of;
    const int mine = lane / 4 - line % 8;
    if (mine >= 0 && mine < lines) {
      if (line < 8)
        put<0>(mine);
      else
        put<1>(mine);
    }
    __syncwarp();
    if (lane == 0) barrier_arrive(shared_address(&r.met_full));
  }

  template <int upper>
  __device__ __forceinline__ void put(int at) {
#pragma unroll
    for (int u = 0; u < units; ++u)
      *reinterpret_cast<float2*>(&r.met[warp][at][u * 8 + lane % 4 * 2]) =
          make_float2(m.result[u][2 * upper], m.result[u][2 * upper + 1]);
    if (lane % 4 == 0) r.ends[warp][at] = make_float2(m.largest[upper], m.total[upper]);
  }

  const decode_args& g;
  ring<head_dim>& r;
  const slot_shape shape;
  const int warp, lane, group;
  met<type, head_dim> m;
  int told = 0;
};

// Joins what was met of an item: one warp.
template <dtype type, int head_dim>
class joiner {
  static constexpr int lines = join_lines<head_dim>, quads = head_dim / 4;

 public:
  __device__ __forceinline__ joiner(const decode_args& args, ring<head_dim>& from)
      : g(args),
        r(from),
        lane(static_cast<int>(threadIdx.x % 32)),
        group(static_cast<int>(args.a.heads.heads / args.a.heads.kv_heads)) {}

  __device__ __forceinline__ void run() {
    for (;;) {
      item of;
      for (int line = 0; line < group; line += lines) {
        barrier_wait(shared_address(&r.met_full), heard++ & 1);
        of = r.joined;
        if (of.head < 0) return;
        join(of, line);
        __syncwarp();
        if (lane == 0) barrier_arrive(shared_address(&r.met_empty));
      }
      if (of.parts > 1 && is_last(of)) join_parts(of);
    }
  }

 private:
  // One float4 of one line, of several of whom each has a largest score and a total.
  struct sum {
    float top = -INFINITY, weight = 0;
    float4 of = {0, 0, 0, 0};

    __device__ __forceinline__ void add(float4 x, float2 end) {
      const float now = fmaxf(top, end.x), mine = top == -INFINITY ? 0.0f : exp2f(top - now);
      const float theirs = end.x == -INFINITY ? 0.0f : exp2f(end.x - now);
      of = make_float4(of.x * mine + x.x * theirs, of.y * mine + x.y * theirs, of.z * mine + x.z * theirs,
                       of.w * mine + x.w * theirs);
      weight = weight * mine + end.y * theirs;
      top = now;
    }

    __device__ __forceinline__ void put(element* to) const {
      const float by = 1.0f / weight;
      *reinterpret_cast<uint2*>(to) = make_uint2(pair_of<type>(of.x * by, of.y * by), pair_of<type>(of.z * by, of.w * by));
    }
  };

  __device__ __forceinline__ element* out_of(const item& of) const {
    return g.a.out + (static_cast<std::size_t>(of.row) * g.a.heads.heads + of.head * group) * head_dim;
  }

  __device__ __forceinline__ float* part_of(const item& of, int part) const {
    return g.scratch.parts +
           (static_cast<std::size_t>(of.slot + part) * g.a.heads.kv_heads + of.head) * part_floats(g.a.heads);
  }

  // Lines from `line` on of all warps: to the output, or left.
  __device__ __forceinline__ void join(const item& of, int line) const {
    float* left = of.parts > 1 ? part_of(of, of.part) : nullptr;
    for (int i = lane; i < lines * quads; i += 32) {
      const int l = i / quads, at = i % quads * 4;
      if (line + l >= group) break;
      sum s;
#pragma unroll
      for (int w = 0; w < meeters; ++w) s.add(*reinterpret_cast<const float4*>(&r.met[w][l][at]), r.ends[w][l]);
      if (!left) {
        s.put(out_of(of) + (line + l) * head_dim + at);
        continue;
      }
      *reinterpret_cast<float4*>(left + (line + l) * head_dim + at) = s.of;
      if (at == 0) *reinterpret_cast<float2*>(left + group * head_dim + (line + l) * 2) = make_float2(s.top, s.weight);
    }
  }

  __device__ __forceinline__ bool is_last(const item& of) const {
    unsigned* arrived = g.scratch.arrived + 1 + of.slot * g.a.heads.kv_heads + of.head;
    unsigned before = 0;
    __threadfence();
    __syncwarp();
    if (lane == 0) {
      asm volatile("atom.add.acq_rel.gpu.global.u32 %0, [%1], 1;" : "=r"(before) : "l"(arrived) : "memory");
      if (before + 1 == static_cast<unsigned>(of.parts)) *arrived = 0;
    }
    before = __shfl_sync(~0u, before, 0);
    __syncwarp();  // what the others left is seen by all lanes
    return before + 1 == static_cast<unsigned>(of.parts);
  }

  __device__ __forceinline__ void join_parts(const item& of) const {
    for (int i = lane * 4; i < group * head_dim; i += 32 * 4) {
      sum s;
#pragma unroll 4
      for (int p = 0; p < of.parts; ++p) {
        const float* from = part_of(of, p);
        s.add(__ldcg(reinterpret_cast<const float4*>(from + i)),
              __ldcg(reinterpret_cast<const float2*>(from + group * head_dim + i / head_dim * 2)));
      }
      s.put(out_of(of) + i);
    }
  }

  const decode_args& g;
  ring<head_dim>& r;
  const int lane, group;
  int heard = 0;
};

template <dtype type, int head_dim>
__global__ void __launch_bounds__(threads) bulk_kernel(const __grid_constant__ decode_args g) {
#if __CUDA_ARCH__ >= 900
  extern __shared__ __align__(128) unsigned char raw[];
  auto& r = *reinterpret_cast<ring<head_dim>*>(raw);
  let_next_start();
  if (threadIdx.x == 0) {
    for (int s = 0; s < stages<head_dim>; ++s) {
      barrier_init(shared_address(&r.full[s]), 1);
      barrier_init(shared_address(&r.empty[s]), meeters);
    }
    barrier_init(shared_address(&r.met_full), meeters);
    barrier_init(shared_address(&r.met_empty), 1);
    barrier_inits_end();
  }
  __syncthreads();
  const int warp = static_cast<int>(threadIdx.x / 32);
  // As in attention_decode.cu: what is brought before the wait was there before the step.
  if (!g.fresh || warp != meeters) wait_for_previous();
  if (warp == meeters)
    bringer<head_dim>(g, r).run();
  else if (warp < meeters)
    meeter<type, head_dim>(g, r).run();
  else
    joiner<type, head_dim>(g, r).run();
#endif
}

template <int head_dim>
std::size_t shared_bytes(const head_shape& h) {
  return sizeof(ring<head_dim>) + stages<head_dim> * static_cast<std::size_t>(slot_shape(h).bytes());
}

template <int head_dim>
unsigned blocks_of(const device& d, const head_shape& h) {
  return static_cast<unsigned>(std::min<std::size_t>(2, (d.shared_per_block + 1024) / (shared_bytes<head_dim>(h) + 1024)) *
                               static_cast<std::size_t>(d.multiprocessors));
}

template <dtype type, int head_dim>
void start(device& d, const decode_args& g) {
  const std::size_t shared = shared_bytes<head_dim>(g.a.heads);
  allow_shared(d, bulk_kernel<type, head_dim>, shared);
  launch(d, bulk_kernel<type, head_dim>, dim3(blocks_of<head_dim>(d, g.a.heads)), threads, shared, g);
}

// Calls f with the head size.
template <class F>
auto with_size(std::uint32_t head_dim, const F& f) {
  switch (head_dim) {
    case 16:
      return f(std::integral_constant<int, 16>{});
    case 32:
      return f(std::integral_constant<int, 32>{});
    case 64:
      return f(std::integral_constant<int, 64>{});
    case 96:
      return f(std::integral_constant<int, 96>{});
    case 256:
      return f(std::integral_constant<int, 256>{});
    default:
      return f(std::integral_constant<int, 128>{});
  }
}

std::uint32_t blocks(const device& d, const head_shape& h) {
  return with_size(h.head_dim, [&](auto size) { return blocks_of<size>(d, h); });
}

std::uint32_t pieces(const decode_row& r) { return static_cast<std::uint32_t>(r.position) / piece_tokens + 1; }

bool has_bulk_copies(const device& d) { return d.capability >= 90; }

// Rows are divided that are a quarter longer than a block's share, or than the mean, which is their limit: into fewer than
// 2 * pieces / limit parts each. So all heads of all parts are fewer than twice the blocks.
std::uint32_t most_parts(const device& d, const head_shape& h) { return 2 * blocks(d, h) / h.kv_heads + 1; }

}  // namespace

// A block a row and head (attention_decode.cu) is as quick where a row is split among them, and for small heads while all
// blocks run at once and contexts are alike.
bool lists_pay(const device& d, const head_shape& h, std::uint32_t rows, std::uint64_t longest, std::uint64_t all) {
  const std::uint64_t items = std::uint64_t{rows} * h.kv_heads, room = static_cast<std::uint64_t>(d.multiprocessors);
  if (!has_bulk_copies(d) || items <= room || blocks(d, h) == 0) return false;
  return h.head_dim > 64 || items > 4 * room || 4 * longest * rows > 5 * all;
}

std::uint32_t most_listed(const device& d, const head_shape& h, std::uint32_t rows) { return rows + most_parts(d, h); }

// A counter for each part's head, behind the one of what comes next.
split_room room_for_parts(const device& d, const head_shape& h) {
  if (!has_bulk_copies(d)) return {0, 0};
  const std::uint32_t parts = most_parts(d, h) * h.kv_heads;
  return {std::uint64_t{parts} * static_cast<std::uint64_t>(part_floats(h)), parts + 1};
}

std::uint32_t list_decodes(const device& d, const head_shape& h, std::span<const decode_row> rows, decode_row* out) {
  if (rows.empty()) return 0;
  std::uint64_t all = 0;
  for (const decode_row& r : rows) all += pieces(r);
  const std::uint64_t share = all * h.kv_heads / blocks(d, h), mean = all / rows.size();
  const auto limit = static_cast<std::uint32_t>(std::max({std::uint64_t{page_pieces}, share * 5 / 4, mean * 5 / 4}));
  const auto parts_of = [&](const decode_row& r) { return std::min(255u, (pieces(r) + limit - 1) / limit); };
  // Longest first: by how many sixteenths of the limit an entry has.
  constexpr std::uint32_t classes = 17;
  std::uint32_t first[classes + 1] = {};
  const auto class_of = [&](const decode_row& r, std::uint32_t parts) {
    return classes - 1 - std::min(classes - 1, pieces(r) * 16 / (limit * parts));
  };
  for (const decode_row& r : rows) {
    const std::uint32_t parts = parts_of(r);
    first[class_of(r, parts) + 1] += parts;
  }
  for (std::uint32_t c = 0; c < classes; ++c) first[c + 1] += first[c];
  std::uint32_t slot = 0;
  for (const decode_row& r : rows) {
    const std::uint32_t parts = parts_of(r);
    std::uint32_t& at = first[class_of(r, parts)];
    for (std::uint32_t p = 0; p < parts; ++p) {
      decode_row& e = out[at++];
      e = r;
      e.part = static_cast<std::uint8_t>(p);
      e.parts = static_cast<std::uint8_t>(parts);
      e.slot = static_cast<std::uint16_t>(slot);
    }
    if (parts > 1) slot += parts;
  }
  return first[classes];
}

void bulk_attention(device& d, const decode_args& g) {
  with_size(g.a.heads.head_dim, [&](auto size) {
    if (g.a.type == dtype::f16) return start<dtype::f16, size>(d, g);
    start<dtype::bf16, size>(d, g);
  });
}

}  // namespace weir::kernels::cuda
