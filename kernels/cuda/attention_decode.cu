// Attention of rows that are alone in their slice: as fast as keys and values can be read.
//
// A block has one row and one key head, with all its query heads as the rows of one tensor-core tile, and a
// part of the context where there are few rows. Its warps take pieces of 16 tokens in turns, each through a
// ring of its own, with a running maximum (Dao et al. 2022, «FlashAttention»; Dao, Haziza et al. 2023,
// «Flash-Decoding»). The last block to finish a row joins the parts.
//
// The row's own key and value may still lie in qkv: they are turned here, put into the page, and laid over
// the piece that came from there. So nothing that is read early depends on the kernel before.
#include <algorithm>

#include "kernels/cuda/launch.h"
#include "kernels/cuda/layers.h"
#include "kernels/cuda/turn.h"

namespace weir::kernels::cuda {
namespace {

constexpr int piece = 16;
constexpr std::uint32_t most_splits = 16;

struct decode_args {
  rows_view v;
  attention_args a;
  turning t;
  bool fresh;
  split_scratch scratch;
  std::uint32_t splits;
};

template <int head_dim>
constexpr int stage_bytes() {
  return 2 * piece * head_dim * 2;
}
constexpr int query_stride(int head_dim) { return head_dim + 8; }  // elements; no bank met twice

// The warps' rings, then their parts in the same place.
template <int head_dim, int warps, int stages>
constexpr std::size_t ring_bytes() {
  const std::size_t rings = std::size_t{warps} * stages * stage_bytes<head_dim>();
  const std::size_t parts = std::size_t{warps} * 16 * (head_dim + 2) * sizeof(float);
  return rings > parts ? rings : parts;
}
template <int head_dim, int warps, int stages>
constexpr std::size_t shared_bytes() {
  return ring_bytes<head_dim, warps, stages>() + 16 * query_stride(head_dim) * 2;
}

// The piece's keys and values, both [16, head_dim], go to `to`.
template <int head_dim>
__device__ void fetch(const decode_args& g, std::uint32_t kv_head, std::int32_t page, int at,
                      std::uint32_t to, int lane) {
  constexpr int wide = panel_units(head_dim / 8), panel = piece * wide;  // units
  const std::size_t from = (std::size_t(page) * g.a.heads.kv_heads + kv_head) * page_tokens * head_dim +
                           static_cast<std::size_t>(at * piece % page_tokens) * wide * 8;
#pragma unroll
  for (int i = lane; i < piece * head_dim / 8; i += 32) {
    const std::size_t unit = from + (i / panel * page_tokens * wide + i % panel) * 8;
    copy_async(to + i * 16, g.a.pages.keys + unit);
    copy_async(to + piece * head_dim * 2 + i * 16, g.a.pages.values + unit);
  }
}

// This row's key and value over what the piece has in their place, and into the page.
template <dtype type, int head_dim>
__device__ void lay_fresh(const decode_args& g, std::uint32_t row, std::uint32_t kv_head,
                          std::uint32_t position, std::int32_t pages_at, element* stage, int lane) {
  const head_shape& h = g.a.heads;
  const int token = static_cast<int>(position % page_tokens), here = token % piece;
  const auto page = static_cast<std::size_t>(g.v.pages[pages_at + position / page_tokens]);
  const std::size_t place = (page * h.kv_heads + kv_head) * page_tokens * head_dim;
  const std::uint32_t key = (h.heads + kv_head) * head_dim, value = key + h.kv_heads * head_dim;
  const element* from = g.a.qkv + std::size_t{row} * h.width();
  const auto put = [&](int i, std::uint32_t two) {
    *reinterpret_cast<std::uint32_t*>(stage + place_of<head_dim>(i, here, piece)) = two;
    *reinterpret_cast<std::uint32_t*>(g.a.pages.keys + place + place_of<head_dim>(i, token)) = two;
  };
  turn_head<type, head_dim>(from + key, g.t.bias ? g.t.bias + key : nullptr, g.t.k_norm, g.t.eps,
                      g.t.cos + row * (head_dim / 2), g.t.sin + row * (head_dim / 2), lane,
                      [&](int i, std::uint32_t a, std::uint32_t b) {
                        put(i, a);
                        put(head_dim / 2 + i, b);
                      });
  for (int i = lane * 2; i < head_dim; i += 64) {
    float2 two = floats_of<type>(from + value + i);
    if (g.t.bias) two = make_float2(two.x + g.t.bias[value + i], two.y + g.t.bias[value + i + 1]);
    const std::uint32_t bits = pair_of<type>(two.x, two.y);
    *reinterpret_cast<std::uint32_t*>(stage + piece * head_dim + place_of<head_dim>(i, here, piece)) = bits;
    *reinterpret_cast<std::uint32_t*>(g.a.pages.values + place + place_of<head_dim>(i, token)) = bits;
  }
}

// What a row's blocks left, joined: everything is asked for at once.
template <dtype type, int head_dim>
__device__ __forceinline__ void join(const float* all, int parts, int group, int threads,
                                     element* out) {
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
    float top = -INFINITY, weight = 0;
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
    *reinterpret_cast<std::uint32_t*>(out + i) = pair_of<type>(sum.x / weight, sum.y / weight);
  }
}

template <dtype type, int head_dim, int warps, int stages>
__global__ void __launch_bounds__(warps * 32) decode_kernel(decode_args g) {
  extern __shared__ __align__(128) unsigned char shared[];
  constexpr int steps = head_dim / 16, units = head_dim / 8;
  const head_shape& h = g.a.heads;
  const int warp = static_cast<int>(threadIdx.x / 32), lane = static_cast<int>(threadIdx.x % 32);
  const std::uint32_t kv_head = blockIdx.x, split = blockIdx.y;
  const int group = static_cast<int>(h.heads / h.kv_heads);
  let_next_start();
  // The rows were there before the step's first kernel. Pages are too, but where the kernel in front of this
  // one writes to them.
  if (!g.fresh) wait_for_previous();
  const decode_row item = g.v.decode_rows[blockIdx.z];
  const auto row = static_cast<std::uint32_t>(item.row);
  const std::int32_t pages_at = item.pages_at;
  element* out = g.a.out + (std::size_t{row} * h.heads + kv_head * group) * head_dim;
  if (pages_at < 0) {
    wait_for_previous();
    if (split == 0)
      for (int i = static_cast<int>(threadIdx.x); i < group * head_dim; i += warps * 32)
        out[i] = element_of<type>(0);
    return;
  }
  const int to = item.position;
  const int from =
      g.a.window != 0 && to + 1 > static_cast<int>(g.a.window) ? to + 1 - static_cast<int>(g.a.window) : 0;
  const int first_piece = from / piece, pieces = to / piece + 1 - first_piece;
  // Fewer parts than there could be where the context is short; each at least a piece a warp.
  const int parts = min(static_cast<int>(g.splits), max(1, pieces / warps));
  if (static_cast<int>(split) >= parts) return;
  const int begin = first_piece + static_cast<int>(static_cast<long long>(pieces) * split / parts);
  const int end = first_piece + static_cast<int>(static_cast<long long>(pieces) * (split + 1) / parts);

  unsigned char* ring = shared + warp * stages * stage_bytes<head_dim>();
  auto* queries = reinterpret_cast<element*>(shared + ring_bytes<head_dim, warps, stages>());
  int asked = 0;
  std::int32_t ids = 0;  // pages of this warp's next 32 pieces, one a lane
  const auto ask = [&](int stage) {
    if (asked % 32 == 0) {
      const int at = min(begin + warp + (asked + lane) * warps, end - 1);
      ids = g.v.pages[pages_at + at * piece / page_tokens];
    }
    const int at = begin + warp + asked * warps;
    const std::int32_t page = __shfl_sync(~0u, ids, asked++ % 32);
    if (at < end)
      fetch<head_dim>(g, kv_head, page, at, shared_address(ring + stage * stage_bytes<head_dim>()), lane);
    copies_end_group();
  };
#pragma unroll
  for (int s = 0; s < stages - 1; ++s) ask(s);
  for (int i = static_cast<int>(threadIdx.x); i < 16 * query_stride(head_dim) / 2; i += warps * 32)
    reinterpret_cast<std::uint32_t*>(queries)[i] = 0;
  __syncthreads();
  wait_for_previous();

  for (int i = warp; i < group; i += warps) {
    const std::uint32_t at = (kv_head * group + i) * head_dim;
    const element* q = g.a.qkv + std::size_t{row} * h.width() + at;
    element* dest = queries + i * query_stride(head_dim);
    if (g.fresh) {
      turn_head<type, head_dim>(q, g.t.bias ? g.t.bias + at : nullptr, g.t.q_norm, g.t.eps,
                          g.t.cos + row * (head_dim / 2), g.t.sin + row * (head_dim / 2), lane,
                          [&](int j, std::uint32_t a, std::uint32_t b) {
                            *reinterpret_cast<std::uint32_t*>(dest + j) = a;
                            *reinterpret_cast<std::uint32_t*>(dest + head_dim / 2 + j) = b;
                          });
    } else {
      for (int j = lane * 2; j < head_dim; j += 64)
        *reinterpret_cast<std::uint32_t*>(dest + j) = *reinterpret_cast<const std::uint32_t*>(q + j);
    }
  }
  __syncthreads();
  std::uint32_t q[steps][4];
#pragma unroll
  for (int s = 0; s < steps; ++s) {
    const element* at = queries + lane / 4 * query_stride(head_dim) + s * 16 + lane % 4 * 2;
    q[s][0] = *reinterpret_cast<const std::uint32_t*>(at);
    q[s][1] = *reinterpret_cast<const std::uint32_t*>(at + 8 * query_stride(head_dim));
    q[s][2] = *reinterpret_cast<const std::uint32_t*>(at + 8);
    q[s][3] = *reinterpret_cast<const std::uint32_t*>(at + 8 * query_stride(head_dim) + 8);
  }

  const float log2_scale = g.a.scale * 1.44269504f;
  float result[units][4] = {};
  float largest[2] = {-INFINITY, -INFINITY}, total[2] = {0, 0};
  int stage = 0;
  for (int at = begin + warp; at < end; at += warps) {
    ask((stage + stages - 1) % stages);
    copies_wait<stages - 1>();
    __syncwarp();
    auto* keys = reinterpret_cast<element*>(ring + stage * stage_bytes<head_dim>());
    if (g.fresh && at == to / piece) {
      lay_fresh<type, head_dim>(g, row, kv_head, static_cast<std::uint32_t>(to), pages_at, keys, lane);
      __syncwarp();
    }
    const std::uint32_t key_at = shared_address(keys), value_at = key_at + piece * head_dim * 2;

    float scores[2][4] = {};
    const int key_token = (lane >> 4) * 8 + lane % 8;
#pragma unroll
    for (int s = 0; s < steps; ++s) {
      std::uint32_t b[4];
      load_matrices(b, key_at + unit_at(s * 2 + (lane >> 3) % 2, key_token, units, piece) * 16);
      mma<type>(scores[0], q[s][0], q[s][1], q[s][2], q[s][3], b[0], b[1]);
      mma<type>(scores[1], q[s][0], q[s][1], q[s][2], q[s][3], b[2], b[3]);
    }
    float most[2] = {largest[0], largest[1]};
#pragma unroll
    for (int n = 0; n < 2; ++n)
#pragma unroll
      for (int j = 0; j < 4; ++j) {
        const int token = at * piece + n * 8 + lane % 4 * 2 + j % 2;
        scores[n][j] = token >= from && token <= to ? scores[n][j] * log2_scale : -INFINITY;
        most[j / 2] = fmaxf(most[j / 2], scores[n][j]);
      }
    float sums[2] = {0, 0}, shrink[2];
#pragma unroll
    for (int r = 0; r < 2; ++r) {
      most[r] = fmaxf(most[r], __shfl_xor_sync(~0u, most[r], 1));
      most[r] = fmaxf(most[r], __shfl_xor_sync(~0u, most[r], 2));
      shrink[r] = most[r] == -INFINITY ? 1.0f : exp2f(largest[r] - most[r]);
      largest[r] = most[r];
    }
#pragma unroll
    for (int n = 0; n < 2; ++n)
#pragma unroll
      for (int j = 0; j < 4; ++j) {
        scores[n][j] = most[j / 2] == -INFINITY ? 0.0f : exp2f(scores[n][j] - most[j / 2]);
        sums[j / 2] += scores[n][j];
      }
    total[0] = total[0] * shrink[0] + sums[0];
    total[1] = total[1] * shrink[1] + sums[1];
    const std::uint32_t p0 = pair_of<type>(scores[0][0], scores[0][1]), p1 = pair_of<type>(scores[0][2], scores[0][3]);
    const std::uint32_t p2 = pair_of<type>(scores[1][0], scores[1][1]), p3 = pair_of<type>(scores[1][2], scores[1][3]);
    const int value_token = (lane >> 3) % 2 * 8 + lane % 8;
#pragma unroll
    for (int u = 0; u < units; u += 2) {
      std::uint32_t b[4];
      load_matrices_transposed(b, value_at + unit_at(u + (lane >> 4), value_token, units, piece) * 16);
#pragma unroll
      for (int n = 0; n < 2; ++n) {
        float(&r)[4] = result[u + n];
        r[0] *= shrink[0];
        r[1] *= shrink[0];
        r[2] *= shrink[1];
        r[3] *= shrink[1];
        mma<type>(r, p0, p1, p2, p3, b[2 * n], b[2 * n + 1]);
      }
    }
    __syncwarp();
    stage = (stage + 1) % stages;
  }
#pragma unroll
  for (int r = 0; r < 2; ++r) {
    total[r] += __shfl_xor_sync(~0u, total[r], 1);
    total[r] += __shfl_xor_sync(~0u, total[r], 2);
  }

  // The warps' parts, joined in shared memory: [warps][16][head_dim], then maxima and totals.
  copies_wait<0>();
  __syncthreads();
  auto* parts_at = reinterpret_cast<float*>(shared);
  float* tops = parts_at + warps * 16 * head_dim;
  float* totals = tops + warps * 16;
#pragma unroll
  for (int r = 0; r < 2; ++r) {
    const int line = lane / 4 + r * 8;
    if (line >= group) continue;
#pragma unroll
    for (int u = 0; u < units; ++u)
      *reinterpret_cast<float2*>(parts_at + (warp * 16 + line) * head_dim + u * 8 + lane % 4 * 2) =
          make_float2(result[u][2 * r], result[u][2 * r + 1]);
    if (lane % 4 == 0) {
      tops[warp * 16 + line] = largest[r];
      totals[warp * 16 + line] = total[r];
    }
  }
  __syncthreads();
  const std::size_t index = std::size_t{blockIdx.z} * h.kv_heads + kv_head;
  float* left = g.scratch.parts + index * g.splits * group * (head_dim + 2);
  float* mine = left + split * group * (head_dim + 2);
  for (int i = static_cast<int>(threadIdx.x); i < group * head_dim; i += warps * 32) {
    const int line = i / head_dim;
    float top = -INFINITY, sum = 0, weight = 0;
    for (int w = 0; w < warps; ++w) top = fmaxf(top, tops[w * 16 + line]);
    for (int w = 0; w < warps; ++w) {
      if (tops[w * 16 + line] == -INFINITY) continue;
      const float f = exp2f(tops[w * 16 + line] - top);
      sum += f * parts_at[(w * 16 + line) * head_dim + i % head_dim];
      weight += f * totals[w * 16 + line];
    }
    if (parts == 1) {
      out[i] = element_of<type>(sum / weight);
    } else {
      mine[i] = sum;
      if (i % head_dim == 0) {
        mine[group * head_dim + line * 2] = top;
        mine[group * head_dim + line * 2 + 1] = weight;
      }
    }
  }
  if (parts == 1) return;

  // The last of a row's blocks joins what all left.
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
  if (last_block) join<type, head_dim>(left, parts, group, warps * 32, out);
}

template <dtype type, int head_dim, int warps, int stages>
void start(device& d, decode_args g) {
  constexpr std::size_t shared = shared_bytes<head_dim, warps, stages>();
  // Contexts are split into as many blocks as find room at once.
  const std::uint32_t items = g.v.decodes * g.a.heads.kv_heads;
  const auto room = static_cast<std::uint32_t>(d.shared_per_block / (shared + 1024) *
                                               static_cast<std::size_t>(d.multiprocessors));
  if (items <= g.scratch.most_items)
    g.splits = std::clamp(std::min(room, g.scratch.most_blocks) / items, 1u, most_splits);
  allow_shared(d, decode_kernel<type, head_dim, warps, stages>, shared);
  launch(d, decode_kernel<type, head_dim, warps, stages>, dim3(g.a.heads.kv_heads, g.splits, g.v.decodes),
         warps * 32, shared, g);
}

template <dtype type, int head_dim>
void start(device& d, const decode_args& g) {
  // A multiprocessor for each of them: more warps get it more quickly through its context.
  const bool few = g.v.decodes * g.a.heads.kv_heads <= static_cast<std::uint32_t>(d.multiprocessors);
  if constexpr (head_dim <= 128)
    if (few && shared_bytes<head_dim, 8, 2>() <= d.shared_per_block) return start<type, head_dim, 8, 2>(d, g);
  if (shared_bytes<head_dim, 4, 3>() <= d.shared_per_block) return start<type, head_dim, 4, 3>(d, g);
  start<type, head_dim, 4, 2>(d, g);
}

template <dtype type>
void start(device& d, const decode_args& g) {
  switch (g.a.heads.head_dim) {
    case 16:
      return start<type, 16>(d, g);
    case 32:
      return start<type, 32>(d, g);
    case 64:
      return start<type, 64>(d, g);
    case 96:
      return start<type, 96>(d, g);
    case 128:
      return start<type, 128>(d, g);
    case 256:
      return start<type, 256>(d, g);
  }
}

}  // namespace

std::uint64_t split_floats(const head_shape& h, std::uint32_t blocks) {
  return std::uint64_t{blocks} * (h.heads / h.kv_heads) * (h.head_dim + 2);
}

bool attention_supports(const device& d, const head_shape& h) {
  const bool known = h.head_dim == 16 || h.head_dim == 32 || h.head_dim == 64 || h.head_dim == 96 ||
                     h.head_dim == 128 || h.head_dim == 256;
  // The least that a block of either kernel takes: what a prompt's has is less.
  const std::size_t shared = std::size_t{4} * 2 * (2 * piece * h.head_dim * 2) + 16 * (h.head_dim + 8) * 2;
  return known && h.heads / h.kv_heads <= 16 && shared <= d.shared_per_block;
}

void decode_attention(device& d, const rows_view& v, const attention_args& a, const turning& t, bool fresh,
                      const split_scratch& scratch) {
  if (v.decodes == 0) return;
  const decode_args g{v, a, t, fresh, scratch, 1};
  if (a.type == dtype::f16) return start<dtype::f16>(d, g);
  start<dtype::bf16>(d, g);
}

}  // namespace weir::kernels::cuda
