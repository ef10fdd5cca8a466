// Decode attention of rows whose contexts differ much: all pieces of all rows and key heads in one list, of which each
// block gets an equal share (Osama et al. 2023, «Stream-K», for products). Nobody waits for the longest context.
//
// A block's warps take its pieces in turns, each through a ring of its own that runs through the end of one row's head
// into the next, so that copies are under way all the time. At the end of a head the first warp joins what the others
// have met of it, and begins the next behind them. A head that lies in several shares is joined by the last block to
// come.
#include <type_traits>

#include "kernels/cuda/attention_piece.h"

namespace weir::kernels::cuda {
namespace {

constexpr int warps = 4;
constexpr int threads = warps * 32;

__device__ __forceinline__ int pieces_of(const decode_row& r, std::uint32_t window) {
  return r.pages_at < 0 ? 0 : seen_tokens(r.position, window).pieces();
}

// Piece `done` of one key head of a row. A row's heads come one after the other.
struct place_in_list {
  int index;  // of the row among those that decode
  decode_row row;
  int head, done, pieces;

  __device__ __forceinline__ void enter(const decode_args& g, int i) {
    index = i;
    row = g.v.decode_rows[i];
    pieces = pieces_of(row, g.a.window);
  }
  // So many pieces on. REQUIRES: there are as many.
  __device__ __forceinline__ void pass(const decode_args& g, int count) {
    for (done += count; done >= pieces;) {
      done -= pieces;
      if (++head < static_cast<int>(g.a.heads.kv_heads)) continue;
      head = 0;
      do enter(g, index + 1);
      while (pieces == 0);
    }
  }
};

template <int head_dim, int stages>
struct alignas(128) shares_shared {
  unsigned char ring[warps][stages][piece_bytes<head_dim>];
  float2 met_by[warps - 1][head_dim / 8][32];  // half of the group's lines, as lanes have them
  float2 ends[warps - 1][32];                  // the largest score, the total
  int before[threads + 1];  // pieces of one key head of all rows before each thread's; then of all rows
};

template <int head_dim, int stages>
__device__ __forceinline__ void count_pieces(const decode_args& g, shares_shared<head_dim, stages>& s) {
  __shared__ int of_warps[warps];
  const int t = static_cast<int>(threadIdx.x), rows = static_cast<int>(g.v.decodes), each = (rows + threads - 1) / threads;
  int sum = 0;
  for (int r = t * each; r < min(rows, (t + 1) * each); ++r) sum += pieces_of(g.v.decode_rows[r], g.a.window);
#pragma unroll
  for (int o = 1; o < 32; o *= 2) {
    const int other = __shfl_up_sync(~0u, sum, o);
    if (t % 32 >= o) sum += other;
  }
  if (t % 32 == 31) of_warps[t / 32] = sum;
  __syncthreads();
  for (int w = 0; w < t / 32; ++w) sum += of_warps[w];
  s.before[t + 1] = sum;
  if (t == 0) s.before[0] = 0;
  __syncthreads();
}

// What a block leaves of a head that others have, too: as lanes have it.
template <int head_dim>
constexpr std::size_t part_floats = (head_dim / 8 + 1) * 4 * 32;

template <dtype type, int head_dim, int stages>
class share {
  static constexpr int units = head_dim / 8;

 public:
  __device__ __forceinline__ share(const decode_args& args, shares_shared<head_dim, stages>& shared)
      : g(args),
        s(shared),
        warp(static_cast<int>(threadIdx.x / 32)),
        lane(static_cast<int>(threadIdx.x % 32)),
        heads(static_cast<int>(args.a.heads.kv_heads)) {
    total = s.before[threads] * heads;
    count = min(static_cast<int>(gridDim.x), total);
    begin = first_of(min(static_cast<int>(blockIdx.x), count));
    end = first_of(min(static_cast<int>(blockIdx.x) + 1, count));
    asked = begin + warp;
    if (begin == end) return;
    find();
    next = now;
    if (asked < end) next.pass(g, warp);
  }

