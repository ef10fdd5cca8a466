// Matrix products: many rows go to the library in blocks, few rows (and what is left over) to our own kernel,
// which streams the weights once and computes while they arrive.
#include <algorithm>

#include "kernels/cpu/backend.h"

namespace weir::kernels {
namespace {

constexpr std::uint64_t worth_sharing = 1u << 16;  // bytes of weights
constexpr std::uint64_t piece_bytes = 1u << 17;    // of weights, that a worker takes at a time

void multiply_rows(cpu_state& cpu, const linear& op, std::size_t first_row) {
  linear_tile tile{op.w,
                   op.bias,
                   op.x + first_row * op.w.cols,
                   op.out + first_row * op.w.rows,
                   op.rows - first_row,
                   0,
                   op.w.rows,
                   op.w.rows};
  if (op.w.bytes() < worth_sharing) return cpu.simd.multiply(tile);
  const std::uint64_t row_bytes = op.w.bytes() / op.w.rows;
  const std::uint64_t piece = std::max<std::uint64_t>(4, piece_bytes / row_bytes / 4 * 4);
  cpu.workers.run(static_cast<std::uint32_t>((op.w.rows + piece - 1) / piece),
                  [&](std::uint32_t item, unsigned) {
                    linear_tile part = tile;
                    part.first = item * piece;
                    part.last = std::min<std::uint64_t>(part.first + piece, op.w.rows);
                    cpu.simd.multiply(part);
                  });
}

}  // namespace

void cpu_linear(void* self, const linear& op) {
  auto& cpu = *static_cast<cpu_state*>(self);
  const std::uint32_t done = cpu.library.multiply(op, cpu.simd, cpu.workers);
  if (done < op.rows) multiply_rows(cpu, op, done);
}

}  // namespace weir::kernels
