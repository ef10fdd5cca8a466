// The single operations of the cuda backend: one simple kernel each, in f32 inside. Models that the decoder
// does not support are computed by these kernels, and tests compare the operations with the reference
// backend. Larger products of f32 weights go through cuBLASLt, in f32 throughout (no TF32); the bits of a row
// may then depend on the number of rows.
#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <algorithm>
#include <vector>

#include "kernels/cuda/attention/attention_f32.h"
#include "kernels/cuda/device/device.h"
#include "kernels/cuda/device/warp.h"
#include "kernels/cuda/experts/ops.h"
#include "kernels/cuda/products/block_layout.h"
#include "kernels/cuda/products/gate.h"
#include "kernels/cuda/products/launch_product.h"

namespace weir::kernels::cuda {
namespace {

constexpr unsigned threads = 256;

__device__ float widen(const void* data, dtype type, std::size_t i) {
  if (type == dtype::f32) return static_cast<const float*>(data)[i];
  if (type == dtype::bf16) return __bfloat162float(static_cast<const __nv_bfloat16*>(data)[i]);
  return __half2float(static_cast<const __half*>(data)[i]);
}

unsigned blocks_for(std::size_t items) {
  return static_cast<unsigned>(std::clamp<std::size_t>((items + threads - 1) / threads, 1, 1u << 16));
}

// Runs the statement behind it for each i < count, shared among all threads of the grid.
#define WEIR_EACH(i, count)                                                             \
  for (std::size_t i = blockIdx.x * std::size_t{blockDim.x} + threadIdx.x; i < (count); \
       i += std::size_t{gridDim.x} * blockDim.x)

__global__ void gather_kernel(matrix table, const std::int32_t* ids, std::size_t count, float* out,
                              float factor) {
  WEIR_EACH(i, count * table.cols) {
    const std::size_t r = i / table.cols, c = i % table.cols;
    out[i] = widen(table.data, table.type, static_cast<std::size_t>(ids[r]) * table.cols + c) * factor;
  }
}

// The norm of one row of `width` elements by `count` threads, of which this is number `at`: those of a block,
// or of a warp. `sum_of` sums over them. `out` may be `x`; `bias` may be null.
template <class Sum>
__device__ void normalise(const float* x, const float* weight, const float* bias, float* out,
                          std::uint32_t width, float eps, bool centred, unsigned at, unsigned count,
                          const Sum& sum_of) {
  float mean = 0, squares = 0;
  if (centred) {
    for (std::uint32_t i = at; i < width; i += count) mean += x[i];
    mean = sum_of(mean) / static_cast<float>(width);
  }
  for (std::uint32_t i = at; i < width; i += count) squares += (x[i] - mean) * (x[i] - mean);
  const float scale = rsqrtf(sum_of(squares) / static_cast<float>(width) + eps);
  for (std::uint32_t i = at; i < width; i += count)
    out[i] = (x[i] - mean) * scale * weight[i] + (bias ? bias[i] : 0.0f);
}

// One block for each row.
__global__ void norm_kernel(row_norm op) {
  __shared__ float room[32];
  const std::size_t first = std::size_t{blockIdx.x} * op.width;
  normalise(op.x + first, op.weight, op.bias, op.out + first, op.width, op.eps, op.centred, threadIdx.x,
            blockDim.x, [&](float v) { return block_sum(v, room); });
}

// The head that is item `item` of rows times heads.
__device__ float* head_at(const head_norm& op, std::size_t item) {
  return op.x + item / op.heads * op.stride + item % op.heads * op.head_dim;
}

// One warp for each head.
__global__ void head_norm_kernel(head_norm op) {
  const std::size_t item = (blockIdx.x * std::size_t{blockDim.x} + threadIdx.x) / 32;
  if (item >= std::size_t{op.rows} * op.heads) return;
  float* x = head_at(op, item);
  normalise(x, op.weight + item % op.heads * op.weight_stride, nullptr, x, op.head_dim, op.eps, op.centred,
            threadIdx.x % 32, 32, [](float v) { return warp_sum(v); });
}

// One block for each head: for heads that are whole rows.
constexpr std::uint32_t wide_head = 1024;
__global__ void wide_head_norm_kernel(head_norm op) {
  __shared__ float room[32];
  float* x = head_at(op, blockIdx.x);
  normalise(x, op.weight + blockIdx.x % op.heads * op.weight_stride, nullptr, x, op.head_dim, op.eps,
            op.centred, threadIdx.x, blockDim.x, [&](float v) { return block_sum(v, room); });
}

// One warp for each column of the output; it computes linear_rows rows.
__global__ void linear_kernel(linear op) {
  const std::size_t n = (blockIdx.x * std::size_t{blockDim.x} + threadIdx.x) / 32;
  const unsigned lane = threadIdx.x % 32;
  if (n >= op.w.rows) return;
  const std::size_t k = op.w.cols;
  const std::uint32_t first = blockIdx.y * linear_rows;
  const std::uint32_t rows = min(linear_rows, op.rows - first);
  float sums[linear_rows] = {};
  for (std::size_t i = lane; i < k; i += 32) {
    const float w = widen(op.w.data, op.w.type, n * k + i);
    for (std::uint32_t r = 0; r < linear_rows; ++r)
      if (r < rows) sums[r] += w * op.x[(first + r) * k + i];
  }
  for (std::uint32_t r = 0; r < linear_rows; ++r) {
    const float sum = warp_sum(sums[r]);
    if (lane == 0 && r < rows)
      op.out[std::size_t{first + r} * op.out_stride + n] = sum + (op.bias ? op.bias[n] : 0.0f);
  }
}

__global__ void bias_kernel(linear op) {
  WEIR_EACH(i, std::size_t{op.rows} * op.w.rows)
  op.out[i / op.w.rows * op.out_stride + i % op.w.rows] += op.bias[i % op.w.rows];
}

__global__ void angles_kernel(const std::uint32_t* positions, const float* frequencies, std::size_t rows,
                              std::size_t half, float* cos, float* sin, float factor) {
  WEIR_EACH(i, rows * half) {
    const float angle = __fmul_rn(static_cast<float>(positions[i / half]), frequencies[i % half]);
    float s, c;
    sincosf(angle, &s, &c);
    sin[i] = factor * s;
    cos[i] = factor * c;
  }
}

__global__ void rotary_kernel(rotary op) {
  const std::size_t half = op.turned / 2;
  WEIR_EACH(i, op.rows * op.heads * half) {
    const std::size_t r = i / (op.heads * half), h = i / half % op.heads, j = i % half;
    float* x = op.x + r * op.stride + h * op.head_dim;
    const float c = op.cos[r * half + j], s = op.sin[r * half + j], a = x[j], b = x[j + half];
    x[j] = a * c - b * s;
    x[j + half] = b * c + a * s;
  }
}

// The slices of a step and their page numbers, in memory of the device.
struct slices_view {
  const kv_slice* slices;
  std::uint32_t count;
};

__device__ const kv_slice& slice_of(const slices_view& v, std::uint32_t row) {
  std::uint32_t s = 0;
  while (row < v.slices[s].first_row || row >= v.slices[s].first_row + v.slices[s].rows) ++s;
  return v.slices[s];
}

__global__ void kv_write_kernel(const float* k, const float* v, std::uint32_t stride, kv_pages to,
                                slices_view view) {
  const kv_slice& slice = view.slices[blockIdx.x];
  float *keys = static_cast<float*>(to.keys), *values = static_cast<float*>(to.values);
  for (std::uint32_t r = blockIdx.y; r < slice.rows; r += gridDim.y) {
    const std::uint32_t position = slice.position + r;
    const std::size_t page = static_cast<std::size_t>(slice.pages[position / to.page_tokens]);
    const std::size_t slot = position % to.page_tokens, from = std::size_t{slice.first_row + r} * stride;
    for (std::uint32_t i = threadIdx.x; i < to.heads * to.head_dim; i += blockDim.x) {
      const std::size_t at = (page * to.heads + i / to.head_dim) * to.head_dim * to.page_tokens;
      keys[at + slot * to.head_dim + i % to.head_dim] = k[from + i];
      values[at + slot * to.head_dim + i % to.head_dim] = v[from + i];
    }
  }
}

// Attention of heads that attention_f32.cu does not support. One block for each row and query head. Each
// thread computes the score of one position at a time; the block keeps a running maximum.
constexpr unsigned attention_threads = 128;
__global__ void attention_kernel(attention op, slices_view view) {
  extern __shared__ float q[];  // [head_dim]; behind it `out`, [head_dim]
  __shared__ float weights[attention_threads], room[32];
  const kv_slice& slice = slice_of(view, blockIdx.x);
  const std::uint32_t width = op.kv.head_dim, tokens = op.kv.page_tokens, head = blockIdx.y;
  const std::uint32_t kv_head = head / (op.heads / op.kv.heads);
  const std::uint32_t to = slice.position + blockIdx.x - slice.first_row;
  const auto *keys = static_cast<const float*>(op.kv.keys), *values = static_cast<const float*>(op.kv.values);
  const std::uint32_t from = op.rule.first_seen(to);
  float* out = q + width;
  for (std::uint32_t i = threadIdx.x; i < width; i += blockDim.x) {
    q[i] = op.q[std::size_t{blockIdx.x} * op.stride + head * width + i];
    out[i] = 0;
  }
  const float scale = op.rule.scale_at(to), cap = op.rule.cap;
  float largest = -INFINITY, total = 0;
  for (std::uint32_t first = from; first <= to; first += attention_threads) {
    __syncthreads();
    const std::uint32_t p = first + threadIdx.x;
    float score = -INFINITY;
    if (p <= to) {
      const std::size_t page = static_cast<std::size_t>(slice.pages[p / tokens]);
      const float* key = keys + ((page * op.kv.heads + kv_head) * tokens + p % tokens) * width;
      score = 0;
      for (std::uint32_t i = 0; i < width; ++i) score += q[i] * key[i];
      score *= scale;
      if (cap != 0) score = cap * tanhf(score / cap);
    }
    float most = warp_max(score);
    if (threadIdx.x % 32 == 0) room[threadIdx.x / 32] = most;
    __syncthreads();
    most = warp_max(threadIdx.x % 32 < attention_threads / 32 ? room[threadIdx.x % 32] : -INFINITY);
    const float now = fmaxf(largest, most), shrink = expf(largest - now);
    const float weight = p <= to ? expf(score - now) : 0.0f;
    weights[threadIdx.x] = weight;
    total = total * shrink + block_sum(weight, room);
    largest = now;
    __syncthreads();
    for (std::uint32_t i = threadIdx.x; i < width; i += blockDim.x) {
      float sum = out[i] * shrink;
      for (std::uint32_t j = 0; j < attention_threads && first + j <= to; ++j) {
        const std::size_t page = static_cast<std::size_t>(slice.pages[(first + j) / tokens]);
        sum +=
            weights[j] * values[((page * op.kv.heads + kv_head) * tokens + (first + j) % tokens) * width + i];
      }
      out[i] = sum;
    }
  }
  __syncthreads();
  const float top = op.sinks ? fmaxf(largest, op.sinks[head]) : largest, shrink = expf(largest - top);
  if (op.sinks) total = total * shrink + expf(op.sinks[head] - top);
  for (std::uint32_t i = threadIdx.x; i < width; i += blockDim.x)
    op.out[(std::size_t{blockIdx.x} * op.heads + head) * width + i] =
        op.sinks ? out[i] * shrink / total : out[i] / total;
}

__device__ float activated(activation kind, float g) {
  if (kind == activation::relu2) return g <= 0 ? 0.0f : g * g;  // a NaN stays one
  if (kind == activation::gelu) return 0.5f * g * (1.0f + tanhf(0.7978845608f * (g + 0.044715f * g * g * g)));
  return g / (1.0f + expf(-g));
}

__global__ void activate_kernel(activate op) {
  const std::size_t stride = op.gated ? 2 * std::size_t{op.width} : op.width;
  WEIR_EACH(i, std::size_t{op.rows} * op.width) {
    const float* x = op.x + i / op.width * stride + i % op.width;
    op.out[i] = op.kind == activation::clamped ? clamped(*x, x[op.width], op.limit)
                                               : activated(op.kind, *x) * (op.gated ? x[op.width] : 1.0f);
  }
}

__global__ void sigmoid_kernel(sigmoid_mul op) {
  WEIR_EACH(i, std::size_t{op.rows} * op.width)
  op.x[i] /= 1.0f + expf(-op.gate[i / op.width * op.stride + i % op.width]);
}

__global__ void add_kernel(add op) { WEIR_EACH(i, op.count) op.x[i] += op.factor * op.y[i]; }

__global__ void cap_kernel(soft_cap op) {
  WEIR_EACH(i, op.count) {
    const float x = op.factor * op.x[i];
    op.x[i] = op.cap == 0 ? x : op.cap * tanhf(x / op.cap);
  }
}

void run_gather(void* self, const gather& op) {
  device& d = of(self);
  d.begin_staging();
  const auto* ids = d.stage_array(op.ids.data(), op.ids.size());
  if (d.failed() || op.ids.empty()) return;
  if (!is_plain(op.table.type))
    return gather_blocks(d, op.table, ids, static_cast<std::uint32_t>(op.ids.size()), op.out, op.factor);
  gather_kernel<<<blocks_for(op.ids.size() * op.table.cols), threads, 0, d.stream>>>(
      op.table, ids, op.ids.size(), op.out, op.factor);
  WEIR_CUDA(d, cudaGetLastError());
}

void run_row_norm(void* self, const row_norm& op) {
  device& d = of(self);
  if (d.failed() || op.rows == 0) return;
  norm_kernel<<<op.rows, threads, 0, d.stream>>>(op);
  WEIR_CUDA(d, cudaGetLastError());
}

void run_head_norm(void* self, const head_norm& op) {
  device& d = of(self);
  if (d.failed() || op.rows == 0) return;
  const std::uint32_t all = op.rows * op.heads;
  if (op.head_dim >= wide_head)
    wide_head_norm_kernel<<<all, threads, 0, d.stream>>>(op);
  else
    head_norm_kernel<<<(all * 32 + threads - 1) / threads, threads, 0, d.stream>>>(op);
  WEIR_CUDA(d, cudaGetLastError());
}

void multiply_by_blas(device& d, const linear& op, const product& p) {
  if (!d.linears) d.linears = std::make_shared<products>(d);
  d.linears->run(p, {}, op.out);
  if (d.failed() || !op.bias) return;
  bias_kernel<<<blocks_for(std::size_t{op.rows} * op.w.rows), threads, 0, d.stream>>>(op);
  WEIR_CUDA(d, cudaGetLastError());
}

void run_linear(void* self, const linear& said) {
  linear op = said;
  op.out_stride = said.stride();
  device& d = of(self);
  if (d.failed() || op.rows == 0) return;
  if (!is_plain(op.w.type)) return linear_blocks(d, op);
  if (op.w.type == dtype::f32) {
    const product p{dtype::f32, op.w.data, op.w.rows,        op.w.cols,    op.x,
                    op.rows,    op.out,    product_out::f32, op.out_stride};
    if (function_for(d, p) == product_function::blas) return multiply_by_blas(d, op, p);
  }
  const dim3 grid((op.w.rows + threads / 32 - 1) / (threads / 32), (op.rows + linear_rows - 1) / linear_rows);
  linear_kernel<<<grid, threads, 0, d.stream>>>(op);
  WEIR_CUDA(d, cudaGetLastError());
}

void run_rotary_angles(void* self, const rotary_angles& op) {
  device& d = of(self);
  d.begin_staging();
  const auto* positions = d.stage_array(op.positions.data(), op.positions.size());
  const auto* frequencies = d.stage_array(op.frequencies.data(), op.frequencies.size());
  const std::size_t count = op.positions.size() * op.frequencies.size();
  if (d.failed() || count == 0) return;
  angles_kernel<<<blocks_for(count), threads, 0, d.stream>>>(
      positions, frequencies, op.positions.size(), op.frequencies.size(), op.cos, op.sin, op.factor);
  WEIR_CUDA(d, cudaGetLastError());
}

void run_rotary(void* self, const rotary& op) {
  device& d = of(self);
  if (d.failed() || op.rows == 0 || op.turned == 0) return;
  rotary_kernel<<<blocks_for(std::size_t{op.rows} * op.heads * op.turned / 2), threads, 0, d.stream>>>(op);
  WEIR_CUDA(d, cudaGetLastError());
}

slices_view stage_slices(device& d, std::span<const kv_slice> slices, std::uint32_t page_tokens) {
  std::vector<kv_slice> there(slices.begin(), slices.end());
  for (kv_slice& s : there)
    s.pages = d.stage_array(s.pages, (s.position + s.rows + page_tokens - 1) / page_tokens);
  return {d.stage_array(there.data(), there.size()), static_cast<std::uint32_t>(there.size())};
}

void run_kv_write(void* self, const kv_write& op) {
  device& d = of(self);
  d.begin_staging();
  const slices_view view = stage_slices(d, op.slices, op.to.page_tokens);
  if (d.failed() || op.slices.empty()) return;
  kv_write_kernel<<<dim3(view.count, 64), threads, 0, d.stream>>>(op.k, op.v, op.stride, op.to, view);
  WEIR_CUDA(d, cudaGetLastError());
}

void run_attention(void* self, const attention& op) {
  device& d = of(self);
  d.begin_staging();
  const slices_view view = stage_slices(d, op.slices, op.kv.page_tokens);
  if (d.failed() || op.slices.empty()) return;
  if (can_attend_f32(op)) return attend_f32(d, op, view.slices);
  const std::uint32_t rows = op.slices.back().first_row + op.slices.back().rows;
  const std::size_t room = 2 * op.kv.head_dim * sizeof(float);
  attention_kernel<<<dim3(rows, op.heads), attention_threads, room, d.stream>>>(op, view);
  WEIR_CUDA(d, cudaGetLastError());
}

void run_activate(void* self, const activate& op) {
  device& d = of(self);
  if (d.failed() || op.rows == 0) return;
  activate_kernel<<<blocks_for(std::size_t{op.rows} * op.width), threads, 0, d.stream>>>(op);
  WEIR_CUDA(d, cudaGetLastError());
}

void run_sigmoid_mul(void* self, const sigmoid_mul& op) {
  device& d = of(self);
  if (d.failed() || op.rows == 0) return;
  sigmoid_kernel<<<blocks_for(std::size_t{op.rows} * op.width), threads, 0, d.stream>>>(op);
  WEIR_CUDA(d, cudaGetLastError());
}

void run_add(void* self, const add& op) {
  device& d = of(self);
  if (d.failed() || op.count == 0) return;
  add_kernel<<<blocks_for(op.count), threads, 0, d.stream>>>(op);
  WEIR_CUDA(d, cudaGetLastError());
}

void run_soft_cap(void* self, const soft_cap& op) {
  device& d = of(self);
  if (d.failed() || op.count == 0) return;
  cap_kernel<<<blocks_for(op.count), threads, 0, d.stream>>>(op);
  WEIR_CUDA(d, cudaGetLastError());
}

}  // namespace

void fill_table(backend& t) {
  t.do_gather = run_gather;
  t.do_row_norm = run_row_norm;
  t.do_head_norm = run_head_norm;
  t.do_linear = run_linear;
  t.do_rotary_angles = run_rotary_angles;
  t.do_rotary = run_rotary;
  t.do_kv_write = run_kv_write;
  t.do_attention = run_attention;
  t.do_activate = run_activate;
  t.do_sigmoid_mul = run_sigmoid_mul;
  t.do_add = run_add;
  t.do_soft_cap = run_soft_cap;
  fill_experts(t);
}

}  // namespace weir::kernels::cuda