  // This warp's next piece, on its way to a stage.
  __device__ __forceinline__ void ask(int stage) {
    if (asked < end) {
      const seen_tokens seen(next.row.position, g.a.window);
      const int at = seen.first_piece() + next.done, page = at * piece_tokens / page_tokens;
      if (next.row.pages_at != pages_at || page < first_page || page >= first_page + 32) {
        pages_at = next.row.pages_at;
        first_page = page;
        ids = g.v.pages[pages_at + min(page + lane, seen.to / page_tokens)];
      }
      const std::int32_t id = __shfl_sync(~0u, ids, page - first_page);
      fetch_piece<head_dim>(g.a, static_cast<std::uint32_t>(next.head), id, at, shared_address(s.ring[warp][stage]), lane);
      asked += warps;
      if (asked < end) next.pass(g, warps);
    }
    copies_end_group();
  }

  __device__ __forceinline__ void run() {
    const float log2_scale = g.a.scale * 1.44269504f;
    queries<type, head_dim> q;
    met<type, head_dim> m;
    int stage = 0;
    for (int i = begin, n; i < end; i += n) {
      n = min(now.pieces - now.done, end - i);
      const seen_tokens seen(now.row.position, g.a.window);
      const auto row = static_cast<std::uint32_t>(now.row.row), head = static_cast<std::uint32_t>(now.head);
      q.load(g, row, head, lane);
      m.clear();
      for (int k = (warp + begin - i) & (warps - 1); k < n; k += warps) {
        ask((stage + stages - 1) % stages);
        copies_wait<stages - 1>();
        __syncwarp();
        unsigned char* piece = s.ring[warp][stage];
        const int at = seen.first_piece() + now.done + k;
        if (g.fresh && at == seen.last_piece()) {
          lay_fresh<type, head_dim>(g, row, head, static_cast<std::uint32_t>(seen.to), now.row.pages_at,
                              reinterpret_cast<element*>(piece), lane);
          __syncwarp();
        }
        m.meet(q, shared_address(piece), at, seen, log2_scale, lane);
        __syncwarp();
        stage = (stage + 1) % stages;
      }
      m.sum_totals();
      gather(m);
      if (warp == 0) finish(m, i, n);
      if (i + n < end) now.pass(g, n);
    }
  }

 private:
  __device__ __forceinline__ int first_of(int share) const {
    return count == 0 ? 0 : static_cast<int>(static_cast<long long>(total) * share / count);
  }
  // Which share has a piece.
  __device__ __forceinline__ int share_of(int piece) const {
    return static_cast<int>((static_cast<long long>(piece + 1) * count - 1) / total);
  }

  // The place of `begin`.
  __device__ __forceinline__ void find() {
    int passed = 0;
#pragma unroll
    for (int i = 0; i < warps; ++i) passed += __popc(__ballot_sync(~0u, s.before[i * 32 + lane + 1] * heads <= begin));
    const int each = (static_cast<int>(g.v.decodes) + threads - 1) / threads;
    int first = s.before[passed];
    now.enter(g, passed * each);
    while ((first + now.pieces) * heads <= begin) {
      first += now.pieces;
      now.enter(g, now.index + 1);
    }
    const int in_row = begin - first * heads;
    now.head = in_row / now.pieces;
    now.done = in_row % now.pieces;
  }

  // What all warps have met of a head goes to the first, half of the lines at a time.
  __device__ __forceinline__ void gather(met<type, head_dim>& m) {
    const int group = static_cast<int>(g.a.heads.heads) / heads;
    gather_half<0>(m);
    if (group > 8) gather_half<1>(m);
  }

  template <int r>
  __device__ __forceinline__ void gather_half(met<type, head_dim>& m) {
    if (warp > 0) {
#pragma unroll
      for (int u = 0; u < units; ++u)
        s.met_by[warp - 1][u][lane] = make_float2(m.result[u][2 * r], m.result[u][2 * r + 1]);
      s.ends[warp - 1][lane] = make_float2(m.largest[r], m.total[r]);
    }
    __syncthreads();
    if (warp == 0) {
#pragma unroll
      for (int w = 0; w < warps - 1; ++w) add<r>(m, s.ends[w][lane], [&](int u) { return s.met_by[w][u][lane]; });
    }
    __syncthreads();
  }

