// golden_checks.h — a model against its reference.json.
#pragma once

#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>

#include "tests/support/drive.h"
#include "tests/support/golden.h"

namespace weir::tests {

inline constexpr std::size_t whole_prompt = 1u << 20;  // a chunk that no prompt fills

// The first `count` greedy tokens of a generation whose prompt is fed in chunks.
inline void check_golden_tokens(core::model& m, const golden_generation& wanted, std::size_t count,
                                std::size_t chunk) {
  CAPTURE(wanted.prompt, chunk);
  const auto got = greedy(m, wanted.prompt_ids, count, chunk);
  CHECK(got == std::vector<core::token_id>(wanted.greedy_ids.begin(),
                                           wanted.greedy_ids.begin() + std::ptrdiff_t(count)));
}

// The logits that the reference has at one position, within a thousandth of the largest.
inline void check_golden_logits(core::model& m, const golden& g, const golden_logits& wanted,
                                std::size_t chunk) {
  CAPTURE(wanted.position, chunk);
  const std::uint32_t pages = static_cast<std::uint32_t>(wanted.position) / core::page_tokens + 1;
  driven_sequence s(m, 0, pages);
  const auto got = s.feed(std::span(g.input_ids).first(wanted.position + 1), chunk);
  double largest = 0, worst = 0;
  for (const double x : wanted.logits) largest = std::max(largest, std::abs(x));
  for (std::size_t i = 0; i < wanted.ids.size(); ++i)
    worst = std::max(worst, std::abs(got[static_cast<std::size_t>(wanted.ids[i])] - wanted.logits[i]));
  if (&wanted == &g.at.back())
    for (std::size_t i = 0; i < g.last_logits.size(); ++i)
      worst = std::max(worst, std::abs(got[i] - g.last_logits[i]));
  CHECK(worst <= 1e-3 * largest);
}

}  // namespace weir::tests
