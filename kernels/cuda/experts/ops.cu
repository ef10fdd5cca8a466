// The single operations of mixtures of experts: simple kernels, in f32 inside. The numbers of experts stay on
// the device. A row's result depends on that row alone.
#include "kernels/cuda/experts/ops.h"

#include <algorithm>

#include "kernels/cuda/device/device.h"
#include "kernels/cuda/device/warp.h"
#include "kernels/cuda/experts/route.h"
#include "kernels/cuda/products/block_values.h"

namespace weir::kernels::cuda {
namespace {

constexpr unsigned threads = 256, warps = threads / 32;

// What a warp makes: output `n` of slot `slot`, whose expert is `expert`.
struct slot_output {
  const unsigned char* w;  // the expert's matrix
  const float* x;          // the slot's row
  std::size_t n, slot;
  std::int32_t expert;
};

__device__ __forceinline__ slot_output output_of(const expert_linear& op) {
  slot_output o;
  o.slot = blockIdx.x;
  o.n = std::size_t{blockIdx.y} * warps + threadIdx.x / 32;
  o.expert = op.ids[o.slot];
  o.w = static_cast<const unsigned char*>(op.w.first.data) + static_cast<std::size_t>(o.expert) * op.w.stride;
  o.x = op.x + o.slot / op.share * op.w.first.cols;
  return o;
}

__device__ __forceinline__ void put(const expert_linear& op, const slot_output& o, float v) {
  const float sum = warp_sum(v);
  const std::size_t n = op.w.first.rows;
  if (threadIdx.x % 32 == 0)
    op.out[o.slot * n + o.n] = sum + (op.bias ? op.bias[static_cast<std::size_t>(o.expert) * n + o.n] : 0.0f);
}

template <class T>
__device__ __forceinline__ float widened(T v);
template <>
__device__ __forceinline__ float widened(float v) {
  return v;
}
template <>
__device__ __forceinline__ float widened(__nv_bfloat16 v) {
  return __bfloat162float(v);
}
template <>
__device__ __forceinline__ float widened(__half v) {
  return __half2float(v);
}

template <class T>
__global__ void plain_kernel(expert_linear op) {
  const slot_output o = output_of(op);
  if (o.n >= op.w.first.rows) return;
  const std::size_t k = op.w.first.cols;
  const T* w = reinterpret_cast<const T*>(o.w) + o.n * k;
  float sum = 0;
  for (std::size_t i = threadIdx.x % 32; i < k; i += 32) sum += widened(w[i]) * o.x[i];
  put(op, o, sum);
}

template <dtype type>
__global__ void blocks_kernel(expert_linear op) {
  constexpr cell_form form(type);
  const slot_output o = output_of(op);
  if (o.n >= op.w.first.rows) return;
  const std::uint32_t k = op.w.first.cols, across = (k + cell_columns - 1) / cell_columns;
  const unsigned char* cells = o.w + o.n / cell_rows * across * form.bytes;
  float sum = 0;
  for (std::uint32_t i = threadIdx.x % 32; i < k / 4; i += 32) {
    const cell_reader<type> reader(cells + std::uint64_t{i / 32} * form.bytes,
                                   static_cast<std::uint32_t>(o.n % cell_rows) * 4 + i % 4);
    const int part = static_cast<int>(i / 4 % 8);
    const float4 w = reader.four(part / 2, part % 2);
    const float4 x = *reinterpret_cast<const float4*>(o.x + 4 * i);
    sum += w.x * x.x + w.y * x.y + w.z * x.z + w.w * x.w;
  }
  put(op, o, sum);
}

__global__ void mix_kernel(mix_experts op) {
  const std::size_t count = std::size_t{op.rows} * op.width, step = std::size_t{gridDim.x} * blockDim.x;
  for (std::size_t at = blockIdx.x * std::size_t{blockDim.x} + threadIdx.x; at < count; at += step) {
    const std::size_t r = at / op.width, c = at % op.width;
    float sum = 0;
    for (std::size_t slot = r * op.chosen; slot < (r + 1) * op.chosen; ++slot)
      sum += op.weights[slot] * op.y[slot * op.width + c];
    if (op.shared) sum += (op.gate ? op.gate[r] : 1.0f) * op.shared[at];
    op.out[at] = sum;
  }
}

void run_route(void* self, const route& op) {
  device& d = of(self);
  if (d.failed() || op.rows == 0) return;
  route_rows(d, op, op.x, dtype::f32, nullptr);
}

void run_expert_linear(void* self, const expert_linear& op) {
  device& d = of(self);
  if (d.failed() || op.slots == 0) return;
  const dim3 grid(op.slots, (op.w.first.rows + warps - 1) / warps);
  switch (op.w.first.type) {
    case dtype::f32:
      plain_kernel<float><<<grid, threads, 0, d.stream>>>(op);
      break;
    case dtype::bf16:
      plain_kernel<__nv_bfloat16><<<grid, threads, 0, d.stream>>>(op);
      break;
    case dtype::f16:
      plain_kernel<__half><<<grid, threads, 0, d.stream>>>(op);
      break;
    default:
      with_block_type(op.w.first.type,
                      [&](auto type) { blocks_kernel<type><<<grid, threads, 0, d.stream>>>(op); });
  }
  WEIR_CUDA(d, cudaGetLastError());
}

void run_mix_experts(void* self, const mix_experts& op) {
  device& d = of(self);
  if (d.failed() || op.rows == 0) return;
  const std::size_t blocks = (std::size_t{op.rows} * op.width + threads - 1) / threads;
  mix_kernel<<<static_cast<unsigned>(std::min<std::size_t>(blocks, 1u << 16)), threads, 0, d.stream>>>(op);
  WEIR_CUDA(d, cudaGetLastError());
}

}  // namespace

void fill_experts(backend& t) {
  t.do_route = run_route;
  t.do_expert_linear = run_expert_linear;
  t.do_mix_experts = run_mix_experts;
}

}  // namespace weir::kernels::cuda
