// prefill_budget.h — how many prompt rows a step may carry, learned from how long steps take.
//
// A prompt is computed in slices so that it never stalls the streams beside it. What a row costs differs by
// machine, model and context, so it is measured: a running mean of the time of steps without prompt rows, and
// of what each prompt row added to the others in slices that were as long as they might be. (A short one
// tells little: on a device whose products read the weights once for all rows, the first rows cost next to
// nothing.) Token choices never depend on it (slicing changes no bit of a row's result).
//
// Two bounds while others decode, of which the tighter one counts: a step's whole time, and what prompts may
// add to a step of decoding alone, as a share of it. The share is for each sequence that decodes: where more
// wait for their first token than decode, or many (an eighth of those that decode, and eight more), it grows
// with them, so that a crowd's prompts are not starved; but to 512 rows at most, since longer slices beside
// streams are not quicker, and their gaps would differ the more.
//
// Thread safety: the owner's thread.
#pragma once

#include <cstdint>

#include "core/clock.h"

namespace weir::core {

class prefill_budget {
 public:
  struct limits {
    std::uint32_t rows = 512;   // most in one step, whatever it costs
    duration while_decoding{};  // longest step while others decode; zero: not bounded
    duration alone{};           // the same while nothing decodes
    double share = 0;           // of a step of decoding alone, that prompts may add to it; 0: not bounded
  };

  explicit prefill_budget(limits l) : limits_(l) {}

  // Most prompt rows of the next step, in which so many sequences decode and so many have a prompt to
  // compute. 0 where the share of a step is asked for and that step's time is not known, or long ago: it is
  // measured then.
  std::uint32_t rows(std::uint32_t decoding, std::uint32_t waiting) noexcept;

  // What rows() said last: observe() is told of it where it has been asked again since.
  std::uint32_t granted() const noexcept { return granted_; }
  void observe(std::uint32_t decode_rows, std::uint32_t prompt_rows, duration took) noexcept {
    observe(decode_rows, prompt_rows, took, granted_);
  }
  void observe(std::uint32_t decode_rows, std::uint32_t prompt_rows, duration took,
               std::uint32_t granted) noexcept;

 private:
  static constexpr double unknown = -1;

  bool knows_step(std::uint32_t decoding) const noexcept;
  double room(std::uint32_t decoding, std::uint32_t waiting) const noexcept;
  double worthwhile(double fit, std::uint32_t decoding) const noexcept;

  limits limits_;
  double step_ns_ = unknown;       // a step of decode rows alone,
  std::uint32_t step_rows_ = 0;    // of so many,
  std::uint32_t since_step_ = 0;   // and steps with prompt rows since the last one
  double row_ns_ = unknown;        // what one more prompt row costs
  std::uint32_t granted_ = 0;      // rows of the step that was planned last
};

}  // namespace weir::core
