// traffic.h — how many bytes each operation must move and how many flops it must do, on any backend.
//
// Each input byte counts as read once and each output byte as written once, so that the bytes are the least
// that any implementation moves. Benchmarks divide them by a measured time. The flops of attention are those
// of its two products, without the softmax; operations that only move data have none.
//
// Thread safety: pure functions, any thread.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>

#include "kernels/ops.h"

namespace weir::kernels {

// Bytes that are moved, reads and writes together, and floating-point operations.
struct traffic {
  std::uint64_t bytes = 0, flops = 0;

  traffic& operator+=(const traffic& more) noexcept {
    bytes += more.bytes;
    flops += more.flops;
    return *this;
  }
  bool operator==(const traffic&) const = default;
};

// The rows of all slices together.
inline std::uint64_t rows_of(std::span<const kv_slice> slices) noexcept {
  std::uint64_t rows = 0;
  for (const kv_slice& slice : slices) rows += slice.rows;
  return rows;
}

inline traffic traffic_of(const gather& op) noexcept {
  const std::uint64_t elements = std::uint64_t{op.ids.size()} * op.table.cols;
  return {bytes_of(op.table.type, elements) + elements * sizeof(float) + op.ids.size() * sizeof(float), 0};
}

inline traffic traffic_of(const row_norm& op) noexcept {
  const std::uint64_t elements = std::uint64_t{op.rows} * op.width;
  return {2 * elements * sizeof(float) + (op.bias ? 2 : 1) * op.width * sizeof(float), 4 * elements};
}

inline traffic traffic_of(const head_norm& op) noexcept {
  const std::uint64_t elements = std::uint64_t{op.rows} * op.heads * op.head_dim;
  const std::uint64_t weights = op.weight_stride ? op.heads * op.head_dim : op.head_dim;
  return {2 * elements * sizeof(float) + weights * sizeof(float), 4 * elements};
}

inline traffic traffic_of(const linear& op) noexcept {
  const std::uint64_t n = op.w.rows, k = op.w.cols, m = op.rows, numbers = op.w.input_count ? k : 0;
  return {op.w.bytes() + (m * op.w.width() + m * n + (op.bias ? n : 0) + numbers) * sizeof(float),
          2 * m * n * k};
}

inline traffic traffic_of(const rotary_angles& op) noexcept {
  const std::uint64_t angles = std::uint64_t{op.positions.size()} * op.frequencies.size();
  return {(op.positions.size() + op.frequencies.size() + 2 * angles) * sizeof(float), 3 * angles};
}

inline traffic traffic_of(const rotary& op) noexcept {
  const std::uint64_t elements = std::uint64_t{op.rows} * op.heads * op.turned;
  return {(2 * elements + std::uint64_t{op.rows} * op.turned) * sizeof(float), 3 * elements};
}

inline traffic traffic_of(const kv_write& op) noexcept {
  const std::uint64_t row = op.to.head_dim * sizeof(float) + kv_row_bytes(op.to.type, op.to.head_dim);
  return {2 * rows_of(op.slices) * op.to.heads * row, 0};
}

// Keys and values of a slice count as read once, for all of its rows and for all query heads of a key head.
inline traffic traffic_of(const attention& op) noexcept {
  const std::uint64_t width = op.kv.head_dim;
  traffic sum{(2 * rows_of(op.slices) * op.heads * width + (op.sinks ? op.heads : 0)) * sizeof(float), 0};
  for (const kv_slice& slice : op.slices) {
    const std::uint64_t end = std::uint64_t{slice.position} + slice.rows;
    sum.bytes += 2 * (end - op.rule.first_seen(slice.position)) * op.kv.heads *
                 kv_row_bytes(op.kv.type, op.kv.head_dim);
    for (std::uint64_t p = slice.position; p < end; ++p)
      sum.flops += 4 * (p + 1 - op.rule.first_seen(p)) * op.heads * width;
  }
  return sum;
}

inline traffic traffic_of(const activate& op) noexcept {
  const std::uint64_t elements = std::uint64_t{op.rows} * op.width;
  return {(op.gated ? 3 : 2) * elements * sizeof(float), 5 * elements};
}

inline traffic traffic_of(const sigmoid_mul& op) noexcept {
  const std::uint64_t elements = std::uint64_t{op.rows} * op.width;
  return {3 * elements * sizeof(float), 4 * elements};
}

inline traffic traffic_of(const route& op) noexcept {
  const std::uint64_t m = op.rows, k = op.width, n = op.how.experts + (op.shared ? 1 : 0);
  const std::uint64_t biases = op.how.experts * ((op.bias ? 1 : 0) + (op.choice_bias ? 1 : 0));
  const std::uint64_t out = m * (2 * op.how.chosen + (op.shared ? 1 : 0));
  return {(n * k + m * k + biases + out) * sizeof(float), 2 * m * n * k};
}

// `used`: the number of experts that some slot has, whose matrices are read.
inline traffic traffic_of(const expert_linear& op, std::uint32_t used) noexcept {
  const std::uint64_t n = op.w.first.rows, k = op.w.first.cols, slots = op.slots;
  const std::uint64_t rows = slots / op.share * k + slots * n + slots + (op.bias ? used * n : 0);
  return {used * op.w.first.bytes() + rows * sizeof(float), 2 * slots * n * k};
}

inline traffic traffic_of(const mix_experts& op) noexcept {
  const std::uint64_t m = op.rows, n = op.width, inputs = op.chosen + (op.shared ? 1 : 0);
  return {m * (n * (inputs + 1) + op.chosen + (op.gate ? 1 : 0)) * sizeof(float), 2 * m * n * inputs};
}

inline traffic traffic_of(const add& op) noexcept {
  return {3 * std::uint64_t{op.count} * sizeof(float), op.count};
}

inline traffic traffic_of(const soft_cap& op) noexcept {
  return {2 * std::uint64_t{op.count} * sizeof(float), 3 * std::uint64_t{op.count}};
}

}  // namespace weir::kernels
