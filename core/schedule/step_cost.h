// step_cost.h — how long a step takes, learned from steps that were measured: a part for the step itself, one
// for each row of a stream and one for each row of a prompt.
//
// The parts are a least-squares fit over the recent steps. Steps with prompt rows and steps without are two
// kinds that count alike, however seldom one of them is, so that a long time without prompts does not make
// their rows unknown. A step counts the less the longer it took, because its time varies more; as much less
// as it is longer, so that a device that became slow is still followed. Within a kind a step counts a tenth
// less with every later one. No part is negative. A step that took more than 4 times what was predicted
// counts as 4 times, once its kind is known well, and one that took less than a quarter as a quarter.
//
// Thread safety: the owner's thread only. Nothing allocates.
#pragma once

#include <array>
#include <cstdint>

#include "core/clock.h"

namespace weir::core {

class step_cost {
 public:
  // A step with rows of so many streams and so many prompt rows took this long.
  void observe(std::uint32_t stream_rows, std::uint32_t prompt_rows, duration took) noexcept;

  // A step with prompt rows was measured.
  bool known() const noexcept { return kinds_[1].steps > 0; }
  // Predicted time of a step, in ns.
  double of(double stream_rows, double prompt_rows) const noexcept {
    return parts_[0] + parts_[1] * stream_rows + parts_[2] * prompt_rows;
  }
  // Prompt rows of a step that takes `ns`; below 0 where it has no time for any, infinite where rows cost
  // nothing that could be measured.
  double rows_within(double stream_rows, double ns) const noexcept;
  double prompt_row() const noexcept { return parts_[2]; }  // ns
  // Mean distance of a step's time from what was predicted, as a share of the prediction.
  double spread() const noexcept { return spread_; }
  // Most prompt rows of a step so far.
  std::uint32_t widest() const noexcept { return widest_; }

 private:
  using vector = std::array<double, 3>;  // of the step, of stream rows, of prompt rows
  // Sums over the steps of one kind, each by its weight.
  struct sums {
    std::uint32_t steps = 0;           // counted up to `trusted`
    // Of the rows, where the step itself is one row; and of the rows and the time in ns. Both divided by the
    // step's time.
    std::array<vector, 3> products{};
    vector times{};
  };

  void fit() noexcept;

  static constexpr std::uint32_t trusted = 4;  // steps of a kind after which a prediction is believed
  std::array<sums, 2> kinds_;                  // without and with prompt rows
  vector parts_{};                             // ns
  double spread_ = 0;
  std::uint32_t widest_ = 0;
};

}  // namespace weir::core
