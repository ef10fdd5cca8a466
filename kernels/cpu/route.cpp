// The router of a mixture of experts, and the sum of what experts made.
#include <algorithm>
#include <cmath>

#include "kernels/cpu/backend.h"

namespace weir::kernels {
namespace {

constexpr std::uint32_t route_rows = 16;          // of one item: the router is read once for all of them
constexpr std::uint32_t part_experts = 8;         // of one item where rows are few
constexpr std::size_t worth_sharing = 64u << 10;  // bytes of the router, for each row
constexpr std::size_t mixed_piece = 1u << 13;     // elements of one item of mix_experts

// Puts the experts with the largest keys into `ids`, by falling key; of equal keys the lower number comes
// first. NaN counts as the least. `best`: room for the chosen keys.
void choose(const float* keys, std::uint32_t experts, std::uint32_t chosen, std::int32_t* ids, float* best) {
  std::uint32_t found = 0;
  for (std::uint32_t e = 0; e < experts; ++e) {
    const float key = std::isnan(keys[e]) ? -HUGE_VALF : keys[e];
    if (found == chosen && !(key > best[chosen - 1])) continue;
    std::uint32_t place = found < chosen ? found++ : chosen - 1;
    for (; place > 0 && key > best[place - 1]; --place) {
      best[place] = best[place - 1];
      ids[place] = ids[place - 1];
    }
    best[place] = key;
    ids[place] = static_cast<std::int32_t>(e);
  }
}

// One operation: products first, then the choice of each row.
struct route_job {
  cpu_state& cpu;
  const route& op;
  const std::uint32_t outputs = op.how.experts + (op.shared ? 1 : 0);
  float* const products = cpu.router_products.room_for(std::size_t{op.rows} * outputs);  // [rows, outputs]

  void multiply(std::uint32_t row, std::uint32_t rows, std::uint32_t output, std::uint32_t count) const {
    const std::size_t width = op.width;
    float* out = products + std::size_t{row} * outputs + output;
    cpu.simd.multiply_rows(
        {op.x + row * width, op.router + output * width, out, rows, count, width, outputs});
    if (!op.bias) return;
    const std::uint32_t biased = std::min(output + count, op.how.experts);
    for (std::uint32_t r = 0; r < rows; ++r)
      for (std::uint32_t e = output; e < biased; ++e)
        out[std::size_t{r} * outputs + e - output] += op.bias[e];
  }

  void choose_row(std::size_t row) const {
    const std::uint32_t experts = op.how.experts, chosen = op.how.chosen;
    const float* x = products + row * outputs;
    float scores[most_experts], keys[most_experts], best[most_experts];
    std::int32_t* ids = op.ids + row * chosen;
    cpu.simd.score(x, scores, experts, op.how.sigmoid);
    if (op.choice_bias)
      for (std::uint32_t e = 0; e < experts; ++e) keys[e] = scores[e] + op.choice_bias[e];
    choose(op.choice_bias ? keys : x, experts, chosen, ids, best);
    float sum = 0;
    for (std::uint32_t i = 0; i < chosen; ++i) sum += scores[ids[i]];
    if (!op.how.renormalised) sum = 1;
    for (std::uint32_t i = 0; i < chosen; ++i)
      op.weights[row * chosen + i] = scores[ids[i]] / sum * op.how.factor;
    if (op.shared) op.shared[row] = 1.0f / (1.0f + std::exp(-x[experts]));
  }

  void by_rows(std::uint32_t item) const {
    const std::uint32_t first = item * route_rows, rows = std::min(route_rows, op.rows - first);
    multiply(first, rows, 0, outputs);
    choose_rows(item);
  }

  void choose_rows(std::uint32_t item) const {
    const std::uint32_t first = item * route_rows, last = std::min(first + route_rows, op.rows);
    for (std::uint32_t r = first; r < last; ++r) choose_row(r);
  }

  // The products of some rows with some experts.
  void part(std::uint32_t item, std::uint32_t parts) const {
    const std::uint32_t row = item / parts * route_rows, output = item % parts * part_experts;
    multiply(row, std::min(route_rows, op.rows - row), output, std::min(part_experts, outputs - output));
  }
};

}  // namespace

void cpu_route(void* self, const route& op) {
  auto& cpu = *static_cast<cpu_state*>(self);
  const route_job job{cpu, op};
  const std::uint32_t items = (op.rows + route_rows - 1) / route_rows;
  const auto rows = [&](std::uint32_t item, unsigned) { job.by_rows(item); };
  if (std::size_t{op.rows} * job.outputs * op.width * sizeof(float) < worth_sharing)
    return cpu.workers.run_here(items, rows);
  if (items >= 2 * cpu.workers.size()) return cpu.workers.run(items, rows);
  const std::uint32_t parts = (job.outputs + part_experts - 1) / part_experts;
  cpu.workers.run(items * parts, [&](std::uint32_t item, unsigned) { job.part(item, parts); });
  cpu.workers.run(items, [&](std::uint32_t item, unsigned) { job.choose_rows(item); });
}

void cpu_mix_experts(void* self, const mix_experts& op) {
  auto& cpu = *static_cast<cpu_state*>(self);
  const std::size_t width = op.width, read = width * op.chosen;
  const auto one = [&](std::size_t r) {
    cpu.simd.mix(op.y + r * read, op.weights + r * op.chosen, op.chosen,
                 op.shared ? op.shared + r * width : nullptr, op.gate ? op.gate[r] : 1.0f, op.out + r * width,
                 width);
  };
  const auto piece = static_cast<std::uint32_t>(std::max<std::size_t>(1, mixed_piece / read));
  const auto pieces = [&](std::uint32_t item, unsigned) {
    const std::uint32_t first = item * piece, last = std::min(first + piece, op.rows);
    for (std::uint32_t r = first; r < last; ++r) one(r);
  };
  const std::uint32_t items = (op.rows + piece - 1) / piece;
  op.rows* read < 4 * mixed_piece ? cpu.workers.run_here(items, pieces) : cpu.workers.run(items, pieces);
}

}  // namespace weir::kernels
