// Operations that compute each row by itself. Small ones run on the caller's thread alone: waking a worker
// costs more.
#include "kernels/cpu/backend.h"

namespace weir::kernels {
namespace {

constexpr std::size_t worth_sharing = 1u << 15;  // elements
constexpr std::size_t shared_piece = 1u << 13;

// Calls work(first, last) for pieces of [0, rows) of some thousand elements each.
template <class F>
void for_rows(cpu_state& cpu, std::size_t rows, std::size_t width, const F& work) {
  if (rows * width < worth_sharing) return work(std::size_t{0}, rows);
  const std::size_t piece = width >= shared_piece ? 1 : shared_piece / width;
  cpu.workers.run(static_cast<std::uint32_t>((rows + piece - 1) / piece), [&](std::uint32_t item, unsigned) {
    const std::size_t first = item * piece;
    work(first, first + piece < rows ? first + piece : rows);
  });
}

}  // namespace

void cpu_row_norm(void* self, const row_norm& op) {
  auto& cpu = *static_cast<cpu_state*>(self);
  const std::size_t width = op.width;
  for_rows(cpu, op.rows, width, [&](std::size_t first, std::size_t last) {
    for (std::size_t r = first; r < last; ++r)
      cpu.simd.norm(op.x + r * width, op.weight, op.bias, op.out + r * width, width, op.eps, op.centred);
  });
}

void cpu_head_norm(void* self, const head_norm& op) {
  auto& cpu = *static_cast<cpu_state*>(self);
  for_rows(cpu, op.rows, std::size_t{op.heads} * op.head_dim, [&](std::size_t first, std::size_t last) {
    for (std::size_t r = first; r < last; ++r)
      for (std::size_t h = 0; h < op.heads; ++h) {
        float* x = op.x + r * op.stride + h * op.head_dim;
        cpu.simd.norm(x, op.weight + h * op.weight_stride, nullptr, x, op.head_dim, op.eps, op.centred);
      }
  });
}

void cpu_rotary(void* self, const rotary& op) {
  auto& cpu = *static_cast<cpu_state*>(self);
  const std::size_t half = op.turned / 2;
  for_rows(cpu, op.rows, std::size_t{op.heads} * op.head_dim, [&](std::size_t first, std::size_t last) {
    for (std::size_t r = first; r < last; ++r)
      for (std::size_t h = 0; h < op.heads; ++h)
        cpu.simd.rotate(op.x + r * op.stride + h * op.head_dim, op.cos + r * half, op.sin + r * half, half);
  });
}

void cpu_activate(void* self, const activate& op) {
  auto& cpu = *static_cast<cpu_state*>(self);
  const std::size_t width = op.width, stride = op.gated ? 2 * width : width;
  for_rows(cpu, op.rows, width, [&](std::size_t first, std::size_t last) {
    for (std::size_t r = first; r < last; ++r) {
      const float* x = op.x + r * stride;
      cpu.simd.activate(op.kind, x, op.gated ? x + width : nullptr, op.out + r * width, width, op.limit);
    }
  });
}

void cpu_sigmoid_mul(void* self, const sigmoid_mul& op) {
  auto& cpu = *static_cast<cpu_state*>(self);
  const std::size_t width = op.width;
  for_rows(cpu, op.rows, width, [&](std::size_t first, std::size_t last) {
    for (std::size_t r = first; r < last; ++r)
      cpu.simd.sigmoid_mul(op.x + r * width, op.gate + r * op.stride, width);
  });
}

void cpu_add(void* self, const add& op) {
  auto& cpu = *static_cast<cpu_state*>(self);
  for_rows(cpu, op.count, 1, [&](std::size_t first, std::size_t last) {
    cpu.simd.add(op.x + first, op.y + first, last - first, op.factor);
  });
}

void cpu_soft_cap(void* self, const soft_cap& op) {
  auto& cpu = *static_cast<cpu_state*>(self);
  for_rows(cpu, op.count, 1, [&](std::size_t first, std::size_t last) {
    cpu.simd.soft_cap(op.x + first, last - first, op.factor, op.cap);
  });
}

}  // namespace weir::kernels
