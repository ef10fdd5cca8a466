// Attention in f32 (Dao 2023, «FlashAttention-2»), on the plain units: there are no products of f32 by tensor
// cores that keep all its bits.
//
// A line is one query head of one row. A block computes 32 lines of one slice and key head, over the whole
// context or, where there are few blocks, over a part of it; a second kernel then merges the parts. Keys and
// then values of a tile of 32 tokens are in shared memory, in the same place. Each of 128 threads has four
// lines: it computes their scores for two tokens of the tile, and every 16th quad of elements of the results.
//
// Tiles begin at multiples of 32 positions. A tile that a line does not attend to changes nothing of its
// sums, so a row's bits do not depend on the rows beside it as long as contexts are not divided.
#include "kernels/cuda/attention/attention_f32.h"

#include <algorithm>
#include <vector>

#include "kernels/cuda/device/launch.h"
#include "kernels/cuda/device/mma.h"

namespace weir::kernels::cuda {
namespace {

constexpr int lines = 32, tile = 32, threads = 128, most_parts = 16;
constexpr int weights_stride = tile + 4;

// A block computes lines from `line` on of slice `slice`. The lines of a slice are counted row by row.
struct line_block {
  std::uint32_t slice, line;
};

struct f32_args {
  attention op;
  const kv_slice* slices;
  const line_block* blocks;
  // [gridDim.z, rows * heads, head_dim + 4]: sums, then largest score and total; null: contexts are not
  // divided
  float* parts;
  std::uint32_t rows;  // of the step
};

// A row of shared memory has four floats more than a head: eight lanes that read 16 bytes of eight rows then
// use different banks.
template <int width>
constexpr int stride = width + 4;

template <int width>
constexpr std::size_t shared_bytes = ((lines + tile) * stride<width> + lines * weights_stride) *
                                     sizeof(float);

// Which tokens a block computes, and where they are.
struct block_context {
  kv_slice slice;
  std::uint32_t kv_head, group, count;  // count: lines of the slice and key head
  int first, last;                      // the positions that lines of the block attend to

  __device__ std::uint32_t line_at(std::uint32_t line) const { return min(line, count - 1); }
};

// Copies the keys, or the values, of tile `index` to shared memory. Positions before `first` or behind `last`
// get the row of the nearer of the two: a tile must hold numbers everywhere, because 0 times NaN is NaN.
template <int width>
__device__ __forceinline__ void load_tile(const f32_args& g, const block_context& c, const float* from,
                                          int index, float* to) {
  const kv_pages& kv = g.op.kv;
  const int quads = static_cast<int>(kv.head_dim / 4);
  for (int i = static_cast<int>(threadIdx.x); i < tile * quads; i += threads) {
    const int token = i / quads, at = i % quads * 4;
    const auto position = static_cast<std::uint32_t>(min(max(index * tile + token, c.first), c.last));
    const auto page = static_cast<std::size_t>(c.slice.pages[position / kv.page_tokens]);
    const std::size_t row = (page * kv.heads + c.kv_head) * kv.page_tokens + position % kv.page_tokens;
    copy_async(shared_address(to + token * stride<width> + at), from + row * kv.head_dim + at);
  }
  copies_end_group();
  copies_wait<0>();
  __syncthreads();
}

// The state of a thread's four lines.
template <int width>
struct line_sums {
  static constexpr int quads = width / 64;
  float4 result[4][quads] = {};  // elements (threadIdx.x % 16 + 16 * j) * 4 and the three behind
  float largest[4] = {-INFINITY, -INFINITY, -INFINITY, -INFINITY}, total[4] = {};
  int first[4], position[4];  // the positions that each line attends to: [first, position]

