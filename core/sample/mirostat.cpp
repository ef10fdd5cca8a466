#include "core/sample/mirostat.h"

#include <algorithm>
#include <cmath>

namespace weir::core {
namespace {

constexpr std::size_t most_fitted = 100;  // tokens that the exponent is fitted to

// The exponent of a Zipf distribution. REQUIRES: at least two, the best first.
double fitted_exponent(std::span<const candidate> best) {
  double products = 0, squares = 0;
  for (std::size_t i = 0; i + 1 < best.size(); ++i) {
    const double t = std::log(static_cast<double>(i + 2) / static_cast<double>(i + 1));
    products += t * (static_cast<double>(best[i].logit) - static_cast<double>(best[i + 1].logit));
    squares += t * t;
  }
  return products / squares;
}

// How many tokens of a Zipf distribution with this exponent have the surprise mu.
double kept_by(double exponent, double mu, double vocab) {
  const double e = exponent - 1;
  const double share = e == 0 ? 1 / std::log(vocab) : e / -std::expm1(-e * std::log(vocab));
  return std::pow(share * std::exp2(mu), 1 / exponent);
}

void drop(std::span<const candidate> some, std::span<float> weights) {
  for (const candidate& c : some) weights[static_cast<std::size_t>(c.id)] = 0;
}

}  // namespace

double first_mu(const sampling_params& p) { return 2 * static_cast<double>(p.mirostat_tau); }

double next_mu(const sampling_params& p, double mu, double surprise) {
  return mu - static_cast<double>(p.mirostat_eta) * (surprise - static_cast<double>(p.mirostat_tau));
}

void keep_mirostat(std::span<const float> logits, const sampling_params& p, double mu,
                   std::span<float> weights, std::vector<candidate>& room) {
  room.clear();
  for (std::size_t i = 0; i < weights.size(); ++i)
    if (weights[i] > 0) room.push_back({logits[i], static_cast<token_id>(i)});
  if (room.size() < 2) return;
  if (p.mirostat_mode == 2) {
    const double least = std::exp2(-mu) * sum_of(weights);
    std::iter_swap(room.begin(), std::min_element(room.begin(), room.end(), better));
    const auto surprising = [&](candidate c) {
      return static_cast<double>(weights[static_cast<std::size_t>(c.id)]) < least;
    };
    const auto kept =
        std::partition(room.begin() + 1, room.end(), [&](candidate c) { return !surprising(c); });
    return drop({kept, room.end()}, weights);
  }
  const auto fitted = static_cast<std::ptrdiff_t>(std::min(room.size(), most_fitted));
  std::partial_sort(room.begin(), room.begin() + fitted, room.end(), better);
  const double exponent = fitted_exponent({room.begin(), room.begin() + fitted});
  const double k = kept_by(exponent, mu, static_cast<double>(logits.size()));
  if (k >= static_cast<double>(room.size())) return;
  const auto kept = room.begin() + static_cast<std::ptrdiff_t>(std::max(1.0, k));
  std::nth_element(room.begin(), kept, room.end(), better);
  drop({kept, room.end()}, weights);
}

double surprise_of(token_id id, std::span<const float> weights) {
  return std::log2(sum_of(weights) / static_cast<double>(weights[static_cast<std::size_t>(id)]));
}

}  // namespace weir::core
