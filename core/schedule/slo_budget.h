// slo_budget.h — how many prompt rows a step may carry beside streams, so that requests keep an objective.
//
// Large slices of prompts give early first tokens, and long gaps between the tokens of the streams beside
// them. The time of a step is predicted from its rows (step_cost.h):
//   1. A step has as many prompt rows as keep its time within tpot, with a margin for the prediction's
//      spread.
//   2. If a prompt would thus miss its ttft, but would keep it with longer steps, a step has as many rows as
//      the prompt needs. The step then takes at most twice tpot, and at most tpot plus the time that the
//      streams are ahead. Each step adds to that time nine tenths of tpot less what the step took; the sum
//      is at most four times tpot.
//   3. Where both cannot be kept, tpot wins: once the streams are no longer ahead, no step is longer than
//      tpot for the sake of first tokens. A prompt that cannot keep its ttft in any case lengthens no step.
//   4. Prompts may always add a quarter to the time of a step without prompt rows, and always have 16 rows,
//      even where streams alone take longer than tpot. So neither prompts nor streams ever stand still.
//   5. A step has at most twice the prompt rows of the longest slice that was measured, so that the time of
//      many rows is not measured in a step that is far too long.
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
  // Time until its first token is late; negative: it is late. duration::max(): the first token was sampled
  // already, and these rows were lost by preemption.
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

  // Learns from a finished step with these rows.
  void observe(std::uint32_t stream_rows, std::uint32_t prompt_rows, duration took) noexcept;

 private:
  // Prompt rows of a step that is meant to take `ns`.
  double rows_within(std::uint32_t streams, double ns) const noexcept;
  // Prompt rows of a step that first tokens need: from `calm`, which keeps tpot, to `most`.
  double urgent(std::uint32_t streams, std::span<const waiting_prompt> prompts, double calm,
                double most) const noexcept;

  limits limits_;
  step_cost cost_;
  double ahead_ = 0;  // time that the streams are ahead (2. above), in ns; negative: they are behind
  std::uint32_t granted_ = 0;
};

}  // namespace weir::core
