// prompt_budget.h — how many prompt rows a step may carry.
//
// A prompt is computed in slices, so that it never stalls the streams: the sequences that decode beside it.
// Large slices give early first tokens, and long gaps between the tokens of the streams. What a row costs
// differs by machine, model and context, so it is learned from how long steps take (step_cost.h). No token
// depends on the budget, since slicing changes no bit of a row's result.
//
// The rows of a step are those that keep its targets:
//   - No step has more than `targets::rows`. A step without streams takes at most `targets::alone`.
//   - Beside streams, with an objective: rows as below.
//   - Beside streams, without an objective: a step takes at most `while_decoding`, less what predictions
//     usually miss, and prompts add at most `share` of a step without prompt rows; the tighter one counts.
//     Where neither is set, `rows` alone bounds the step.
//
// The share:
//   - It is multiplied by the crowding, so that prompts are not starved. Crowding is the largest of 1,
//     prompts / streams, and 8 * (prompts - 8) / streams.
//   - A step has at most 512 prompt rows. Longer slices cost no less per row, and they make the gaps between
//     tokens more uneven.
//   - A slice has at least as many rows as hardly take longer than fewer rows. A device that reads its
//     weights once for all rows computes the first rows almost for free.
//   - While the time of a step without prompt rows is unknown or outdated, a step has no prompt rows: it
//     measures that time.
//
// The objective:
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
//   6. `while_decoding` bounds the step, whatever first tokens need.
//
// Company: while other engines have work on the device, `alone` and `while_decoding` are at most the turn
// that set_company() names.
//
// Thread safety: the owner's thread only. Nothing allocates.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>

#include "core/objective.h"
#include "core/schedule/step_cost.h"

namespace weir::core {

// A prompt that is being computed.
struct prompt_demand {
  std::uint32_t rows = 0;  // that are still to be computed
  // Time until its first token is late; negative: it is late. duration::max(): the first token was sampled
  // already, and these rows were lost by preemption. Read only where there is an objective.
  duration left = duration::max();
};

class prompt_budget {
 public:
  struct targets {
    std::uint32_t rows = 512;   // most prompt rows in one step, whatever they cost
    duration while_decoding{};  // longest step while sequences decode; zero: no bound
    duration alone{};           // longest step while none decodes; zero: no bound
    // Time that prompts may add to a step, as a share of a step without prompt rows; 0: no bound. No effect
    // where there is an objective.
    double share = 0;
    objective slo;
  };

  explicit prompt_budget(const targets& t) : targets_(t) {}

  // Longest step with prompt rows while other engines have work on the device; zero: none has.
  void set_company(duration turn) noexcept { turn_ = turn; }

  // Most prompt rows of the next step. `streams`: sequences that decode in it. `prompts`: in the order in
  // which they are served.
  std::uint32_t rows(std::uint32_t streams, std::span<const prompt_demand> prompts) noexcept;

  // Result of the latest rows().
  std::uint32_t granted() const noexcept { return granted_; }

  // Learns from a finished step with these rows. `computed`: how long the device computed it. `took`: the
  // same with the time in which the device computed for other engines.
  void observe(std::uint32_t stream_rows, std::uint32_t prompt_rows, duration computed,
               duration took) noexcept;
  void observe(std::uint32_t stream_rows, std::uint32_t prompt_rows, duration took) noexcept {
    observe(stream_rows, prompt_rows, took, took);
  }

 private:
  // `longest` within the turn; zero: there is no bound.
  duration bounded(duration longest) const noexcept {
    if (turn_ <= duration::zero()) return longest;
    return longest > duration::zero() ? std::min(longest, turn_) : turn_;
  }
  duration while_decoding() const noexcept { return bounded(targets_.while_decoding); }
  duration alone() const noexcept { return bounded(targets_.alone); }

  // Prompt rows of a step without streams.
  double rows_alone() const noexcept;
  // Prompt rows of a step beside streams, without an objective.
  double rows_beside(std::uint32_t streams, std::size_t waiting) const noexcept;
  // Longest step beside streams, without an objective, in ns. REQUIRES: there is a bound.
  double longest_beside(std::uint32_t streams, std::size_t waiting) const noexcept;
  // Rows of a slice that has time for `fit`: more where a smaller slice would hardly be quicker.
  double worthwhile(double fit, std::uint32_t streams) const noexcept;

  // The same beside streams, with an objective.
  double rows_for_objective(std::uint32_t streams, std::span<const prompt_demand> prompts) const noexcept;
  // Prompt rows of a step that is meant to take `ns`.
  double rows_within(std::uint32_t streams, double ns) const noexcept;
  // Prompt rows of a step that first tokens need: from `calm`, which keeps tpot, to `most`.
  double urgent(std::uint32_t streams, std::span<const prompt_demand> prompts, double calm,
                double most) const noexcept;

  const targets targets_;
  duration turn_{};  // of set_company()
  // Of steps with streams, and of steps without. They are apart, because a device computes the rows of a long
  // slice at another price than those of a short one, and slices beside streams are short.
  step_cost beside_, alone_;
  double ahead_ = 0;  // time that the streams are ahead (2. above), in ns; negative: they are behind
  std::uint32_t granted_ = 0;
};

}  // namespace weir::core
