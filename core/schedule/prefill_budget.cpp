#include "core/schedule/prefill_budget.h"

#include <algorithm>

namespace weir::core {
namespace {

constexpr std::uint32_t first_slice = 64;  // before anything was measured
constexpr std::uint32_t smallest_slice =
    16;                          // a prompt moves on even where decoding alone exceeds the target
constexpr double weight = 0.25;  // of the newest measurement

double blend(double mean, double value) { return mean + weight * (value - mean); }

}  // namespace

std::uint32_t prefill_budget::rows(bool others_decode) const noexcept {
  const duration target = others_decode ? limits_.while_decoding : limits_.alone;
  if (target <= duration::zero()) return limits_.rows;
  if (row_ns_ == unknown) return std::min(first_slice, limits_.rows);
  const double room = static_cast<double>(target.count()) - (others_decode ? step_ns_ : 0);
  if (room >= row_ns_ * limits_.rows) return limits_.rows;
  const double fit = std::max(room / row_ns_, static_cast<double>(smallest_slice));
  return std::min(static_cast<std::uint32_t>(fit), limits_.rows);
}

void prefill_budget::observe(std::uint32_t decode_rows, std::uint32_t prompt_rows, duration took) noexcept {
  const auto ns = static_cast<double>(took.count());
  if (prompt_rows == 0) {
    step_ns_ = step_ns_ == 0 ? ns : blend(step_ns_, ns);
    return;
  }
  const double cost = std::max(0.0, ns - (decode_rows > 0 ? step_ns_ : 0)) / prompt_rows;
  row_ns_ = row_ns_ == unknown ? cost : blend(row_ns_, cost);
}

}  // namespace weir::core
