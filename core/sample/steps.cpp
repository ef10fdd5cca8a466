#include "core/sample/steps.h"

#include <algorithm>
#include <bit>
#include <cassert>
#include <limits>

// The loops over a vocabulary are written for a compiler that vectorises: no branches, and as many running
// values as fit a register, joined at the end in one order.

namespace weir::core {
namespace {

constexpr float minus_inf = -std::numeric_limits<float>::infinity();
constexpr std::size_t lanes = 16;
constexpr std::size_t block = 512;

float& at(std::span<float> logits, token_id id) { return logits[static_cast<std::size_t>(id)]; }

constexpr float smallest_exponent = -86;  // exp of it is a normal number, and below
constexpr float smallest_weight = 1e-37f;

// exp(x) for smallest_exponent <= x <= 0: 2^n times a polynomial of degree 6 on [-ln 2 / 2, ln 2 / 2].
inline float exp_between(float x) {
  const float n = (x * 1.44269504f + 12582912.0f) - 12582912.0f;  // rounds to the nearest whole number
  const float r = (x - n * 0.693359375f) + n * 2.12194440e-4f;
  float p = 1.0f / 720;
  p = p * r + 1.0f / 120;
  p = p * r + 1.0f / 24;
  p = p * r + 1.0f / 6;
  p = p * r + 0.5f;
  p = p * r + 1.0f;
  p = p * r + 1.0f;
  return p * std::bit_cast<float>((static_cast<std::int32_t>(n) + 127) << 23);
}

// Of the weights that reach `least`.
double sum_from(std::span<const float> weights, float least) {
  double part[lanes] = {};
  std::size_t i = 0;
  for (; i + lanes <= weights.size(); i += lanes) {
    for (std::size_t k = 0; k < lanes; ++k) part[k] += weights[i + k] >= least ? weights[i + k] : 0.0f;
  }
  double sum = 0;
  for (; i < weights.size(); ++i) sum += weights[i] >= least ? weights[i] : 0.0f;
  for (const double p : part) sum += p;
  return sum;
}

// Block by block, so that a walk over blocks meets the very same sums.
double sum_of(std::span<const float> weights) {
  double sum = 0;
  for (std::size_t i = 0; i < weights.size(); i += block) {
    sum += sum_from(weights.subspan(i, std::min(block, weights.size() - i)), 0);
  }
  return sum;
}

// Drops what is worse than the edge.
void keep_through(candidate edge, std::span<const float> logits, std::span<float> weights) {
  for (std::size_t i = 0; i < logits.size(); ++i) {
    const bool tie = (logits[i] == edge.logit) & (static_cast<token_id>(i) <= edge.id);
    weights[i] = (logits[i] > edge.logit) | tie ? weights[i] : 0.0f;
  }
}

// A logit that at least k tokens reach, and not many more: the k-th largest of the largest of small groups.
float reached_by(std::span<const float> logits, std::uint32_t k, std::vector<candidate>& room) {
  room.clear();
  for (std::size_t i = 0; i + lanes <= logits.size(); i += lanes) {
    float most = logits[i];
    for (std::size_t j = 1; j < lanes; ++j) most = logits[i + j] > most ? logits[i + j] : most;
    room.push_back({most, static_cast<token_id>(i)});
  }
  if (k > room.size()) return minus_inf;
  std::nth_element(room.begin(), room.begin() + (k - 1), room.end(), better);
  return room[k - 1].logit;
}

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

std::optional<candidate> largest(std::span<const float> logits) {
  float most[lanes];
  std::int32_t finite[lanes];
  std::fill_n(most, lanes, minus_inf);
  std::fill_n(finite, lanes, -1);
  const auto look = [&](std::size_t k, float l) {
    most[k] = l > most[k] ? l : most[k];
    finite[k] &= l <= std::numeric_limits<float>::max() ? -1 : 0;  // neither NaN nor +inf
  };
  std::size_t i = 0;
  for (; i + lanes <= logits.size(); i += lanes) {
    for (std::size_t k = 0; k < lanes; ++k) look(k, logits[i + k]);
  }
  for (; i < logits.size(); ++i) look(0, logits[i]);
  const float top = *std::max_element(most, most + lanes);
  const bool sound = std::all_of(finite, finite + lanes, [](std::int32_t f) { return f != 0; });
  if (!sound || top == minus_inf) return std::nullopt;
  return candidate{top, static_cast<token_id>(std::find(logits.begin(), logits.end(), top) - logits.begin())};
}

// Four short loops instead of one: each has a form that the compiler vectorises.
void weigh(std::span<const float> logits, float top, float temperature, std::span<float> weights) {
  for (std::size_t i = 0; i < logits.size(); ++i) weights[i] = (logits[i] - top) / temperature;
  for (float& w : weights) w = w > smallest_exponent ? w : smallest_exponent;
  for (float& w : weights) w = exp_between(w);
  keep_min_p(smallest_weight, weights);
}

void keep_top_k(std::span<const float> logits, std::uint32_t k, std::span<float> weights,
                std::vector<candidate>& room) {
  assert(k >= 1);
  if (k >= logits.size()) return;
  const float least = reached_by(logits, k, room);
  room.clear();
  for (std::size_t i = 0; i < logits.size(); ++i) {
    if (logits[i] >= least) room.push_back({logits[i], static_cast<token_id>(i)});
  }
  std::nth_element(room.begin(), room.begin() + (k - 1), room.end(), better);
  keep_through(room[k - 1], logits, weights);
}

void keep_top_p(std::span<const float> logits, float top_p, std::span<float> weights,
                std::vector<candidate>& room) {
  const double wanted = static_cast<double>(top_p) * sum_of(weights);
  // Most of the mass usually lies in few tokens: takes the first of these bounds above which there is enough.
  float least = std::numeric_limits<float>::min();
  for (const float bound : {0x1p-6f, 0x1p-12f, 0x1p-20f}) {
    if (sum_from(weights, bound) < wanted) continue;
    least = bound;
    break;
  }
  room.clear();
  for (std::size_t i = 0; i < weights.size(); ++i) {
    if (weights[i] >= least) room.push_back({logits[i], static_cast<token_id>(i)});
  }
  // Halves the candidates around the one that crosses, then ranks the few that are left.
  const auto weight = [&](candidate c) -> double { return weights[static_cast<std::size_t>(c.id)]; };
  double mass = 0;
  auto from = room.begin(), to = room.end();
  while (to - from > 32) {
    const auto middle = from + (to - from) / 2;
    std::nth_element(from, middle, to, better);
    double half = mass;
    for (auto c = from; c != middle; ++c) half += weight(*c);
    if (half >= wanted) {
      to = middle;
    } else {
      mass = half;
      from = middle;
    }
  }
  std::sort(from, to, better);
  while (from + 1 != to && (mass += weight(*from)) < wanted) ++from;
  keep_through(*from, logits, weights);
}

void keep_min_p(float min_p, std::span<float> weights) {
  for (float& w : weights) w = w >= min_p ? w : 0.0f;
}

token_id draw_token(std::span<const float> weights, double u) {
  const double target = u * sum_of(weights);
  double sum = 0;
  token_id last = -1;
  for (std::size_t begin = 0; begin < weights.size(); begin += block) {
    const auto some = weights.subspan(begin, std::min(block, weights.size() - begin));
    const double with = sum + sum_from(some, 0);
    if (with <= target && begin + block < weights.size()) {
      sum = with;
      continue;
    }
    for (std::size_t i = 0; i < some.size(); ++i) {
      if (some[i] == 0) continue;
      last = static_cast<token_id>(begin + i);
      if ((sum += some[i]) > target) return last;
    }
  }
  return last;
}

}  // namespace weir::core
