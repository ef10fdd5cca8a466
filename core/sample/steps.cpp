#include "core/sample/steps.h"

#include <algorithm>
#include <cassert>
#include <cmath>

namespace weir::core {
namespace {

constexpr float minus_inf = -std::numeric_limits<float>::infinity();

float& at(std::span<float> logits, token_id id) { return logits[static_cast<std::size_t>(id)]; }

}  // namespace

void apply_penalties(std::span<float> logits, std::span<const token_counts::entry> seen,
                     const sampling_params& p) {
  for (const auto& e : seen) {
    float& l = at(logits, e.id);
    l = l > 0 ? l / p.repetition_penalty : l * p.repetition_penalty;
    if (e.in_output == 0) continue;
    l -= p.frequency_penalty * static_cast<float>(e.in_output) + p.presence_penalty;
  }
}

void apply_bias(std::span<float> logits, std::span<const std::pair<token_id, float>> bias) {
  for (const auto& [id, value] : bias) at(logits, id) += value;
}

void apply_mask(std::span<float> logits, std::span<const token_id> ids) {
  for (const token_id id : ids) at(logits, id) = minus_inf;
}

void apply_temperature(std::span<float> logits, float temperature, float top) {
  for (float& l : logits) l = (l - top) / temperature;
}

std::optional<candidate> largest(std::span<const float> logits) {
  candidate best{minus_inf, -1};
  bool bad = false;
  for (std::size_t i = 0; i < logits.size(); ++i) {
    const float l = logits[i];
    bad |= !(l <= std::numeric_limits<float>::max());  // NaN or +inf
    if (l > best.logit) best = {l, static_cast<token_id>(i)};
  }
  if (bad || best.id < 0) return std::nullopt;
  return best;
}

void list_candidates(std::span<const float> logits, std::vector<candidate>& out) {
  out.clear();
  for (std::size_t i = 0; i < logits.size(); ++i) {
    if (logits[i] > minus_inf) out.push_back({logits[i], static_cast<token_id>(i)});
  }
}

candidate keep_top_k(std::vector<candidate>& c, std::uint32_t k) {
  assert(k >= 1);
  if (k >= c.size()) return no_edge;
  std::nth_element(c.begin(), c.begin() + (k - 1), c.end(), before);
  c.resize(k);
  return c.back();
}

candidate keep_top_p(std::vector<candidate>& c, float top_p, candidate top) {
  double total = 0;
  for (const candidate& x : c) total += std::exp(x.logit - top.logit);
  const double wanted = static_cast<double>(top_p) * total;
  // Ranks a piece of the remainder at a time, each four times as long as the one before: most of the mass
  // usually lies in the first.
  double mass = 0;
  auto from = c.begin();
  for (std::ptrdiff_t piece = 64; from != c.end(); piece *= 4) {
    const auto to = c.end() - from <= piece ? c.end() : from + piece;
    if (to != c.end()) std::nth_element(from, to, c.end(), before);
    std::sort(from, to, before);
    for (; from != to; ++from) {
      mass += std::exp(from->logit - top.logit);
      if (mass >= wanted) return *from;
    }
  }
  return c.back();  // rounding kept the sum just below the total
}

candidate keep_min_p(float min_p, candidate top) { return {top.logit + std::log(min_p), no_edge.id}; }

token_id draw_token(std::span<const float> logits, candidate edge, candidate top, double u,
                    std::span<float> weights) {
  double total = 0;
  for (std::size_t i = 0; i < logits.size(); ++i) {
    const bool kept = inside({logits[i], static_cast<token_id>(i)}, edge);
    weights[i] = kept ? std::exp(logits[i] - top.logit) : 0.0f;
    total += weights[i];
  }
  const double target = u * total;
  double sum = 0;
  token_id last = top.id;
  for (std::size_t i = 0; i < logits.size(); ++i) {
    if (weights[i] == 0) continue;
    sum += weights[i];
    last = static_cast<token_id>(i);
    if (sum > target) break;
  }
  return last;
}

}  // namespace weir::core
