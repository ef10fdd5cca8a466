// random_params.h — for tests that compare a draw with its float64 definition: random parameters, and the
// token that the definition draws.
#pragma once

#include <cmath>
#include <initializer_list>
#include <memory>
#include <random>
#include <vector>

#include "core/sample/dry.h"
#include "core/sample/params.h"

namespace weir::tests {

// The token of a uniform number u: the first whose running sum exceeds it.
inline core::token_id by_definition(const std::vector<double>& q, double u) {
  double sum = 0;
  core::token_id last = -1;
  for (std::size_t i = 0; i < q.size(); ++i) {
    if (q[i] == 0) continue;
    sum += q[i];
    last = static_cast<core::token_id>(i);
    if (sum > u) break;
  }
  return last;
}

// True where u lies so near an edge between two tokens that float32 may fall on the other side.
inline bool near_edge(const std::vector<double>& q, double u, double within) {
  double sum = 0;
  for (const double x : q) {
    sum += x;
    if (std::abs(sum - u) < within) return true;
  }
  return false;
}

inline core::sampling_params random_params(std::mt19937& random) {
  const auto one_of = [&](std::initializer_list<float> v) { return v.begin()[random() % v.size()]; };
  core::sampling_params p;
  p.temperature = one_of({0, 0.3f, 0.7f, 1, 1, 1.5f, 2});
  p.top_k = static_cast<std::uint32_t>(one_of({0, 0, 1, 5, 40, 100000}));
  p.top_p = one_of({1, 1, 0.95f, 0.5f, 0.01f});
  p.min_p = one_of({0, 0, 0.05f, 0.3f, 1});
  p.repetition_penalty = one_of({1, 1, 1.3f, 0.7f, 2});
  p.frequency_penalty = one_of({0, 0, 0.5f, -1, 2});
  p.presence_penalty = one_of({0, 0, 0.7f, -0.5f});
  p.seed = random();
  return p;
}

// Adds fields that few requests set, about two of them.
inline void add_rare(std::mt19937& random, std::uint32_t vocab, core::sampling_params& p) {
  const auto one_of = [&](std::initializer_list<float> v) { return v.begin()[random() % v.size()]; };
  const auto sometimes = [&] { return random() % 6 == 0; };
  if (sometimes()) p.repetition_range = static_cast<std::int32_t>(one_of({0, 1, 10, 40, 1000}));
  if (sometimes()) p.repetition_decay = static_cast<std::uint32_t>(one_of({1, 7, 30, 1000}));
  if (sometimes()) p.top_n_sigma = one_of({0.5f, 1, 2.5f});
  if (sometimes()) p.top_a = one_of({0.01f, 0.1f, 0.5f});
  if (sometimes()) p.typical_p = one_of({0.95f, 0.6f, 0.3f});
  if (sometimes()) p.tfs = one_of({0.97f, 0.5f, 0.1f});
  if (sometimes()) p.xtc_probability = one_of({0.3f, 1});
  p.xtc_threshold = one_of({0.02f, 0.1f, 0.3f});
  if (sometimes()) p.mirostat_mode = 1 + random() % 2;
  p.mirostat_tau = one_of({0.5f, 1.5f, 4});
  if (sometimes()) p.dynatemp_range = one_of({0.1f, 0.7f, 1.5f});
  p.dynatemp_exponent = one_of({1, 1, 0.5f, 3});
  if (sometimes()) p.smoothing_factor = one_of({0.05f, 0.3f, 2});
  p.smoothing_curve = one_of({1, 1, 2.5f, 4});
  p.temperature_last = sometimes();
  if (sometimes()) p.disallow_tokens = {0, 2, 4};
  if (sometimes()) p.no_repeat_ngram_size = 2 + random() % 3;
  if (sometimes()) p.bad_words = {2, 1, 2, 2, 0, 3, 3, 0, 1, 4};
  if (sometimes()) p.dry_multiplier = one_of({0.5f, 2});
  p.dry_base = one_of({1, 1.75f, 3});
  p.dry_allowed_length = 1 + random() % 3;
  p.dry_range = static_cast<std::uint32_t>(one_of({0, 0, 5, 25}));
  if (random() % 2) {
    auto breakers = std::make_shared<core::dry_breakers>();
    breakers->single = {1, 6};
    p.dry_sequence_breakers = std::move(breakers);
  }
  if (!sometimes()) return;
  std::vector<core::token_id> may{5};
  for (int i = 0; i < 50; ++i) may.push_back(static_cast<core::token_id>(random() % vocab));
  p.allowed_token_ids = std::move(may);
}

}  // namespace weir::tests