  template <int r, class F>
  __device__ __forceinline__ static void add(met<type, head_dim>& m, float2 ends, const F& other) {
    const float top = fmaxf(m.largest[r], ends.x);
    const float mine = m.largest[r] == -INFINITY ? 0.0f : exp2f(m.largest[r] - top);
    const float theirs = ends.x == -INFINITY ? 0.0f : exp2f(ends.x - top);
    m.largest[r] = top;
    m.total[r] = m.total[r] * mine + ends.y * theirs;
#pragma unroll
    for (int u = 0; u < units; ++u) {
      const float2 x = other(u);
      m.result[u][2 * r] = m.result[u][2 * r] * mine + x.x * theirs;
      m.result[u][2 * r + 1] = m.result[u][2 * r + 1] * mine + x.y * theirs;
    }
  }

  // n pieces from the i-th on, and no others of this share, were of one head.
  __device__ __forceinline__ void finish(met<type, head_dim>& m, int i, int n) {
    if (n < now.pieces) {
      const int first = i - now.done, from = share_of(first), to = share_of(first + now.pieces - 1);
      leave(m, from);
      if (!is_last(from, to - from + 1)) return;
      for (int b = from; b <= to; ++b)
        if (b != static_cast<int>(blockIdx.x)) join(m, part(b, b == from));
    }
    write(m);
  }

  // A share leaves at most the end of a head that began before it, and the beginning of one that ends behind it.
  __device__ __forceinline__ float4* part(int share, bool begins) const {
    return reinterpret_cast<float4*>(g.scratch.parts + (2 * static_cast<std::size_t>(share) + begins) * part_floats<head_dim>) +
           lane;
  }

  __device__ __forceinline__ void leave(const met<type, head_dim>& m, int from) const {
    float4* to = part(static_cast<int>(blockIdx.x), static_cast<int>(blockIdx.x) == from);
#pragma unroll
    for (int u = 0; u < units; ++u) to[u * 32] = make_float4(m.result[u][0], m.result[u][1], m.result[u][2], m.result[u][3]);
    to[units * 32] = make_float4(m.largest[0], m.largest[1], m.total[0], m.total[1]);
  }

  __device__ __forceinline__ bool is_last(int from, int shares) const {
    unsigned before = 0;
    __threadfence();
    __syncwarp();
    if (lane == 0) {
      asm volatile("atom.add.acq_rel.gpu.global.u32 %0, [%1], 1;"
                   : "=r"(before)
                   : "l"(g.scratch.arrived + from)
                   : "memory");
      if (before + 1 == static_cast<unsigned>(shares)) g.scratch.arrived[from] = 0;
    }
    before = __shfl_sync(~0u, before, 0);
    __syncwarp();  // what the others left is seen by all lanes
    return before + 1 == static_cast<unsigned>(shares);
  }

  __device__ __forceinline__ void join(met<type, head_dim>& m, const float4* from) const {
    float4 x[units];
#pragma unroll
    for (int u = 0; u < units; ++u) x[u] = __ldcg(from + u * 32);
    const float4 ends = __ldcg(from + units * 32);
    add<0>(m, make_float2(ends.x, ends.z), [&](int u) { return make_float2(x[u].x, x[u].y); });
    add<1>(m, make_float2(ends.y, ends.w), [&](int u) { return make_float2(x[u].z, x[u].w); });
  }

  __device__ __forceinline__ void write(const met<type, head_dim>& m) const {
    const int group = static_cast<int>(g.a.heads.heads) / heads;
#pragma unroll
    for (int r = 0; r < 2; ++r) {
      const int line = lane / 4 + r * 8;
      if (line >= group) continue;
      const float by = 1.0f / m.total[r];
      element* out = g.a.out +
                     (static_cast<std::size_t>(now.row.row) * g.a.heads.heads + now.head * group + line) * head_dim +
                     lane % 4 * 2;
#pragma unroll
      for (int u = 0; u < units; ++u)
        *reinterpret_cast<std::uint32_t*>(out + u * 8) = pair_of<type>(m.result[u][2 * r] * by, m.result[u][2 * r + 1] * by);
    }
  }

