#include "core/schedule/prompt_budget.h"

#include <algorithm>

namespace weir::core {
namespace {

constexpr std::uint32_t first_slice = 64;  // before anything was measured
constexpr std::uint32_t smallest_slice = 16;

// smallest_shared: smallest slice with a share. A device with a share reads its weights once for that many
// rows: fewer rows would hardly take less time, and prompts would pile up. quickest: rows of a step beside at
// most `few_streams` streams. The narrowest products take such a step in less time; a few rows more take as
// long as a full slice.
constexpr std::uint32_t smallest_shared = 128, quickest = 64, few_streams = 8;
// longest slice with a share, however many prompts wait: more rows would not take less time a row
constexpr std::uint32_t most_shared = 512;
constexpr std::size_t few_prompts = 8;  // at most this many prompts are no crowd
constexpr double crowding = 8;  // factor of the share: times prompts beyond `few_prompts` for each stream

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

std::uint32_t prompt_budget::rows(std::uint32_t streams, std::span<const prompt_demand> prompts) noexcept {
  if (prompts.empty()) return granted_ = 0;
  const double most = streams == 0         ? rows_alone()
                      : targets_.slo.set() ? rows_for_objective(streams, prompts)
                                           : rows_beside(streams, prompts.size());
  return granted_ = static_cast<std::uint32_t>(std::min<double>(most, targets_.rows));
}

void prompt_budget::observe(std::uint32_t stream_rows, std::uint32_t prompt_rows, duration computed,
                            duration took) noexcept {
  if (stream_rows == 0) return alone_.observe(0, prompt_rows, computed);
  beside_.observe(stream_rows, prompt_rows, computed);
  if (!targets_.slo.set()) return;
  const double tpot = ns(targets_.slo.tpot);
  ahead_ = std::clamp(ahead_ + earned_below * tpot - ns(took), -most_behind * tpot, most_ahead * tpot);
}

double prompt_budget::rows_alone() const noexcept {
  if (alone() <= duration::zero()) return targets_.rows;
  const step_cost& cost = alone_.known() ? alone_ : beside_;
  if (!cost.known()) return first_slice;
  return worthwhile(cost.rows_within(0, ns(alone())), 0);
}

double prompt_budget::rows_beside(std::uint32_t streams, std::size_t waiting) const noexcept {
  const bool shared = targets_.share > 0;
  if (!shared && while_decoding() <= duration::zero()) return targets_.rows;
  if (shared && !beside_.knows_streams(streams)) return 0;
  if (!beside_.known()) return first_slice;
  const double fit = beside_.rows_within(streams, longest_beside(streams, waiting));
  return std::min<double>(worthwhile(fit, streams), shared ? most_shared : targets_.rows);
}

double prompt_budget::longest_beside(std::uint32_t streams, std::size_t waiting) const noexcept {
  const double whole = ns(while_decoding()) / (1 + beside_.spread());
  if (targets_.share <= 0) return whole;
  const auto prompts = static_cast<double>(waiting);
  const double crowd = std::max(
      {1.0, prompts / streams, waiting > few_prompts ? crowding * (prompts - few_prompts) / streams : 0});
  const double shared = (1 + targets_.share * crowd) * beside_.of(streams, 0);
  return whole > 0 ? std::min(whole, shared) : shared;
}

double prompt_budget::worthwhile(double fit, std::uint32_t streams) const noexcept {
  if (targets_.share <= 0) return std::max<double>(fit, smallest_slice);
  if (fit >= smallest_shared) return fit;
  return streams <= few_streams ? quickest - streams : smallest_shared;
}

double prompt_budget::rows_for_objective(std::uint32_t streams,
                                         std::span<const prompt_demand> prompts) const noexcept {
  if (!beside_.known()) return first_slice;
  const double tpot = ns(targets_.slo.tpot);
  const double calm = rows_within(streams, tpot);
  if (ahead_ <= 0) return calm;
  const double most = rows_within(streams, std::min(stretch * tpot, tpot + ahead_));
  return most > calm ? urgent(streams, prompts, calm, most) : calm;
}

double prompt_budget::rows_within(std::uint32_t streams, double time) const noexcept {
  const double margin = std::clamp(spreads * beside_.spread(), least_margin, most_margin);
  double allowed = std::max(time / (1 + margin), (1 + least_share) * beside_.of(streams, 0));
  if (while_decoding() > duration::zero()) allowed = std::min(allowed, ns(while_decoding()) / (1 + margin));
  const double most =
      std::min<double>(targets_.rows, std::max<double>(first_slice, growth * beside_.widest()));
  return std::clamp(beside_.rows_within(streams, allowed), std::min<double>(smallest_slice, most), most);
}

double prompt_budget::urgent(std::uint32_t streams, std::span<const prompt_demand> prompts, double calm,
                             double most) const noexcept {
  const double calm_row = beside_.of(streams, calm) / calm, most_row = beside_.of(streams, most) / most;
  double rows = 0, row_time = calm_row;  // row_time: time of a whole step for each of its prompt rows
  for (const prompt_demand& p : prompts) {
    rows += p.rows;
    const double left = ns(p.left);
    if (p.left == duration::max() || left >= (rows + calm) * calm_row) continue;
    if (left >= rows * most_row) row_time = std::min(row_time, left / rows);
  }
  // A step of r rows takes row_time * r.
  const double without = beside_.of(streams, 0), a_row = beside_.prompt_row();
  if (row_time >= calm_row) return calm;
  return row_time > a_row ? std::clamp(without / (row_time - a_row), calm, most) : most;
}

}  // namespace weir::core
