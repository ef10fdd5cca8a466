// Attention of many rows of one sequence on 9.0a, where products run while a warpgroup does other things
// (Shah et al. 2024, «FlashAttention-3»).
//
// A block has 128 lines as in attention_prefill.cu, 64 for each of two warpgroups. A third warpgroup only
// loads: it copies two pages at a time, by bulk copies, into ring buffers of keys and of values, and widens
// pages of fp8 or q8 on the way (attention_widen.h). A warpgroup takes the exponentials of the next tile
// while its product P·V of this tile runs. The products of the other warpgroup cover the rest of the
// exponentials' time.
//
// Where there are fewer blocks than multiprocessors, as for a short slice behind a long prompt, the blocks of
// a cluster share a context. Each of them merges its share of the lines, out of the shared memory of all.
#include <algorithm>

#include "kernels/cuda/attention/attention_widen.h"
#include "kernels/cuda/device/launch.h"
#include "kernels/cuda/pages/page_turn.h"

namespace weir::kernels::cuda {
namespace {

#ifdef __CUDA_ARCH_FEAT_SM90_ALL

// Loads all tiles, by one warp. Where the last tile has only one page, that page is loaded twice: no line
// attends to the second copy, but a tile must hold numbers everywhere, because 0 times NaN is NaN.
template <int head_dim>
__device__ void ask(const rows_view& v, const attention_args& a, const part& p, const rings& r) {
  constexpr int panels = head_dim / 64, of_tile = tile_pages<head_dim>,
                part_bytes = panel_bytes<head_dim> / of_tile;  // of a page in a panel
  const int lane = static_cast<int>(threadIdx.x % 32);
  std::int32_t ids = 0;
  for (int t = p.begin; t < p.end; ++t) {
    const int n = t - p.begin, stage = n % stages, slot = n * of_tile % 32;
    const std::uint32_t parity = n / stages % 2 ^ 1;
    if (slot == 0) ids = v.pages[p.b.pages_at + min(p.first_page + t * of_tile + lane, p.last_page)];
    std::int32_t page[of_tile];
#pragma unroll
    for (int i = 0; i < of_tile; ++i) page[i] = __shfl_sync(~0u, ids, slot + i);
    if (lane != 0) continue;
    const auto load = [&](const unsigned char* from, std::uint32_t to, std::uint32_t full,
                          std::uint32_t free) {
      barrier_wait(free + stage * 8, parity);
      barrier_expect(full + stage * 8, tile_bytes<head_dim>);
#pragma unroll
      for (int i = 0; i < of_tile; ++i) {
        const unsigned char* at =
            from + (std::size_t(page[i]) * a.heads.kv_heads + blockIdx.x) * a.heads.page_bytes();
#pragma unroll
        for (int panel = 0; panel < panels; ++panel)
          copy_bulk(to + stage * tile_bytes<head_dim> + panel * panel_bytes<head_dim> + i * part_bytes,
                    at + panel * part_bytes, part_bytes, full + stage * 8);
      }
    };
    load(a.pages.keys, r.keys, r.key_full, r.key_free);
    load(a.pages.values, r.values, r.value_full, r.value_free);
  }
}

// Copies the queries of a warpgroup's lines to shared memory. Lines behind the last row repeat the last row.
template <page_type pages, int head_dim>
__device__ void load_queries(const attention_args& a, const part& p, int group_of_warps, int thread,
                             unsigned char* queries) {
  constexpr int units = head_dim / 8;
  for (int i = thread; i < 64 * units; i += 128) {
    const int line = group_of_warps * 64 + i / units, unit = i % units;
    const auto row = static_cast<std::size_t>(p.b.row + min(line / p.group, p.b.rows - 1));
    const std::size_t head = blockIdx.x * p.group + line % p.group;
    uint4 q =
        __ldcg(reinterpret_cast<const uint4*>(a.qkv + row * a.heads.width() + head * head_dim + unit * 8));
    if (number_bytes(pages) == 1 && a.type == dtype::bf16)
      q = make_uint4(f16_of_bf16(q.x), f16_of_bf16(q.y), f16_of_bf16(q.z), f16_of_bf16(q.w));
    *reinterpret_cast<uint4*>(queries + unit_at(unit, line, units, lines) * 16) = q;
  }
  asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
  named_barrier(1 + group_of_warps, 128);
}

// Computes a warpgroup's 64 lines over all tiles of the part. `o` becomes the sums of values, relative to the
// largest scores and not divided by the totals.
template <page_type pages, int head_dim, bool capped>
__device__ __forceinline__ void consume(const part& p, const rings& r, int group_of_warps, float log2_scale,
                                        running& w, float (&o)[head_dim / 2]) {
  constexpr dtype type = math_type<pages>;
  constexpr int bytes = tile_bytes<head_dim>;
  const bool tells = threadIdx.x % 32 == 0;  // one lane arrives at barriers for its warp
  const std::uint32_t queries = r.queries + group_of_warps * 64 * 128;
  float s[tile<head_dim> / 2], shrink[2];
  std::uint32_t weights[tile<head_dim> / 4];
#pragma unroll
  for (float& x : o) x = 0;
  if (p.begin == p.end) return;

  barrier_wait(r.key_full, 0);
  products_begin();
  multiply_keys<type, head_dim>(s, queries, r.keys);
  wait_products<0>(s);
  if (tells) barrier_arrive(r.key_free);
  take_exponentials<head_dim, capped>(s, w, p, p.begin, log2_scale, shrink);
  pack<type>(s, weights);
  int stage = 0;
  std::uint32_t parity = 0;  // of `stage`
  for (int t = p.begin + 1; t < p.end; ++t) {
    const int next = stage + 1 == stages ? 0 : stage + 1;
    const std::uint32_t next_parity = next == 0 ? parity ^ 1 : parity;
    barrier_wait(r.key_full + next * 8, next_parity);
    products_begin();
    multiply_keys<type, head_dim>(s, queries, r.keys + next * bytes);
    barrier_wait(r.value_full + stage * 8, parity);
    multiply_values<type, head_dim>(o, weights, r.values + stage * bytes);
    wait_products<1>(s);
    if (tells) barrier_arrive(r.key_free + next * 8);
    take_exponentials<head_dim, capped>(s, w, p, t, log2_scale, shrink);
    wait_products<0>(o);
    if (tells) barrier_arrive(r.value_free + stage * 8);
#pragma unroll
    for (int i = 0; i < head_dim / 2; ++i) o[i] *= shrink[i / 2 % 2];
    pack<type>(s, weights);
    stage = next;
    parity = next_parity;
  }
  barrier_wait(r.value_full + stage * 8, parity);
  products_begin();
  multiply_values<type, head_dim>(o, weights, r.values + stage * bytes);
  wait_products<0>(o);
#pragma unroll
  for (int l = 0; l < 2; ++l) {
    w.total[l] += __shfl_xor_sync(~0u, w.total[l], 1);
    w.total[l] += __shfl_xor_sync(~0u, w.total[l], 2);
  }
}

// The output of line `line`.
template <int head_dim>
__device__ element* out_of(const attention_args& a, const part& p, int line) {
  const auto row = static_cast<std::size_t>(p.b.row + line / p.group);
  return a.out + (row * a.heads.heads + blockIdx.x * p.group + line % p.group) * head_dim;
}

// The sink of a line's head, in units of log2. REQUIRES: a.sinks is not null
__device__ __forceinline__ float sink_of(const attention_args& a, const part& p, int line) {
  return a.sinks[blockIdx.x * p.group + line % p.group] * 1.44269504f;
}

// Merges the parts of this block's share of the lines, out of the shared memory of all blocks of the cluster,
// and writes the output.
template <page_type pages, int head_dim>
__device__ void join(const attention_args& a, const part& p, std::uint32_t sums, int thread) {
  constexpr int quads = head_dim / 4, stride = sum_stride<head_dim>;
  const int parts = static_cast<int>(gridDim.z), share = (lines + parts - 1) / parts;
  const auto far = [&](std::uint32_t at, int of) {
    std::uint32_t there;
    asm("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(there) : "r"(at), "r"(of));
    return there;
  };
  for (int i = thread; i < share * quads; i += consumers) {
    const int line = static_cast<int>(blockIdx.z) * share + i / quads;
    if (line >= lines || line / p.group >= p.b.rows) continue;
    float top = -INFINITY, weight = 0, sum[4] = {};
    if (a.sinks) top = sink_of(a, p, line), weight = 1;
    for (int part = 0; part < parts; ++part) {
      float most, total, x[4];
      asm volatile("ld.shared::cluster.v2.f32 {%0, %1}, [%2];"
                   : "=f"(most), "=f"(total)
                   : "r"(far(sums + (lines * stride + line * 2) * 4, part)));
      asm volatile("ld.shared::cluster.v4.f32 {%0, %1, %2, %3}, [%4];"
                   : "=f"(x[0]), "=f"(x[1]), "=f"(x[2]), "=f"(x[3])
                   : "r"(far(sums + (line * stride + i % quads * 4) * 4, part)));
      if (most == -INFINITY) continue;
      const float larger = fmaxf(top, most), before = exp2_fast(top - larger), now = exp2_fast(most - larger);
      top = larger;
      weight = weight * before + total * now;
#pragma unroll
      for (int j = 0; j < 4; ++j) sum[j] = sum[j] * before + x[j] * now;
    }
    const float inverse = 1.0f / weight;
    put_four(a.out_order, out_of<head_dim>(a, p, line), i % quads * 4,
             row_pair<pages>(a.type, sum[0] * inverse, sum[1] * inverse),
             row_pair<pages>(a.type, sum[2] * inverse, sum[3] * inverse));
  }
}

// Stores the thread's two lines, `line` and `line` + 8, at `sums` for join().
template <int head_dim>
__device__ void leave_part(const running& w, const float (&o)[head_dim / 2], float log2_scale, int line,
                           float* sums) {
  constexpr int stride = sum_stride<head_dim>;
  const int lane = static_cast<int>(threadIdx.x % 32);
#pragma unroll
  for (int l = 0; l < 2; ++l) {
    const int at = line + l * 8;
#pragma unroll
    for (int u = 0; u < head_dim / 8; ++u)
      *reinterpret_cast<float2*>(sums + at * stride + u * 8 + lane % 4 * 2) =
          make_float2(o[u * 4 + l * 2], o[u * 4 + l * 2 + 1]);
    if (lane % 4 == 0)
      *reinterpret_cast<float2*>(sums + lines * stride + at * 2) =
          make_float2(w.largest[l] * log2_scale, w.total[l]);
  }
}

// Writes the output of the thread's two lines.
template <page_type pages, int head_dim>
__device__ void write(const attention_args& a, const part& p, const running& w,
                      const float (&o)[head_dim / 2], float log2_scale, int line) {
  const int lane = static_cast<int>(threadIdx.x % 32);
#pragma unroll
  for (int l = 0; l < 2; ++l) {
    if ((line + l * 8) / p.group >= p.b.rows) continue;
    float inverse = 1.0f / w.total[l];
    if (a.sinks) {
      const float sink = sink_of(a, p, line + l * 8), largest = w.largest[l] * log2_scale;
      const float top = fmaxf(largest, sink), by = exp2_fast(largest - top);
      inverse = by / (w.total[l] * by + exp2_fast(sink - top));
    }
    element* to = out_of<head_dim>(a, p, line + l * 8);
#pragma unroll
    for (int u = 0; u < head_dim / 8; ++u)
      *reinterpret_cast<std::uint32_t*>(to + place_in(a.out_order, u * 8 + lane % 4 * 2)) =
          row_pair<pages>(a.type, o[u * 4 + l * 2] * inverse, o[u * 4 + l * 2 + 1] * inverse);
  }
}
#endif

template <page_type pages, int head_dim, bool capped>
__global__ void __launch_bounds__(threads<pages, head_dim>, 1) wgmma_kernel(rows_view v, attention_args a) {
#ifdef __CUDA_ARCH_FEAT_SM90_ALL
  extern __shared__ __align__(1024) unsigned char shared[];
  constexpr bool widens = number_bytes(pages) == 1;
  constexpr int loaders = cuda::loaders<pages, head_dim>;
  const part p = part_of<head_dim>(v, a);
  if (p.b.rows == 0) return;
  const rings r = rings_at<pages, head_dim>(shared_address(shared));
  if (threadIdx.x == 0) {
    for (int i = 0; i < stages; ++i) {
      barrier_init(r.key_full + i * 8, widens ? loaders / 32 * warp_arrivals : 1);
      barrier_init(r.value_full + i * 8, widens ? loaders / 32 * warp_arrivals : 1);
      barrier_init(r.key_free + i * 8, consumers / 32);
      barrier_init(r.value_free + i * 8, consumers / 32);
    }
    for (int i = 0; i < stored_slots<pages, head_dim>; ++i) barrier_init(r.stored_full + i * 8, 1);
    barrier_inits_end();
  }
  __syncthreads();
  let_next_start();
  const int group_of_warps = static_cast<int>(threadIdx.x / 128);
  if (group_of_warps >= consumers / 128) {
    keep_registers<loaders == 256 ? 48 : widens ? 56 : 24>();
    wait_for_previous();
    if constexpr (widens)
      widening_loader<pages, head_dim>(v, a, p, r, static_cast<int>(threadIdx.x) - consumers).load();
    else if (threadIdx.x < consumers + 32)
      ask<head_dim>(v, a, p, r);
    if (gridDim.z > 1) {
      cluster_barrier();
      cluster_barrier();
    }
  } else {
    take_registers<loaders == 256 ? 208 : widens ? 224 : 240>();
    wait_for_previous();
    const int thread = static_cast<int>(threadIdx.x % 128), lane = thread % 32;
    const int line = group_of_warps * 64 + thread / 32 * 16 + lane / 4;
    const float log2_scale = a.rule.scale * 1.44269504f;
    load_queries<pages, head_dim>(a, p, group_of_warps, thread, shared);
    running w;
#pragma unroll
    for (int l = 0; l < 2; ++l) w.position[l] = p.b.position + min((line + l * 8) / p.group, p.b.rows - 1);
    float o[head_dim / 2];
    consume<pages, head_dim, capped>(p, r, group_of_warps, log2_scale, w, o);
    if constexpr (pages == page_type::q8) turn_sums(o, lane);  // back
    if (gridDim.z == 1) {
      write<pages, head_dim>(a, p, w, o, log2_scale, line);
    } else {
      named_barrier(3, consumers);  // no warp reads queries or rings any more
      leave_part<head_dim>(w, o, log2_scale, line, reinterpret_cast<float*>(shared));
      cluster_barrier();
      join<pages, head_dim>(a, p, r.queries, static_cast<int>(threadIdx.x));
      cluster_barrier();  // no block reads this block's shared memory any more
    }
  }
#endif
}

// The number of clusters of `parts` blocks that run at once.
template <page_type pages, int head_dim, bool capped>
std::uint32_t clusters_at_once(device& d, std::uint32_t parts) {
  if (parts == 1) return static_cast<std::uint32_t>(d.multiprocessors);
  int& known = d.clusters[parts];
  if (known >= 0) return static_cast<std::uint32_t>(known);
  cudaLaunchConfig_t how{};
  how.gridDim = dim3(1, 1, parts);
  how.blockDim = dim3(threads<pages, head_dim>);
  how.dynamicSmemBytes = shared_bytes<pages, head_dim>;
  cudaLaunchAttribute cluster;
  cluster.id = cudaLaunchAttributeClusterDimension;
  cluster.val.clusterDim = {1, 1, parts};
  how.attrs = &cluster;
  how.numAttrs = 1;
  // A size that this device does not support is not a failure.
  if (cudaOccupancyMaxActiveClusters(&known, wgmma_kernel<pages, head_dim, capped>, &how) != cudaSuccess) {
    (void)cudaGetLastError();
    known = 0;
  }
  return static_cast<std::uint32_t>(known);
}

// The number of blocks that share a context: the one with the shortest time, in units of a tile's time. The
// beginning and the end of a block take about three tiles' time, and the join one more.
template <page_type pages, int head_dim, bool capped>
std::uint32_t parts_for(device& d, std::uint32_t blocks, std::uint32_t context) {
  if (2 * blocks > static_cast<std::uint32_t>(d.multiprocessors)) return 1;
  const std::uint32_t tiles = (context + tile<head_dim> - 1) / tile<head_dim>;
  std::uint32_t best = 1, least = tiles + 3;
  for (std::uint32_t parts = 2; parts <= 8 && 2 * parts <= tiles; ++parts) {
    const std::uint32_t at_once = clusters_at_once<pages, head_dim, capped>(d, parts);
    if (at_once == 0) continue;
    const std::uint32_t time = (blocks + at_once - 1) / at_once * ((tiles + parts - 1) / parts + 4);
    if (time < least) best = parts, least = time;
  }
  return best;
}

template <page_type pages, int head_dim, bool capped>
void start(device& d, const rows_view& v, const attention_args& a) {
  const auto kernel = wgmma_kernel<pages, head_dim, capped>;
  allow_shared(d, kernel, shared_bytes<pages, head_dim>);
  if (d.failed()) return;
  const std::uint32_t seen =
      a.rule.window != 0 ? std::min(v.context, a.rule.window + tile<head_dim>) : v.context;
  const std::uint32_t parts = parts_for<pages, head_dim, capped>(d, v.block_count * a.heads.kv_heads, seen);
  launch_clusters(d, kernel, dim3(a.heads.kv_heads, v.block_count, parts), dim3(1, 1, parts),
                  threads<pages, head_dim>, shared_bytes<pages, head_dim>, v, a);
}

template <page_type pages, int head_dim>
void start(device& d, const rows_view& v, const attention_args& a) {
  if (a.rule.cap != 0) return start<pages, head_dim, true>(d, v, a);
  start<pages, head_dim, false>(d, v, a);
}

}  // namespace

bool can_use_wgmma(const device& d, const rows_view& v, const head_shape& h) {
  return d.path == code_path::hopper && !d.deterministic &&
         (h.head_dim == 64 || h.head_dim == 128 || h.head_dim == 256) && v.block_lines == lines;
}

void wgmma_attention(device& d, const rows_view& v, const attention_args& a) {
  with_page_type(a.heads.pages, [&](auto pages) {
    if (a.heads.head_dim == 64) return start<pages, 64>(d, v, a);
    if (a.heads.head_dim == 256) return start<pages, 256>(d, v, a);
    start<pages, 128>(d, v, a);
  });
}

}  // namespace weir::kernels::cuda
