// Attention of rows that are alone in their slice, as fast as keys and values can be read. For many rows
// attention_bulk.cu does the same on devices that have bulk copies.
//
// A block computes one row and one key head: all query heads of the key head are the rows of one tensor-core
// tile. Where there are few rows, a block computes only a part of the context. The warps take pieces of 16
// tokens round-robin, each through a ring buffer of its own, with a running maximum (Dao et al. 2022,
// «FlashAttention»; Dao, Haziza et al. 2023, «Flash-Decoding»). The last block to finish a row merges the
// parts.
//
// Of heads of 256 two warps share each piece: both compute its scores, and each adds up half of the columns
// of its values. One warp has no registers for all of them.
//
// The row's own key and value may still be in qkv (decode_args::fresh). This kernel then rotates the key,
// stores both in their page, and writes both over the piece that was loaded from the page. Nothing that is
// loaded early therefore depends on the kernel in front of this one.
//
// A single row behind a short context is a chain of latencies. So the kernel asks for rows, page numbers, and
// keys and values as far as the rings hold them, before it waits for the kernel in front. Behind that it asks
// for queries, the fresh key and value and their angles, all at once.
#include <algorithm>

#include "kernels/cuda/attention/attention_fresh.h"
#include "kernels/cuda/device/barrier.h"
#include "kernels/cuda/device/prefetch.h"

