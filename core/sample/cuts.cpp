#include "core/sample/cuts.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "core/sample/mirostat.h"
#include "kernels/logits.h"

namespace weir::core {
namespace {

constexpr float dropped = -std::numeric_limits<float>::infinity();

float& weight_of(std::span<float> weights, candidate c) { return weights[static_cast<std::size_t>(c.id)]; }

// The standard deviation of the logits that are not -inf.
double deviation(std::span<const float> logits) {
  double sum = 0, squares = 0, count = 0;
  for (const float l : logits) {
    if (l == dropped) continue;
    sum += static_cast<double>(l);
    ++count;
  }
  const double mean = sum / count;
  for (const float l : logits) {
    if (l == dropped) continue;
    const double from_mean = static_cast<double>(l) - mean;
    squares += from_mean * from_mean;
  }
  return std::sqrt(squares / count);
}

double dynamic_temperature(std::span<const float> logits, float top, const sampling_params& p,
                           std::span<float> weights) {
  weigh(logits, top, 1, weights);
  double left = 0, sum = 0;
  for (std::size_t i = 0; i < logits.size(); ++i) {
    if (logits[i] != dropped) ++left;
    if (weights[i] > 0)
      sum += static_cast<double>(weights[i]) * (static_cast<double>(logits[i]) - static_cast<double>(top));
  }
  const double temperature = static_cast<double>(p.temperature), r = static_cast<double>(p.dynatemp_range);
  if (left == 1) return temperature;  // one token has no entropy, and any temperature leaves it
  const double total = sum_of(weights);
  const double entropy = std::clamp((std::log(total) - sum / total) / std::log(left), 0.0, 1.0);
  const double low = std::max(0.0, temperature - r);
  return low + (temperature + r - low) * std::pow(entropy, static_cast<double>(p.dynatemp_exponent));
}

void keep_best(candidate best, std::span<float> logits) {
  std::fill(logits.begin(), logits.end(), dropped);
  logits[static_cast<std::size_t>(best.id)] = 0;
}

void apply_rare_cuts(std::span<const float> logits, const sampling_params& p, const rare_state& now,
                     std::span<float> weights, std::vector<candidate>& room) {
  if (p.top_a > 0) keep_top_a(p.top_a, weights);
  if (p.typical_p < 1) keep_typical(logits, p.typical_p, weights, room);
  if (p.tfs < 1) keep_tfs(logits, p.tfs, weights, room);
  if (p.mirostat_mode > 0) keep_mirostat(logits, p, now.mu, weights, room);
  if (now.coin < static_cast<double>(p.xtc_probability)) drop_top_choices(logits, p.xtc_threshold, weights);
}

}  // namespace

bool has_rare_cuts(const sampling_params& p) {
  return p.top_n_sigma > 0 || p.top_a > 0 || p.typical_p < 1 || p.tfs < 1 || p.mirostat_mode > 0 ||
         p.xtc_probability > 0 || p.dynatemp_range > 0 || p.smoothing_factor > 0 || p.temperature_last;
}

void weigh_rarely(std::span<float> logits, const sampling_params& p, const rare_state& now,
                  std::span<float> weights, std::vector<candidate>& room) {
  if (p.top_n_sigma > 0) keep_top_n_sigma(logits, p.top_n_sigma);
  if (!p.temperature_last) temper(logits, p, weights);
  weigh(logits, largest(logits)->logit, 1, weights);
  apply_cuts(logits, p, weights, room);
  apply_rare_cuts(logits, p, now, weights, room);
  if (!p.temperature_last) return;
  for (std::size_t i = 0; i < logits.size(); ++i)
    if (weights[i] == 0) logits[i] = dropped;
  temper(logits, p, weights);
  weigh(logits, largest(logits)->logit, 1, weights);
}

void keep_top_n_sigma(std::span<float> logits, float n) {
  const double top = static_cast<double>(*std::max_element(logits.begin(), logits.end()));
  const double least = top - static_cast<double>(n) * deviation(logits);
  for (float& l : logits)
    if (static_cast<double>(l) < least) l = dropped;
}

void temper(std::span<float> logits, const sampling_params& p, std::span<float> room_for_weights) {
  const candidate best = *largest(logits);
  const double t = p.dynatemp_range > 0 ? dynamic_temperature(logits, best.logit, p, room_for_weights)
                                        : static_cast<double>(p.temperature);
  if (t == 0) return keep_best(best, logits);
  const double f = static_cast<double>(p.smoothing_factor), c = static_cast<double>(p.smoothing_curve);
  for (float& l : logits) {
    if (l == dropped) continue;
    double d = (static_cast<double>(l) - static_cast<double>(best.logit)) / t;
    if (f > 0) d = d * d * f * (d * (c - 1) / 2 - (3 - c) / 2);
    l = static_cast<float>(std::clamp(d, -1e38, 1e38));  // a float holds it
  }
}

void keep_top_a(float top_a, std::span<float> weights) {
  const auto least = static_cast<float>(static_cast<double>(top_a) / sum_of(weights));
  kernels::logits().keep_from(least, weights.data(), weights.size());
}

void keep_typical(std::span<const float> logits, float typical_p, std::span<float> weights,
                  std::vector<candidate>& room) {
  // log p_i = l_i - c with one c for all, so that |-log p_i - H| is the distance of l_i from its mean.
  const double total = sum_of(weights);
  double mean = 0;
  for (std::size_t i = 0; i < weights.size(); ++i)
    if (weights[i] > 0) mean += static_cast<double>(weights[i]) / total * static_cast<double>(logits[i]);
  room.clear();
  for (std::size_t i = 0; i < weights.size(); ++i) {
    if (weights[i] == 0) continue;
    const double distance = std::abs(static_cast<double>(logits[i]) - mean);
    room.push_back({static_cast<float>(-std::min(distance, 1e38)), static_cast<token_id>(i)});
  }
  const auto later = [](candidate a, candidate b) { return better(b, a); };
  std::make_heap(room.begin(), room.end(), later);
  const double wanted = static_cast<double>(typical_p) * total;
  double mass = 0;
  auto end = room.end();
  while (end != room.begin() && mass < wanted) {
    std::pop_heap(room.begin(), end, later);
    mass += static_cast<double>(weight_of(weights, *--end));
  }
  std::for_each(room.begin(), end, [&](candidate c) { weight_of(weights, c) = 0; });
}

void keep_tfs(std::span<const float> logits, float tfs, std::span<float> weights,
              std::vector<candidate>& room) {
  const double total = sum_of(weights);
  room.clear();
  for (std::size_t i = 0; i < weights.size(); ++i) {
    if (static_cast<double>(weights[i]) < 1e-8 * total)
      weights[i] = 0;
    else
      room.push_back({logits[i], static_cast<token_id>(i)});
  }
  std::sort(room.begin(), room.end(), better);
  const std::size_t ranks = std::min(weights.size(), room.size() + 2);  // behind them all d_i are 0
  const auto at = [&](std::size_t rank) {
    return rank < room.size() ? static_cast<double>(weight_of(weights, room[rank])) : 0;
  };
  const auto bend = [&](std::size_t i) { return std::abs(at(i) - 2 * at(i + 1) + at(i + 2)); };
  double all = 0, sum = 0;
  for (std::size_t i = 0; i + 2 < ranks; ++i) all += bend(i);
  if (all == 0) return;
  std::size_t kept = 1;
  for (std::size_t i = 0; i + 2 < ranks && (sum += bend(i)) <= static_cast<double>(tfs) * all; ++i) ++kept;
  for (std::size_t rank = kept; rank < room.size(); ++rank) weight_of(weights, room[rank]) = 0;
}

void drop_top_choices(std::span<const float> logits, float threshold, std::span<float> weights) {
  const double least = static_cast<double>(threshold) * sum_of(weights);
  const auto is_choice = [&](std::size_t i) {
    return weights[i] > 0 && static_cast<double>(weights[i]) >= least;
  };
  std::optional<candidate> worst;
  for (std::size_t i = 0; i < weights.size(); ++i) {
    const candidate c{logits[i], static_cast<token_id>(i)};
    if (is_choice(i) && (!worst || better(*worst, c))) worst = c;
  }
  if (!worst) return;
  for (std::size_t i = 0; i < weights.size(); ++i)
    if (is_choice(i) && i != static_cast<std::size_t>(worst->id)) weights[i] = 0;
}

}  // namespace weir::core