  // Takes the exponentials of the scores of tile `index` into `weights`, relative to the largest score so
  // far, and scales the sums so far.
  __device__ __forceinline__ void take(float (&scores)[4][2], int index, float* weights) {
    const int x = static_cast<int>(threadIdx.x % 16), y = static_cast<int>(threadIdx.x / 16);
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      float most = largest[i];
#pragma unroll
      for (int j = 0; j < 2; ++j) {
        const int token = index * tile + x + 16 * j;
        if (token < first[i] || token > position[i]) scores[i][j] = -INFINITY;
        most = fmaxf(most, scores[i][j]);
      }
#pragma unroll
      for (int far = 8; far > 0; far /= 2) most = fmaxf(most, __shfl_xor_sync(~0u, most, far));
      const float base = most == -INFINITY ? 0.0f : most, shrink = exp2f(largest[i] - base);
      largest[i] = most;
      float sum = 0;
#pragma unroll
      for (int j = 0; j < 2; ++j) {
        const float weight = exp2f(scores[i][j] - base);
        weights[(y * 4 + i) * weights_stride + x + 16 * j] = weight;
        sum += weight;
      }
#pragma unroll
      for (int far = 8; far > 0; far /= 2) sum += __shfl_xor_sync(~0u, sum, far);
      total[i] = total[i] * shrink + sum;
#pragma unroll
      for (int j = 0; j < quads; ++j) {
        float4& r = result[i][j];
        r = make_float4(r.x * shrink, r.y * shrink, r.z * shrink, r.w * shrink);
      }
    }
  }

  // Adds the values of a tile, weighted.
  __device__ __forceinline__ void add(const float* values, const float* weights) {
    const int x = static_cast<int>(threadIdx.x % 16), y = static_cast<int>(threadIdx.x / 16);
    for (int token = 0; token < tile; token += 4) {
      float by[4][4];
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        const auto w = *reinterpret_cast<const float4*>(weights + (y * 4 + i) * weights_stride + token);
        by[i][0] = w.x, by[i][1] = w.y, by[i][2] = w.z, by[i][3] = w.w;
      }
#pragma unroll
      for (int u = 0; u < 4; ++u)
#pragma unroll
        for (int j = 0; j < quads; ++j) {
          const auto v =
              *reinterpret_cast<const float4*>(values + (token + u) * stride<width> + (x + 16 * j) * 4);
#pragma unroll
          for (int i = 0; i < 4; ++i) {
            result[i][j].x += by[i][u] * v.x;
            result[i][j].y += by[i][u] * v.y;
            result[i][j].z += by[i][u] * v.z;
            result[i][j].w += by[i][u] * v.w;
          }
        }
    }
  }
};

// The scores of the thread's lines and two tokens: products of `queries` and `keys`, both in shared memory.
template <int width>
__device__ __forceinline__ void multiply(const float* queries, const float* keys, int head_dim,
                                         float (&scores)[4][2]) {
  const int x = static_cast<int>(threadIdx.x % 16), y = static_cast<int>(threadIdx.x / 16);
#pragma unroll 4
  for (int e = 0; e < head_dim; e += 4) {
    float4 k[2];
#pragma unroll
    for (int j = 0; j < 2; ++j)
      k[j] = *reinterpret_cast<const float4*>(keys + (x + 16 * j) * stride<width> + e);
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      const auto q = *reinterpret_cast<const float4*>(queries + (y * 4 + i) * stride<width> + e);
#pragma unroll
      for (int j = 0; j < 2; ++j) scores[i][j] += q.x * k[j].x + q.y * k[j].y + q.z * k[j].z + q.w * k[j].w;
    }
  }
}

// The total of a line whose largest score is `largest`, in units of log2, with that of its head's sink.
// Relative to a sink that is far above all scores, it is infinite: the line is then 0. `sink` may be null.
__device__ __forceinline__ float total_with(const float* sink, float largest, float total) {
  return sink ? total + exp2f(*sink * 1.44269504f - largest) : total;
}

