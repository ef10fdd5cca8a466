// log_softmax.h — logprobs in float64, computed in the plainest way: the reference for every device.
//
// Written from the definition alone; it shares no code with core/sample or kernels.
#pragma once

#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>
#include <span>
#include <vector>

#include "core/sample/logprobs.h"

namespace weir::tests {

inline std::vector<double> log_softmax(std::span<const float> row) {
  const double top = *std::max_element(row.begin(), row.end());
  double sum = 0;
  for (const float l : row) sum += std::exp(l - top);
  std::vector<double> out;
  for (const float l : row) out.push_back(l - top - std::log(sum));
  return out;
}

// Ids of the tokens with a finite logit, the best first; ties go to the lowest id.
inline std::vector<core::token_id> ranking(std::span<const float> row) {
  std::vector<core::token_id> ids;
  for (std::size_t i = 0; i < row.size(); ++i)
    if (std::isfinite(row[i])) ids.push_back(static_cast<core::token_id>(i));
  std::stable_sort(ids.begin(), ids.end(), [&](auto a, auto b) {
    return row[static_cast<std::size_t>(a)] > row[static_cast<std::size_t>(b)];
  });
  return ids;
}

// Logprobs of `drawn` and of the `top` likeliest tokens of a row. Ids and their order are exact.
inline void check_logprobs(const core::draw_logprobs& got, std::span<const float> row, core::token_id drawn,
                           std::uint32_t top) {
  const auto of = log_softmax(row);
  const auto ids = ranking(row);
  const auto near = [&](const core::token_logprob& e) {
    const double wanted = of[static_cast<std::size_t>(e.id)];
    return std::abs(e.logprob - wanted) <= 2e-6 + 1e-7 * std::abs(wanted);
  };
  REQUIRE(got.drawn.id == drawn);
  REQUIRE(near(got.drawn));
  REQUIRE(got.count == std::min<std::size_t>(top, ids.size()));
  for (std::uint32_t i = 0; i < got.count; ++i) {
    CAPTURE(i, got.likeliest[i].id, got.likeliest[i].logprob, ids[i]);
    REQUIRE(got.likeliest[i].id == ids[i]);
    REQUIRE(near(got.likeliest[i]));
  }
}

// A result with nothing right in it, to be overwritten.
inline core::draw_logprobs poisoned_logprobs() {
  core::draw_logprobs p;
  p.drawn = {-7, 7};
  p.count = 77;
  p.likeliest.fill({-7, 7});
  return p;
}

// Rows that are hard to rank: `kind` 0 to 6.
template <class Random>
std::vector<float> hard_row(std::size_t vocab, int kind, Random& r) {
  std::normal_distribution<float> normal(0, 3);
  std::vector<float> row(vocab);
  for (float& l : row) l = normal(r);
  const auto some = [&] { return r() % vocab; };
  switch (kind) {
    case 1:  // few different logits, and so many ties
      for (float& l : row) l = std::round(l);
      break;
    case 2:  // all the same, zeros of both signs
      for (std::size_t i = 0; i < vocab; ++i) row[i] = i % 3 ? 0.0f : -0.0f;
      break;
    case 3:  // one token that all others are far below
      row[some()] = 300;
      break;
    case 4:  // nearly all are -inf
      for (float& l : row) l = -INFINITY;
      for (int i = 0; i < 9; ++i) row[some()] = normal(r);
      break;
    case 5:  // the best lie side by side
      for (std::size_t i = 0, at = some(); i < 40; ++i) row[(at + i) % vocab] += 30;
      break;
    case 6:  // large numbers
      for (float& l : row) l *= 1e4f;
      break;
    default:
      break;
  }
  return row;
}

}  // namespace weir::tests
