#include "core/schedule/slo_budget.h"

#include <algorithm>

namespace weir::core {
namespace {

constexpr std::uint32_t first_slice = 64;  // before anything was measured
constexpr std::uint32_t smallest_slice = 16;
constexpr double least_share = 0.25;               // of a step without prompt rows; prompts may always add it
constexpr double growth = 2;                       // times the longest measured slice: most rows of a slice
constexpr double stretch = 2;                      // times tpot that an urgent step may take
constexpr double most_ahead = 4, most_behind = 2;  // times tpot
// Times tpot: a step that takes less adds to the time that streams are ahead. A step that is planned to fill
// tpot up to its margin adds nothing, so that the mean stays below tpot under a lasting load.
constexpr double earned_below = 0.9;
constexpr double least_margin = 0.05, most_margin = 0.5, spreads = 2;  // of a prediction; see rows_within()

double ns(duration d) { return static_cast<double>(d.count()); }

}  // namespace

double slo_budget::rows_within(std::uint32_t streams, double time) const noexcept {
  const double margin = std::clamp(spreads * cost_.spread(), least_margin, most_margin);
  double allowed = std::max(time / (1 + margin), (1 + least_share) * cost_.of(streams, 0));
  if (limits_.longest > duration::zero()) allowed = std::min(allowed, ns(limits_.longest) / (1 + margin));
  const double most = std::min<double>(limits_.rows, std::max<double>(first_slice, growth * cost_.widest()));
  return std::clamp(cost_.rows_within(streams, allowed), std::min<double>(smallest_slice, most), most);
}

double slo_budget::urgent(std::uint32_t streams, std::span<const waiting_prompt> prompts, double calm,
                          double most) const noexcept {
  const double calm_row = cost_.of(streams, calm) / calm, most_row = cost_.of(streams, most) / most;
  double rows = 0, row_time = calm_row;  // row_time: time of a whole step for each of its prompt rows
  for (const waiting_prompt& p : prompts) {
    rows += p.rows;
    const double left = ns(p.left);
    if (p.left == duration::max() || left >= (rows + calm) * calm_row) continue;
    if (left >= rows * most_row) row_time = std::min(row_time, left / rows);
  }
  // A step of r rows takes row_time * r.
  const double without = cost_.of(streams, 0), a_row = cost_.prompt_row();
  if (row_time >= calm_row) return calm;
  return row_time > a_row ? std::clamp(without / (row_time - a_row), calm, most) : most;
}

std::uint32_t slo_budget::rows(std::uint32_t streams, std::span<const waiting_prompt> prompts) noexcept {
  if (!cost_.known()) return granted_ = std::min(first_slice, limits_.rows);
  const double tpot = ns(limits_.slo.tpot);
  const double calm = rows_within(streams, tpot);
  double chosen = calm;
  if (ahead_ > 0) {
    const double most = rows_within(streams, std::min(stretch * tpot, tpot + ahead_));
    if (most > calm) chosen = urgent(streams, prompts, calm, most);
  }
  return granted_ = static_cast<std::uint32_t>(chosen);
}

void slo_budget::observe(std::uint32_t stream_rows, std::uint32_t prompt_rows, duration took) noexcept {
  cost_.observe(stream_rows, prompt_rows, took);
  if (stream_rows == 0) return;
  const double tpot = ns(limits_.slo.tpot);
  ahead_ = std::clamp(ahead_ + earned_below * tpot - ns(took), -most_behind * tpot, most_ahead * tpot);
}

}  // namespace weir::core
