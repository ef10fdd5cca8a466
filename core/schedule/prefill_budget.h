// prefill_budget.h — how many prompt rows a step may carry, learned from how long steps take.
//
// A prompt is computed in slices, so that it never stalls the sequences that decode beside it. The cost of a
// prompt row differs by machine, model and context, so it is measured. Two running means are kept: the time
// of a step without prompt rows, and the time that each prompt row added to a step. The second one learns
// only from slices as long as the budget allowed: a device that reads its weights once for all rows computes
// the first rows almost for free, so short slices say little. No token depends on the budget, since slicing
// changes no bit of a row's result.
//
// Two bounds hold while sequences decode, and the tighter one counts: the time of a whole step, and the time
// that prompts add to it, as a share of a step without prompt rows. Where the share is set:
//   - It is multiplied by the crowding, so that prompts are not starved. Crowding is the largest of 1,
//     prompts / decoding sequences, and 8 * (prompts - 8) / decoding sequences.
//   - A step has at most 512 prompt rows. Longer slices cost no less per row, and they make the gaps between
//     tokens more uneven.
//
// Thread safety: the owner's thread only.
#pragma once

#include <cstdint>

#include "core/clock.h"

namespace weir::core {

class prefill_budget {
 public:
  struct limits {
    std::uint32_t rows = 512;   // most prompt rows in one step, whatever they cost
    duration while_decoding{};  // longest step while sequences decode; zero: no bound
    duration alone{};           // longest step while none decodes; zero: no bound
    // Time that prompts may add to a step, as a share of a step without prompt rows; 0: no bound.
    double share = 0;
  };

  explicit prefill_budget(limits l) : limits_(l) {}

  // Most prompt rows of the next step. `decoding`: sequences that decode in it; `waiting`: sequences that
  // have prompt rows to compute. Returns 0 where a share is set and the time of a step without prompt rows is
  // unknown or outdated: the step that follows measures it.
  std::uint32_t rows(std::uint32_t decoding, std::uint32_t waiting) noexcept;

  // Result of the latest rows().
  std::uint32_t granted() const noexcept { return granted_; }

  // Learns from a finished step with these rows. `granted`: what rows() returned for that step. The short
  // form takes the latest result, and is wrong if rows() was called again since that step was planned.
  void observe(std::uint32_t decode_rows, std::uint32_t prompt_rows, duration took) noexcept {
    observe(decode_rows, prompt_rows, took, granted_);
  }
  void observe(std::uint32_t decode_rows, std::uint32_t prompt_rows, duration took,
               std::uint32_t granted) noexcept;

 private:
  static constexpr double unknown = -1;

  // Whether step_ns_ is recent and was measured with about as many decoding sequences: more than half as many
  // and fewer than twice as many.
  bool knows_step(std::uint32_t decoding) const noexcept;
  // Time for prompt rows in a step beside decoding sequences, in ns; may be negative.
  double room(std::uint32_t decoding, std::uint32_t waiting) const noexcept;
  // Rows that a step carries if it has time for `fit`: more where a smaller slice would hardly be quicker.
  double worthwhile(double fit, std::uint32_t decoding) const noexcept;

  limits limits_;
  double step_ns_ = unknown;      // mean time of a step without prompt rows
  std::uint32_t step_rows_ = 0;   // rows of the latest such step
  std::uint32_t since_step_ = 0;  // steps with prompt rows since then
  double row_ns_ = unknown;       // mean time that a prompt row adds to a step
  std::uint32_t granted_ = 0;     // see granted()
};

}  // namespace weir::core