namespace weir::kernels::cuda {
namespace {

constexpr std::uint32_t most_splits = 16;

// The warps that share a piece.
template <int head_dim>
constexpr int piece_shares = head_dim > 128 ? 2 : 1;

// The bytes of shared memory: the ring buffers of the warps, or of those that share pieces, and later their
// results in the same place.
template <page_type pages, int head_dim, int warps, int stages>
constexpr std::size_t shared_bytes() {
  constexpr std::size_t teams = warps / piece_shares<head_dim>;
  const std::size_t rings = teams * stages * piece_bytes<pages, head_dim>;
  const std::size_t parts = teams * 16 * (head_dim + 2) * sizeof(float);
  return rings > parts ? rings : parts;
}

// Merges the parts that a row's blocks left, and writes the output. All loads begin before the first result
// is used. `sinks`: of the group's heads; may be null.
template <page_type pages, int head_dim>
__device__ __forceinline__ void join(const float* all, int parts, int group, int threads,
                                     const attention_args& a, const float* sinks, element* out) {
  const int one = group * (head_dim + 2);
  for (int i = static_cast<int>(threadIdx.x) * 2; i < group * head_dim; i += threads * 2) {
    float2 x[most_splits], top_and_weight[most_splits];
#pragma unroll
    for (int s = 0; s < static_cast<int>(most_splits); ++s) {
      if (s >= parts) continue;
      x[s] = __ldcg(reinterpret_cast<const float2*>(all + s * one + i));
      top_and_weight[s] =
          __ldcg(reinterpret_cast<const float2*>(all + s * one + group * head_dim + i / head_dim * 2));
    }
    const float sink = sinks ? sinks[i / head_dim] * 1.44269504f : -INFINITY;
    float top = sink, weight = 0;
    float2 sum = {0, 0};
#pragma unroll
    for (int s = 0; s < static_cast<int>(most_splits); ++s)
      if (s < parts) top = fmaxf(top, top_and_weight[s].x);
#pragma unroll
    for (int s = 0; s < static_cast<int>(most_splits); ++s) {
      if (s >= parts || top_and_weight[s].x == -INFINITY) continue;
      const float f = exp2f(top_and_weight[s].x - top);
      sum.x += f * x[s].x;
      sum.y += f * x[s].y;
      weight += f * top_and_weight[s].y;
    }
    if (sinks) weight += exp2f(sink - top + weight_power<pages>);
    *reinterpret_cast<std::uint32_t*>(out + place_in(a.out_order, i)) =
        row_pair<pages>(a.type, sum.x / weight, sum.y / weight);
  }
}

template <page_type pages, int head_dim, int warps, int stages, bool usual>
__global__ void __launch_bounds__(warps * 32) decode_kernel(decode_args g) {
  extern __shared__ __align__(128) unsigned char shared[];
  constexpr int pairs = head_dim / 8, piece = piece_bytes<pages, head_dim>;
  // teams: warps, or pairs of warps that share pieces. columns: of the values, those that a warp adds up.
  constexpr int shares = piece_shares<head_dim>, teams = warps / shares, columns = head_dim / shares;
  __shared__ __align__(16) float room[fresh_room<pages, head_dim>];  // of the warp that has the last piece
  const head_shape& h = g.a.heads;
  const int warp = static_cast<int>(threadIdx.x / 32), lane = static_cast<int>(threadIdx.x % 32);
  const int team = warp / shares, share = warp % shares;
  const auto team_synchronises = [team] {
    if constexpr (shares == 1)
      __syncwarp();
    else
      named_barrier(1 + team, shares * 32);
  };
  const std::uint32_t kv_head = blockIdx.x, split = blockIdx.y;
  const int group = static_cast<int>(h.heads / h.kv_heads);
  // The rows of the step were written before the first kernel of the chain. So were the pages, unless the
  // kernel in front of this one writes to them.
  if (!g.fresh) wait_for_previous();
  const decode_row item = g.v.decode_rows[blockIdx.z];
  const auto row = static_cast<std::uint32_t>(item.row);
  const std::int32_t pages_at = item.pages_at;
  element* out = g.a.out + (std::size_t{row} * h.heads + kv_head * group) * head_dim;
  if (pages_at < 0) {
    wait_for_previous();
    if (split == 0)
      for (int i = static_cast<int>(threadIdx.x); i < group * head_dim; i += warps * 32) out[i] = element{0};
    return;
  }
  const seen_tokens seen(item.position, g.a.rule.window);
  const int first_piece = seen.first_piece(), pieces = seen.pieces();
  // A short context has fewer parts than g.splits, so that a part has at least one piece for each warp.
  const int parts = min(static_cast<int>(g.splits), max(1, pieces / teams));
  if (static_cast<int>(split) >= parts) return;
  const int begin = first_piece + static_cast<int>(static_cast<long long>(pieces) * split / parts);
  const int end = first_piece + static_cast<int>(static_cast<long long>(pieces) * (split + 1) / parts);

  unsigned char* ring = shared + team * stages * piece;
  int asked = 0;
  std::int32_t ids = 0;  // page numbers of this warp's next 32 pieces, one a lane
  const auto ask = [&](int stage) {
    if (asked % 32 == 0) {
      const int at = min(begin + team + (asked + lane) * teams, end - 1);
      ids = g.v.pages[pages_at + at * piece_tokens / page_tokens];
    }
    const int at = begin + team + asked * teams;
    const std::int32_t page = __shfl_sync(~0u, ids, asked++ % 32);
    if (at < end)
      fetch_piece<pages, head_dim, shares>(g.a, kv_head, page, at, shared_address(ring + stage * piece), lane,
                                           share);
    copies_end_group();
  };
#pragma unroll
  for (int s = 0; s < stages; ++s) ask(s);
  // The warp with the last piece lays the row's own key and value over it.
  const int last = seen.last_piece();
  const bool lays = g.fresh && last < end && (last - begin) % teams == team;
  const std::int32_t last_page = lays ? g.v.pages[pages_at + seen.to / page_tokens] : 0;
  // The kernel of the angles may still be running, so they are only brought nearer. The weights of norms come
  // from memory.
  if (const std::uint32_t i = threadIdx.x * 32; g.fresh && i < head_dim / 2) {
    prefetch(g.t.cos + std::size_t{row} * (head_dim / 2) + i);
    prefetch(g.t.sin + std::size_t{row} * (head_dim / 2) + i);
  }
  if (const std::uint32_t i = threadIdx.x * 32; g.fresh && g.t.q_norm && i < head_dim) {
    prefetch(g.t.q_norm + i);
    prefetch(g.t.k_norm + i);
  }
  wait_for_previous();
  fresh_numbers<pages, head_dim> fresh;
  if (lays && share == 0) fresh.template load<usual>(g, fresh_row(g, row, kv_head), lane);
  queries<pages, head_dim> q;
  q.template load<usual>(g, row, kv_head, lane);
  // The next kernel starts only now, since its loads would delay these.
  std::uint32_t loaded = 0;
#pragma unroll
  for (int i = 0; i < pairs / 2; ++i) loaded |= q.q[i][0];
  wait_for(loaded);
  let_next_start();

  const float unit = score_unit<usual>(g, item.position);
  attention_sums<pages, head_dim, columns> m;
  m.clear();
  int stage = 0;
  for (int at = begin + team; at < end; at += teams) {
    copies_wait<stages - 1>();
    team_synchronises();
    unsigned char* keys = ring + stage * piece;
    if (lays && at == last) {
      if (share == 0) fresh.template lay<usual>(g, kv_head, seen.to, last_page, keys, room, lane);
      team_synchronises();
    }
    m.add(q, shared_address(keys), 0, at, seen, unit, usual ? 0.0f : g.a.rule.cap, lane, share * columns);
    team_synchronises();
    ask(stage);
    stage = (stage + 1) % stages;
  }
  m.sum_totals();

  // The teams' results are merged in shared memory: [teams][16][head_dim], then the maxima, then the totals.
  // The maxima become factors.
  copies_wait<0>();
  __syncthreads();
  auto* parts_at = reinterpret_cast<float*>(shared);
  float* tops = parts_at + teams * 16 * head_dim;
  float* totals = tops + teams * 16;
#pragma unroll
  for (int r = 0; r < 2; ++r) {
    const int line = lane / 4 + r * 8;
    if (line >= group) continue;
#pragma unroll
    for (int i = 0; i < columns / 8; ++i)
      *reinterpret_cast<float2*>(parts_at + (team * 16 + line) * head_dim + share * columns +
                                 pair_at<pages>(i, lane)) = pair_of_sums<pages>(m.result, i, r);
    if (lane % 4 == 0 && share == 0) {
      tops[team * 16 + line] = m.largest[r];
      totals[team * 16 + line] = m.total[r];
    }
  }
  __syncthreads();
  const std::size_t index = std::size_t{blockIdx.z} * h.kv_heads + kv_head;
  float* left = g.scratch.parts + index * g.splits * group * (head_dim + 2);
  float* mine = left + split * group * (head_dim + 2);
  // A head's sink is added once: by the only block of the row, or where the parts are merged.
  const float* sinks = g.a.sinks ? g.a.sinks + kv_head * group : nullptr;
  if (static_cast<int>(threadIdx.x) < group) {
    const int line = static_cast<int>(threadIdx.x);
    const bool sinks_here = sinks && parts == 1;
    const float sink = sinks_here ? sinks[line] * 1.44269504f : -INFINITY;
    float top = sink, weight = 0;
#pragma unroll
    for (int w = 0; w < teams; ++w) top = fmaxf(top, tops[w * 16 + line]);
#pragma unroll
    for (int w = 0; w < teams; ++w) {
      const float f = tops[w * 16 + line] == -INFINITY ? 0.0f : exp2f(tops[w * 16 + line] - top);
      tops[w * 16 + line] = f;
      weight += f * totals[w * 16 + line];
    }
    if (sinks_here) weight += exp2f(sink - top + weight_power<pages>);
    totals[line] = 1.0f / weight;
    if (parts > 1) {
      mine[group * head_dim + line * 2] = top;
      mine[group * head_dim + line * 2 + 1] = weight;
    }
  }
  __syncthreads();
  for (int i = static_cast<int>(threadIdx.x) * 2; i < group * head_dim; i += warps * 64) {
    const int line = i / head_dim;
    float2 sum = {0, 0};
#pragma unroll
    for (int w = 0; w < teams; ++w) {
      const float f = tops[w * 16 + line];
      const float2 x = *reinterpret_cast<const float2*>(parts_at + (w * 16 + line) * head_dim + i % head_dim);
      sum.x += f * x.x;
      sum.y += f * x.y;
    }
    if constexpr (pages == page_type::q8) sum = turned(sum, lane);
    if (parts == 1)
      *reinterpret_cast<std::uint32_t*>(out + place_in(g.a.out_order, static_cast<std::uint32_t>(i))) =
          row_pair<pages>(g.a.type, sum.x * totals[line], sum.y * totals[line]);
    else
      *reinterpret_cast<float2*>(mine + i) = sum;
  }
  if (parts == 1) return;

  // The last block of a row and key head merges the results of all of them.
  __shared__ bool last_block;
  __syncthreads();
  if (threadIdx.x == 0) {
    unsigned before;
    __threadfence();
    asm volatile("atom.add.acq_rel.gpu.global.u32 %0, [%1], 1;"
                 : "=r"(before)
                 : "l"(g.scratch.arrived + index)
                 : "memory");
    last_block = before + 1 == static_cast<unsigned>(parts);
    if (last_block) g.scratch.arrived[index] = 0;
  }
  __syncthreads();
  if (last_block) join<pages, head_dim>(left, parts, group, warps * 32, g.a, sinks, out);
}

template <page_type pages, int head_dim, int warps, int stages>
void start(device& d, decode_args g) {
  constexpr std::size_t shared = shared_bytes<pages, head_dim, warps, stages>();
  // Contexts are split among as many blocks as run at once, but no more than most_blocks().
  const std::uint32_t items = g.v.decodes * g.a.heads.kv_heads;
  const auto room = static_cast<std::uint32_t>(d.shared_per_block / (shared + 1024) *
                                               static_cast<std::size_t>(d.multiprocessors));
  if (items <= most_items(d)) g.splits = std::clamp(std::min(room, most_blocks(d)) / items, 1u, most_splits);
  const auto kernel = g.is_usual() ? decode_kernel<pages, head_dim, warps, stages, true>
                                   : decode_kernel<pages, head_dim, warps, stages, false>;
  allow_shared(d, kernel, shared);
  launch(d, kernel, dim3(g.a.heads.kv_heads, g.splits, g.v.decodes), warps * 32, shared, g);
}

// A warp has two or three stages of elements, or twice as many of fp8 in the same memory. With less memory
// contexts would be divided among more blocks than the registers allow to run at once.
template <page_type pages, int head_dim>
void start(device& d, const decode_args& g) {
  constexpr int two = 4 / number_bytes(pages), three = pages == page_type::q8 ? 5 : 6 / number_bytes(pages);
  // Where each row and key head has a multiprocessor of its own, more warps finish its context sooner.
  const bool few = g.v.decodes * g.a.heads.kv_heads <= static_cast<std::uint32_t>(d.multiprocessors);
  if constexpr (head_dim <= 128) {
    if (few && shared_bytes<pages, head_dim, 8, two>() <= d.shared_per_block)
      return start<pages, head_dim, 8, two>(d, g);
    static_assert(shared_bytes<pages, head_dim, 4, three>() <= general_shared);
    start<pages, head_dim, 4, three>(d, g);
  } else {
    static_assert(shared_bytes<pages, head_dim, 4, three>() <= general_shared);
    if (shared_bytes<pages, head_dim, 8, three>() <= d.shared_per_block)
      return start<pages, head_dim, 8, three>(d, g);
    start<pages, head_dim, 4, three>(d, g);
  }
}

}  // namespace

bool takes_fresh(const head_shape& h) { return number_bytes(h.pages) == 2 || h.head_dim % 32 == 0; }

void decode_attention(device& d, const rows_view& v, const attention_args& a, const rotary_args& t,
                      bool fresh, const split_scratch& scratch) {
  if (v.decodes == 0) return;
  const decode_args g{v, a, t, fresh, scratch, 1};
  if (v.listed) return bulk_attention(d, g);
  with_heads(a.heads, [&](auto pages, auto size) { start<pages, size>(d, g); });
}

}  // namespace weir::kernels::cuda
