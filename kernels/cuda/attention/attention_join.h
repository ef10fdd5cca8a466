// attention_join.h — the join warp of attention_bulk.cu: merges the results of a block's compute warps and
// writes the output, or a part of it.
#pragma once

#include "kernels/cuda/attention/attention_ring.h"

namespace weir::kernels::cuda {

// The join warp of a block. Every function is called by all 32 lanes.
template <page_type pages, int head_dim>
class joiner {
  static constexpr int lines = join_lines<head_dim>, quads = head_dim / 4;

 public:
  __device__ __forceinline__ joiner(const decode_args& args, ring<pages, head_dim>& from)
      : g(args),
        r(from),
        lane(static_cast<int>(threadIdx.x % 32)),
        group(static_cast<int>(args.a.heads.heads / args.a.heads.kv_heads)) {}

  // Merges item after item as the compute warps pass them on, until an item has head -1. A context in
  // several parts is completed by the join warp of the block that finishes the last of them.
  __device__ __forceinline__ void run() {
    for (;;) {
      item of;
      for (int line = 0; line < group; line += lines) {
        barrier_wait(shared_address(&r.sums_full), heard++ & 1);
        of = r.joined;
        if (of.head < 0) return;
        join(of, line);
        barrier_arrive_warp(shared_address(&r.sums_empty));
      }
      if (of.parts > 1 && is_last(of)) join_parts(of);
    }
  }

 private:
  // Merges four neighbouring elements of one query head from partial results, each of which is relative to
  // its own largest score. `top` is the largest score so far; `weight` (the total) and `of` (the sums) are
  // relative to it.
  struct sum {
    float top = -INFINITY, weight = 0;
    float4 of = {0, 0, 0, 0};

    // Adds a partial result: `x` its sums, `end` its largest score and its total.
    __device__ __forceinline__ void add(float4 x, float2 end) {
      const float now = fmaxf(top, end.x), mine = top == -INFINITY ? 0.0f : exp2f(top - now);
      const float theirs = end.x == -INFINITY ? 0.0f : exp2f(end.x - now);
      of = make_float4(of.x * mine + x.x * theirs, of.y * mine + x.y * theirs, of.z * mine + x.z * theirs,
                       of.w * mine + x.w * theirs);
      weight = weight * mine + end.y * theirs;
      top = now;
    }

    // Turns the sums of q8 values back. Eight neighbouring lanes, those of a group, call it together.
    __device__ __forceinline__ void turn_back(int lane) {
      float v[4] = {of.x, of.y, of.z, of.w};
      turn(v, lane, 0xffu << (lane & 24));
      of = make_float4(v[0], v[1], v[2], v[3]);
    }

    // Stores the sums divided by the total, as columns `column` on of the output `out`.
    __device__ __forceinline__ void put(const attention_args& a, element* out, int column) const {
      const float by = 1.0f / weight;
      put_four(a.out_order, out, column, row_pair<pages>(a.type, of.x * by, of.y * by),
               row_pair<pages>(a.type, of.z * by, of.w * by));
    }
  };

  // The item's output, [group, head_dim].
  __device__ __forceinline__ element* out_of(const item& of) const {
    return g.a.out + (static_cast<std::size_t>(of.row) * g.a.heads.heads + of.head * group) * head_dim;
  }

  // Where the result of one part of the item's row lies in the scratch (part_floats).
  __device__ __forceinline__ float* part_of(const item& of, int part) const {
    return g.scratch.parts +
           (static_cast<std::size_t>(of.slot + part) * g.a.heads.kv_heads + of.head) * part_floats(g.a.heads);
  }

  // Merges what the compute warps hold in r.sums: query heads from `line` on of the group, at most `lines`.
  // The result is written to the output; where the item is one of several parts, to the scratch.
  __device__ __forceinline__ void join(const item& of, int line) const {
    float* left = of.parts > 1 ? part_of(of, of.part) : nullptr;
    for (int i = lane; i < lines * quads; i += 32) {
      const int l = i / quads, at = i % quads * 4;
      if (line + l >= group) break;
      sum s;
#pragma unroll
      for (int w = 0; w < compute_warps; ++w)
        s.add(*reinterpret_cast<const float4*>(&r.sums[w][l][at]), r.ends[w][l]);
      if constexpr (pages == page_type::q8) s.turn_back(lane);
      if (!left) {
        add_sink(s, of, line + l);
        s.put(g.a, out_of(of), (line + l) * head_dim + at);
        continue;
      }
      *reinterpret_cast<float4*>(left + (line + l) * head_dim + at) = s.of;
      if (at == 0)
        *reinterpret_cast<float2*>(left + group * head_dim + (line + l) * 2) = make_float2(s.top, s.weight);
    }
  }

  // Counts the item's part as finished, and returns whether it was the last of its row and key head. In that
  // case the counter is reset to 0, and what the other blocks left in the scratch is visible to all lanes.
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
    __syncwarp();  // makes what the other blocks left visible to all lanes
    return before + 1 == static_cast<unsigned>(of.parts);
  }

  // Merges the parts in the scratch and writes the output.
  __device__ __forceinline__ void join_parts(const item& of) const {
    for (int i = lane * 4; i < group * head_dim; i += 32 * 4) {
      sum s;
#pragma unroll 4
      for (int p = 0; p < of.parts; ++p) {
        const float* from = part_of(of, p);
        s.add(__ldcg(reinterpret_cast<const float4*>(from + i)),
              __ldcg(reinterpret_cast<const float2*>(from + group * head_dim + i / head_dim * 2)));
      }
      add_sink(s, of, i / head_dim);
      s.put(g.a, out_of(of), i);
    }
  }

  // Adds the sink of query head `line` of the group, where there are sinks, to the whole of a context.
  __device__ __forceinline__ void add_sink(sum& s, const item& of, int line) const {
    if (!g.a.sinks) return;
    s.add(make_float4(0, 0, 0, 0),
          make_float2(g.a.sinks[of.head * group + line] * 1.44269504f, exp2f(weight_power<pages>)));
  }

  const decode_args& g;
  ring<pages, head_dim>& r;
  const int lane, group;
  int heard = 0;  // how often the compute warps have filled r.sums
};

}  // namespace weir::kernels::cuda
