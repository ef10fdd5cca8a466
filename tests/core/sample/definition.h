// definition.h — sampling once more, in float64 and in the plainest way. The pipeline is compared with it.
//
// Written from the definitions alone; it shares no code with core/sample. Everything is sorted, nothing is
// clever.
#pragma once

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <numeric>
#include <vector>

#include "core/sample/params.h"

namespace weir::tests {

struct definition {
  core::sampling_params p;
  std::vector<core::token_id> prompt, output;
  std::vector<core::token_id> masked, forbidden;  // by min_tokens; by a constraint

  // The logits that the cuts see, before temperature.
  std::vector<double> reshaped(const std::vector<float>& raw) const {
    std::vector<double> l(raw.begin(), raw.end());
    std::map<core::token_id, int> times;
    for (const auto id : prompt) times[id] += 0;
    for (const auto id : output) times[id] += 1;
    for (const auto& [id, n] : times) {
      double& x = l[static_cast<std::size_t>(id)];
      if (x > 0)
        x /= static_cast<double>(p.repetition_penalty);
      else
        x *= static_cast<double>(p.repetition_penalty);
      x -= static_cast<double>(p.frequency_penalty) * n;
      if (n > 0) x -= static_cast<double>(p.presence_penalty);
    }
    for (const auto& [id, b] : p.logit_bias) l[static_cast<std::size_t>(id)] += static_cast<double>(b);
    for (const auto* ids : {&forbidden, &masked})
      for (const auto id : *ids) l[static_cast<std::size_t>(id)] = -std::numeric_limits<double>::infinity();
    return l;
  }

  // Each token's probability of being drawn.
  std::vector<double> probabilities(const std::vector<float>& raw) const {
    auto l = reshaped(raw);
    std::vector<std::size_t> order(l.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    std::stable_sort(order.begin(), order.end(), [&](auto a, auto b) { return l[a] > l[b]; });
    if (p.temperature == 0) {
      std::vector<double> one(l.size(), 0.0);
      one[order[0]] = 1;
      return one;
    }
    for (double& x : l) x /= static_cast<double>(p.temperature);
    std::size_t kept = order.size();
    if (p.top_k > 0) kept = std::min<std::size_t>(kept, p.top_k);
    if (p.top_p < 1) {
      const auto q = softmax(l, order, kept);
      double mass = 0;
      std::size_t n = 0;
      while (n < kept && mass < static_cast<double>(p.top_p)) mass += q[order[n++]];
      kept = n;
    }
    if (p.min_p > 0) {
      const auto q = softmax(l, order, kept);
      std::size_t n = 1;
      while (n < kept && q[order[n]] >= static_cast<double>(p.min_p) * q[order[0]]) ++n;
      kept = n;
    }
    return softmax(l, order, kept);
  }

 private:
  static std::vector<double> softmax(const std::vector<double>& l, const std::vector<std::size_t>& order,
                                     std::size_t kept) {
    std::vector<double> q(l.size(), 0.0);
    double total = 0;
    for (std::size_t i = 0; i < kept; ++i) total += std::exp(l[order[i]] - l[order[0]]);
    for (std::size_t i = 0; i < kept; ++i) q[order[i]] = std::exp(l[order[i]] - l[order[0]]) / total;
    return q;
  }
};

}  // namespace weir::tests
