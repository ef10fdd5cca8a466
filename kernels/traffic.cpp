#include "kernels/traffic.h"

#include <algorithm>

namespace weir::kernels {
namespace {

using u64 = std::uint64_t;
constexpr u64 f32 = 4;

u64 rows_of(std::span<const kv_slice> slices) noexcept {
  u64 rows = 0;
  for (const kv_slice& slice : slices) rows += slice.rows;
  return rows;
}

}  // namespace

traffic traffic_of(const gather& op) noexcept {
  const u64 elements = u64{op.ids.size()} * op.table.cols;
  return {elements * size_of(op.table.type) + elements * f32 + op.ids.size() * f32, 0};
}

traffic traffic_of(const rms_norm& op) noexcept {
  const u64 elements = u64{op.rows} * op.width;
  return {2 * elements * f32 + op.width * f32, 4 * elements};
}

traffic traffic_of(const head_norm& op) noexcept {
  const u64 elements = u64{op.rows} * op.heads * op.head_dim;
  return {2 * elements * f32 + op.head_dim * f32, 4 * elements};
}

traffic traffic_of(const linear& op) noexcept {
  const u64 n = op.w.rows, k = op.w.cols, m = op.rows;
  return {op.w.bytes() + (m * k + m * n + (op.bias ? n : 0)) * f32, 2 * m * n * k};
}

traffic traffic_of(const rotary_angles& op) noexcept {
  const u64 angles = u64{op.positions.size()} * op.frequencies.size();
  return {(op.positions.size() + op.frequencies.size() + 2 * angles) * f32, 3 * angles};
}

traffic traffic_of(const rotary& op) noexcept {
  const u64 elements = u64{op.rows} * op.heads * op.head_dim;
  return {(2 * elements + u64{op.rows} * op.head_dim) * f32, 3 * elements};
}

traffic traffic_of(const kv_write& op) noexcept {
  return {4 * rows_of(op.slices) * op.to.heads * op.to.head_dim * f32, 0};
}

// A slice's keys and values are read once for all of its rows and for all the query heads of a group.
traffic traffic_of(const attention& op) noexcept {
  const u64 width = op.kv.head_dim;
  traffic sum{2 * rows_of(op.slices) * op.heads * width * f32, 0};
  for (const kv_slice& slice : op.slices) {
    const u64 end = u64{slice.position} + slice.rows;
    const u64 first = op.window != 0 && slice.position + 1 > op.window ? slice.position + 1 - op.window : 0;
    sum.bytes += 2 * (end - first) * op.kv.heads * width * f32;
    for (u64 p = slice.position; p < end; ++p)
      sum.flops += 4 * (op.window != 0 ? std::min<u64>(op.window, p + 1) : p + 1) * op.heads * width;
  }
  return sum;
}

traffic traffic_of(const silu_mul& op) noexcept {
  const u64 elements = u64{op.rows} * op.width;
  return {3 * elements * f32, 5 * elements};
}

traffic traffic_of(const add& op) noexcept { return {3 * u64{op.count} * f32, op.count}; }

}  // namespace weir::kernels