template <int width>
__global__ void __launch_bounds__(threads) f32_kernel(const f32_args g) {
  extern __shared__ __align__(16) float room[];
  float *queries = room, *data = queries + lines * stride<width>, *weights = data + tile * stride<width>;
  const line_block b = g.blocks[blockIdx.x];
  const int size = static_cast<int>(g.op.kv.head_dim);
  const std::uint32_t group = g.op.heads / g.op.kv.heads;
  block_context c{g.slices[b.slice], blockIdx.y, group, 0, 0, 0};
  c.count = c.slice.rows * group;
  const auto position_of = [&](std::uint32_t line) {
    return static_cast<int>(c.slice.position + c.line_at(line) / group);
  };
  c.first = g.op.rule.first_seen(position_of(b.line));
  c.last = position_of(b.line + lines - 1);
  // Line `line` of the slice as an index into the output's rows of heads.
  const auto place_of = [&](std::uint32_t line) {
    return std::size_t{c.slice.first_row + line / group} * g.op.heads + c.kv_head * group + line % group;
  };

  // Scores are in units of log2; those that are bounded become so when tanh has been taken.
  const float cap = g.op.rule.cap, unit = cap == 0 ? 1.44269504f : 1.0f / cap;
  for (int i = static_cast<int>(threadIdx.x); i < lines * size / 4; i += threads) {
    const int line = i / (size / 4), at = i % (size / 4) * 4;
    const std::uint32_t from = c.line_at(b.line + line), head = c.kv_head * group + from % group;
    const auto q = *reinterpret_cast<const float4*>(
        g.op.q + std::size_t{c.slice.first_row + from / group} * g.op.stride + head * size + at);
    const float by = g.op.rule.scale_at(c.slice.position + from / group) * unit;
    *reinterpret_cast<float4*>(queries + line * stride<width> + at) =
        make_float4(q.x * by, q.y * by, q.z * by, q.w * by);
  }
  const int x = static_cast<int>(threadIdx.x % 16);
  const std::uint32_t mine = b.line + threadIdx.x / 16 * 4;
  line_sums<width> s;
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    s.position[i] = position_of(mine + i);
    s.first[i] = g.op.rule.first_seen(s.position[i]);
  }
  const int first = c.first / tile, tiles = c.last / tile - first + 1;
  const int part = static_cast<int>(blockIdx.z), parts = static_cast<int>(gridDim.z);
  for (int t = first + tiles * part / parts; t < first + tiles * (part + 1) / parts; ++t) {
    __syncthreads();  // the values of the tile before are read
    load_tile<width>(g, c, static_cast<const float*>(g.op.kv.keys), t, data);
    float scores[4][2] = {};
    multiply<width>(queries, data, size, scores);
    if (cap != 0)
#pragma unroll
      for (int i = 0; i < 4; ++i)
#pragma unroll
        for (int j = 0; j < 2; ++j) scores[i][j] = cap * 1.44269504f * tanhf(scores[i][j]);
    s.take(scores, t, weights);
    __syncthreads();  // the keys are read
    load_tile<width>(g, c, static_cast<const float*>(g.op.kv.values), t, data);
    s.add(data, weights);
  }
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    if (mine + i >= c.count) continue;
    const std::size_t place = place_of(mine + i);
    float* to = g.op.out + place * size;
    if (g.parts) {
      to = g.parts + (part * std::size_t{g.rows} * g.op.heads + place) * (size + 4);
      if (x == 0) *reinterpret_cast<float2*>(to + size) = make_float2(s.largest[i], s.total[i]);
    }
    const float* sinks = g.op.sinks ? g.op.sinks + place % g.op.heads : nullptr;
    const float by = g.parts ? 1.0f : 1.0f / total_with(sinks, s.largest[i], s.total[i]);
#pragma unroll
    for (int j = 0; j < line_sums<width>::quads; ++j) {
      const float4 r = s.result[i][j];
      if ((x + 16 * j) * 4 < size)
        *reinterpret_cast<float4*>(to + (x + 16 * j) * 4) =
            make_float4(r.x * by, r.y * by, r.z * by, r.w * by);
    }
  }
}