  const decode_args& g;
  shares_shared<head_dim, stages>& s;
  const int warp, lane, heads;
  int total, count, begin, end;  // pieces, shares; this one's
  place_in_list now{}, next{};   // of the head that is being met; of the piece that is asked for next, which is
  int asked;                     // this one of the list
  int pages_at = -1, first_page = 0;
  std::int32_t ids = 0;  // 32 pages from there on, one a lane
};

template <dtype type, int head_dim, int stages>
__global__ void __launch_bounds__(threads) shares_kernel(const __grid_constant__ decode_args g) {
  extern __shared__ __align__(128) unsigned char raw[];
  auto& shared = *reinterpret_cast<shares_shared<head_dim, stages>*>(raw);
  let_next_start();
  // As in attention_decode.cu: what is read before the wait was there before the step.
  if (!g.fresh) wait_for_previous();
  count_pieces(g, shared);
  share<type, head_dim, stages> mine(g, shared);
#pragma unroll
  for (int i = 0; i < stages - 1; ++i) mine.ask(i);
  wait_for_previous();
  mine.run();
}

template <int head_dim, int stages>
constexpr std::size_t shared_bytes = sizeof(shares_shared<head_dim, stages>);

// How many blocks find room at once; 0: a block finds none.
template <int head_dim, int stages>
unsigned blocks_of(const device& d) {
  return static_cast<unsigned>((d.shared_per_block + 1024) / (shared_bytes<head_dim, stages> + 1024) *
                               static_cast<std::size_t>(d.multiprocessors));
}

template <dtype type, int head_dim, int stages>
void start(device& d, const decode_args& g) {
  allow_shared(d, shares_kernel<type, head_dim, stages>, shared_bytes<head_dim, stages>);
  launch(d, shares_kernel<type, head_dim, stages>, dim3(blocks_of<head_dim, stages>(d)), threads,
         shared_bytes<head_dim, stages>, g);
}

// Calls f with the head size, and the stages that find room.
template <int head_dim, class F>
auto with_stages(const device& d, const F& f) {
  using three = std::integral_constant<int, 3>;
  using two = std::integral_constant<int, 2>;
  using size = std::integral_constant<int, head_dim>;
  return blocks_of<head_dim, 3>(d) > 0 ? f(size{}, three{}) : f(size{}, two{});
}
template <class F>
auto with_shape(const device& d, const head_shape& h, const F& f) {
  switch (h.head_dim) {
    case 16:
      return with_stages<16>(d, f);
    case 32:
      return with_stages<32>(d, f);
    case 64:
      return with_stages<64>(d, f);
    case 96:
      return with_stages<96>(d, f);
    case 256:
      return with_stages<256>(d, f);
    default:
      return with_stages<128>(d, f);
  }
}

}  // namespace

split_room room_for_shares(const device& d, const head_shape& h) {
  return with_shape(d, h, [&](auto size, auto stages) {
    const unsigned blocks = blocks_of<size, stages>(d);
    return split_room{2 * std::uint64_t{blocks} * part_floats<size>, blocks};
  });
}

// A block a row and head (attention_decode.cu) is quicker while the longest context is not far above a share.
bool shares_pay(const device& d, const head_shape& h, std::uint32_t rows, std::uint64_t longest, std::uint64_t all) {
  if (std::uint64_t{rows} * h.kv_heads <= static_cast<std::uint64_t>(d.multiprocessors)) return false;  // all are split
  return 2 * longest * room_for_shares(d, h).counters > 5 * all * h.kv_heads;
}

void shares_attention(device& d, const decode_args& g) {
  with_shape(d, g.a.heads, [&](auto size, auto stages) {
    if (g.a.type == dtype::f16) return start<dtype::f16, size, stages>(d, g);
    start<dtype::bf16, size, stages>(d, g);
  });
}

}  // namespace weir::kernels::cuda
