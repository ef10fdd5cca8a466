// prefill_budget.h — how many prompt rows a step may carry, learned from how long steps take.
//
// A prompt is computed in slices so that it never stalls the streams beside it. What a row costs differs by
// machine, model and context, so it is measured: a running mean of the time of steps without prompt rows, and
// of what each prompt row added to the others. Token choices never depend on it (slicing changes no bit of a
// row's result).
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
    duration while_decoding{};  // longest step while others decode; zero: rows alone bound it
    duration alone{};           // the same while nothing decodes
  };

  explicit prefill_budget(limits l) : limits_(l) {}

  std::uint32_t rows(bool others_decode) const noexcept;
  void observe(std::uint32_t decode_rows, std::uint32_t prompt_rows, duration took) noexcept;

 private:
  static constexpr double unknown = -1;

  limits limits_;
  double step_ns_ = 0;       // a step of decode rows alone
  double row_ns_ = unknown;  // what one more prompt row costs
};

}  // namespace weir::core
