// step_cost.h — how long a step takes, learned from steps that were measured: a part for the step itself, one
// for each row of a stream and one for each row of a prompt.
//
// The parts are a least-squares fit over the recent steps. Steps with prompt rows and steps without are two
// kinds of equal weight, however rare one of them is: after a long time without prompts the cost of their
// rows is still known. A step's weight is divided by its time, because long times vary more; not by more, so
// that a device that became slow is still followed. Within a kind, a step loses a tenth of its weight with
// every later step, and half of it with a step that misses its prediction by more than half. No part is
// negative. Once a kind is known well, a time above 4 times or below a quarter of the prediction counts as 4
// times or a quarter of it.
//
// Thread safety: the owner's thread only. Nothing allocates.
#pragma once

#include <array>
#include <cstdint>

#include "core/clock.h"

namespace weir::core {

class step_cost {
 public:
  // Learns from a step with these rows that took this long.
  void observe(std::uint32_t stream_rows, std::uint32_t prompt_rows, duration took) noexcept;

  // Whether a step with prompt rows was measured.
  bool known() const noexcept { return kinds_[1].steps > 0; }
  // Whether a step without prompt rows and with about so many streams was measured not long ago: with more
  // than half as many and fewer than twice as many, and fewer than 64 steps with prompt rows ago.
  bool knows_streams(std::uint32_t stream_rows) const noexcept {
    return since_streams_ < recent && stream_rows < 2 * streams_ && streams_ < 2 * stream_rows;
  }
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
    // Products of the rows, where the step itself counts as one row, divided by the step's time.
    std::array<vector, 3> products{};
    // Products of the rows and the step's time in ns, divided by the step's time.
    vector times{};
  };

  void fit() noexcept;

  static constexpr std::uint32_t trusted = 4;  // steps of a kind after which a prediction is believed
  static constexpr std::uint32_t recent = 64;  // see knows_streams()
  std::array<sums, 2> kinds_;                  // without and with prompt rows
  vector parts_{};                             // ns
  double spread_ = 0;
  std::uint32_t widest_ = 0;
  std::uint32_t streams_ = 0;        // of the latest step without prompt rows; 0: there was none
  std::uint32_t since_streams_ = 0;  // steps with prompt rows since then
};

}  // namespace weir::core
