// slo_budget.h — how many prompt rows a step may carry beside streams, so that requests keep an objective.
//
// Large slices of prompts give early first tokens, and long gaps between the tokens of the streams beside
// them. From what steps have taken (step_cost.h) follows how long a step with so many rows will take:
//   1. A step has as many prompt rows as keep its time within tpot. The prediction's spread is left free.
//   2. Where a prompt would miss its ttft so, and would keep it with longer steps, a step has as many rows as
//      that needs. It then takes at most twice tpot, and no more than tpot and what the streams are ahead:
//      the time that their steps took less than nine tenths of tpot before, up to four times tpot.
//   3. Where both cannot be kept, tpot wins: steps are no longer than tpot for the sake of first tokens once
//      the streams are no more ahead. Prompts that cannot keep their ttft in any case lengthen no step.
//   4. Prompts may always add a quarter to a step without them, and always have 16 rows, even where streams
//      alone take longer than tpot. Neither prompts nor streams ever stand still.
//   5. A step has at most twice the prompt rows of the longest slice that was measured, so that what a device
//      takes for many rows is found in steps that are not far too long.
//
// No token depends on the budget, since slicing changes no bit of a row's result.
//
// Thread safety: the owner's thread only. Nothing allocates.
#pragma once

#include <cstdint>
#include <span>

#include "core/objective.h"
#include "core/schedule/step_cost.h"

namespace weir::core {

// A prompt that is being computed.
struct waiting_prompt {
  std::uint32_t rows = 0;  // that are still to be computed
  // Until its first token is late; negative: it is. duration::max(): its first token came already, and these
  // are rows lost by preemption.
  duration left = duration::max();
};

class slo_budget {
 public:
  struct limits {
    objective slo;             // REQUIRES: set()
    std::uint32_t rows = 512;  // most prompt rows in one step, whatever they cost
    duration longest{};        // longest step with prompt rows, whatever first tokens need; zero: no bound
  };

  explicit slo_budget(limits l) : limits_(l) {}

  // Most prompt rows of the next step. `streams`: sequences that decode in it, > 0. `prompts`: in the order
  // in which they are served.
  std::uint32_t rows(std::uint32_t streams, std::span<const waiting_prompt> prompts) noexcept;

  // Result of the latest rows().
  std::uint32_t granted() const noexcept { return granted_; }

  // Learns from a finished step that had so many rows of each kind.
  void observe(std::uint32_t stream_rows, std::uint32_t prompt_rows, duration took) noexcept;

 private:
  // Prompt rows of a step that is meant to take `ns`.
  double rows_within(std::uint32_t streams, double ns) const noexcept;
  // Rows a step that first tokens need: between `calm`, which keep tpot, and `most`.
  double urgent(std::uint32_t streams, std::span<const waiting_prompt> prompts, double calm,
                double most) const noexcept;

  limits limits_;
  step_cost cost_;
  double ahead_ = 0;  // see 2. above, in ns; negative: the streams are behind
  std::uint32_t granted_ = 0;
};

}  // namespace weir::core