// Merges the parts of each line, one warp for each. `sinks` [heads] may be null.
__global__ void merge_kernel(const float* parts, int count, std::uint32_t all, int size, std::uint32_t heads,
                             const float* sinks, float* out) {
  const std::size_t line = (blockIdx.x * std::size_t{blockDim.x} + threadIdx.x) / 32;
  if (line >= all) return;
  const auto part_at = [&](int p) { return parts + (p * std::size_t{all} + line) * (size + 4); };
  float top = -INFINITY, weight = 0;
  for (int p = 0; p < count; ++p) top = fmaxf(top, part_at(p)[size]);
  for (int p = 0; p < count; ++p) weight += exp2f(part_at(p)[size] - top) * part_at(p)[size + 1];
  weight = total_with(sinks ? sinks + line % heads : nullptr, top, weight);
  for (int i = static_cast<int>(threadIdx.x % 32); i < size; i += 32) {
    float sum = 0;
    for (int p = 0; p < count; ++p) sum += exp2f(part_at(p)[size] - top) * part_at(p)[i];
    out[line * size + i] = sum / weight;
  }
}

template <int width>
void start(device& d, const f32_args& g, dim3 grid) {
  static_assert(shared_bytes<width> <= general_shared);
  allow_shared(d, f32_kernel<width>, shared_bytes<width>);
  if (d.failed()) return;
  f32_kernel<width><<<grid, threads, shared_bytes<width>, d.stream>>>(g);
  WEIR_CUDA(d, cudaGetLastError());
}

// The number of parts into which contexts are divided: there are up to four blocks for each multiprocessor,
// and a part has at least four tiles. The parts' sums fit into the workspace: there are at most lines * 4 of
// them for each multiprocessor.
std::uint32_t parts_for(const device& d, const attention& op, std::size_t blocks) {
  if (d.deterministic) return 1;
  std::uint32_t longest = 0;
  for (const kv_slice& s : op.slices) longest = std::max(longest, s.position + s.rows);
  const std::size_t wanted =
      4 * static_cast<std::size_t>(d.multiprocessors) / std::max<std::size_t>(blocks, 1);
  return static_cast<std::uint32_t>(
      std::clamp<std::size_t>(wanted, 1, std::clamp<std::size_t>(longest / (4 * tile), 1, most_parts)));
}

}  // namespace

bool can_attend_f32(const attention& op) {
  const auto aligned = [](const void* at) { return reinterpret_cast<std::uintptr_t>(at) % 16 == 0; };
  return op.kv.head_dim % 4 == 0 && op.kv.head_dim <= 256 && op.stride % 4 == 0 && aligned(op.q) &&
         aligned(op.kv.keys) && aligned(op.kv.values) && aligned(op.out);
}

void attend_f32(device& d, const attention& op, const kv_slice* slices) {
  const std::uint32_t group = op.heads / op.kv.heads;
  std::vector<line_block> blocks;
  for (std::uint32_t s = 0; s < op.slices.size(); ++s)
    for (std::uint32_t line = 0; line < op.slices[s].rows * group; line += lines) blocks.push_back({s, line});
  const auto* there = d.stage_array(blocks.data(), blocks.size());
  if (d.failed()) return;
  const std::uint32_t rows = op.slices.back().first_row + op.slices.back().rows;
  const std::uint32_t parts = parts_for(d, op, blocks.size() * op.kv.heads);
  float* sums = parts > 1 ? static_cast<float*>(d.workspace) : nullptr;
  const f32_args g{op, slices, there, sums, rows};
  const dim3 grid(static_cast<unsigned>(blocks.size()), op.kv.heads, parts);
  if (op.kv.head_dim <= 64)
    start<64>(d, g, grid);
  else if (op.kv.head_dim <= 128)
    start<128>(d, g, grid);
  else
    start<256>(d, g, grid);
  if (parts == 1 || d.failed()) return;
  const std::uint32_t all = rows * op.heads;
  merge_kernel<<<(all + threads / 32 - 1) / (threads / 32), threads, 0, d.stream>>>(
      sums, static_cast<int>(parts), all, static_cast<int>(op.kv.head_dim), op.heads, op.sinks, op.out);
  WEIR_CUDA(d, cudaGetLastError());
}

}  // namespace weir::kernels::cuda
