#include "core/schedule/step_cost.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace weir::core {
namespace {

constexpr double fade = 0.9;  // factor of a step's weight at each later step of its kind
// The same at a step that misses its prediction by more than half: the device may have changed.
constexpr double changed_fade = 0.5;
constexpr double surprise = 4;  // a step counts within 1 / surprise and surprise times its prediction
constexpr double newest = 0.1;  // weight of the latest step in the spread
constexpr double shortest = 1e4;  // ns; a shorter step has the weight of one of this time
// How strongly each part is pulled to 0, as a share of the weight of its data; prompt rows the least. If the
// steps were too alike to tell the parts apart, their time thus counts as that of prompt rows, and a
// prediction for more rows is rather too long than too short.
constexpr std::array<double, 3> pull{1e-3, 1e-3, 1e-6};

using vector = std::array<double, 3>;
using matrix = std::array<vector, 3>;

// Solves a x = b for the unknowns of `on`; the others are 0. REQUIRES: `a` is positive definite on them.
vector solve(matrix a, vector b, const std::array<bool, 3>& on) {
  for (std::size_t i = 0; i < 3; ++i) {
    if (on[i]) continue;
    for (std::size_t j = 0; j < 3; ++j) a[i][j] = a[j][i] = 0;
    a[i][i] = 1;
    b[i] = 0;
  }
  for (std::size_t i = 0; i < 3; ++i)
    for (std::size_t below = i + 1; below < 3; ++below) {
      const double times = a[below][i] / a[i][i];
      for (std::size_t j = i; j < 3; ++j) a[below][j] -= times * a[i][j];
      b[below] -= times * b[i];
    }
  vector x{};
  for (std::size_t i = 3; i-- > 0;) {
    double rest = b[i];
    for (std::size_t j = i + 1; j < 3; ++j) rest -= a[i][j] * x[j];
    x[i] = rest / a[i][i];
  }
  return x;
}

}  // namespace

double step_cost::rows_within(double stream_rows, double ns) const noexcept {
  const double left = ns - of(stream_rows, 0);
  if (left <= 0) return -1;
  return parts_[2] > 0 ? left / parts_[2] : std::numeric_limits<double>::infinity();
}

void step_cost::observe(std::uint32_t stream_rows, std::uint32_t prompt_rows, duration took) noexcept {
  sums& kind = kinds_[prompt_rows > 0 ? 1 : 0];
  double ns = std::max(0.0, static_cast<double>(took.count()));
  const double predicted = of(stream_rows, prompt_rows);
  double kept = fade;  // of the weights of earlier steps
  if (kind.steps == trusted && predicted > 0) {
    ns = std::clamp(ns, predicted / surprise, surprise * predicted);
    const double missed = std::abs(ns - predicted) / predicted;
    spread_ += newest * (missed - spread_);
    if (missed > 0.5) kept = changed_fade;
  }
  kind.steps = std::min(kind.steps + 1, trusted);
  const double scale = 1 / std::sqrt(std::max(ns, shortest));
  const vector rows{scale, scale * stream_rows, scale * prompt_rows};
  for (std::size_t i = 0; i < 3; ++i) {
    for (std::size_t j = 0; j < 3; ++j) kind.products[i][j] = kept * kind.products[i][j] + rows[i] * rows[j];
    kind.times[i] = kept * kind.times[i] + rows[i] * scale * ns;
  }
  widest_ = std::max(widest_, prompt_rows);
  since_streams_ = prompt_rows > 0 ? since_streams_ + 1 : 0;
  if (prompt_rows == 0) streams_ = stream_rows;
  fit();
}

void step_cost::fit() noexcept {
  matrix a{};
  vector b{};
  for (const sums& kind : kinds_)
    for (std::size_t i = 0; i < 3; ++i) {
      for (std::size_t j = 0; j < 3; ++j) a[i][j] += kind.products[i][j];
      b[i] += kind.times[i];
    }
  std::array<bool, 3> on{};
  for (std::size_t i = 0; i < 3; ++i) {
    on[i] = a[i][i] > 0;
    a[i][i] *= 1 + pull[i];
  }
  for (int left = 3; left > 0; --left) {  // a part that would be negative becomes 0
    parts_ = solve(a, b, on);
    const auto least = std::ranges::min_element(parts_);
    if (*least >= 0) return;
    on[static_cast<std::size_t>(least - parts_.begin())] = false;
    *least = 0;
  }
}

}  // namespace weir::core
