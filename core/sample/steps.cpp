#include "core/sample/steps.h"

#include <algorithm>
#include <array>
#include <cassert>
#include <functional>
#include <limits>

#include "kernels/logits.h"

namespace weir::core {
namespace {

constexpr float minus_inf = -std::numeric_limits<float>::infinity();
constexpr std::size_t block = 512;

float& at(std::span<float> logits, token_id id) { return logits[static_cast<std::size_t>(id)]; }

// The sum of the weights that are at least `least`.
double sum_from(std::span<const float> weights, float least) {
  return kernels::logits().sum_from(weights.data(), weights.size(), least);
}

// Sets the weights of all tokens that are worse than `edge` to 0.
void keep_through(candidate edge, std::span<const float> logits, std::span<float> weights) {
  kernels::logits().keep_through(logits.data(), logits.size(), edge.logit, edge.id, weights.data());
}

// Fills `room` with the tokens whose value is at least `least`, and their logits.
void collect(std::span<const float> values, float least, std::span<const float> logits,
             std::vector<candidate>& room) {
  const auto next = [&](std::size_t from) {
    return kernels::logits().next(values.data(), from, values.size(), least);
  };
  room.clear();
  for (std::size_t i = next(0); i < values.size(); i = next(i + 1))
    room.push_back({logits[i], static_cast<token_id>(i)});
}

// A logit that at least k tokens reach, and not many more: the k-th largest among the largest logits of many
// groups.
float reached_by(std::span<const float> logits, std::uint32_t k) {
  std::array<float, 4096> peaks;
  const std::size_t wanted = std::clamp<std::size_t>(std::size_t{k} * 8, 256, peaks.size());
  const std::size_t groups =
      kernels::logits().group_peaks(logits.data(), logits.size(), wanted, peaks.data());
  if (k > groups) return minus_inf;
  std::nth_element(peaks.begin(), peaks.begin() + (k - 1), peaks.begin() + groups, std::greater{});
  return peaks[k - 1];
}

}  // namespace

double sum_of(std::span<const float> weights) {
  double sum = 0;
  for (std::size_t i = 0; i < weights.size(); i += block) {
    sum += sum_from(weights.subspan(i, std::min(block, weights.size() - i)), 0);
  }
  return sum;
}

void apply_penalties(std::span<float> logits, const token_counts& seen, const sampling_params& p) {
  const auto repeated = [&](float l) { return l > 0 ? l / p.repetition_penalty : l * p.repetition_penalty; };
  for (const token_id id : seen.prompt()) at(logits, id) = repeated(at(logits, id));
  for (const auto& e : seen.output()) {
    float& l = at(logits, e.id);
    if (e.in_prompt == token_counts::not_in_prompt) l = repeated(l);
    l -= p.frequency_penalty * static_cast<float>(e.in_output) + p.presence_penalty;
  }
}

bool has_penalties(const sampling_params& p) {
  return p.repetition_penalty != 1 || p.frequency_penalty != 0 || p.presence_penalty != 0;
}

void apply_bias(std::span<float> logits, std::span<const std::pair<token_id, float>> bias) {
  for (const auto& [id, value] : bias) at(logits, id) += value;
}

void apply_mask(std::span<float> logits, std::span<const token_id> ids) {
  for (const token_id id : ids) at(logits, id) = minus_inf;
}

void keep_allowed(std::span<float> logits, std::span<const std::uint32_t> allowed) {
  constexpr float never = -std::numeric_limits<float>::infinity();
  const auto keep = [&](std::size_t first, std::size_t count) {
    const std::uint32_t word = allowed[first / 32];
    float* const l = logits.data() + first;
    for (std::size_t i = 0; i < count; ++i) l[i] = word >> i & 1 ? l[i] : never;  // without a branch
  };
  const std::size_t whole = logits.size() / 32 * 32;
  for (std::size_t first = 0; first < whole; first += 32)
    if (allowed[first / 32] != 0xFFFF'FFFF) keep(first, 32);
  if (whole < logits.size()) keep(whole, logits.size() - whole);
}

std::optional<candidate> largest(std::span<const float> logits) {
  const auto& loops = kernels::logits();
  const auto [top, sound] = loops.largest(logits.data(), logits.size());
  if (!sound || top == minus_inf) return std::nullopt;
  return candidate{top, static_cast<token_id>(loops.next(logits.data(), 0, logits.size(), top))};
}

void weigh(std::span<const float> logits, float top, float temperature, std::span<float> weights) {
  kernels::logits().weigh(logits.data(), logits.size(), top, temperature, weights.data());
}

void keep_top_k(std::span<const float> logits, std::uint32_t k, std::span<float> weights,
                std::vector<candidate>& room) {
  assert(k >= 1);
  if (k >= logits.size()) return;
  collect(logits, reached_by(logits, k), logits, room);
  std::nth_element(room.begin(), room.begin() + (k - 1), room.end(), better);
  keep_through(room[k - 1], logits, weights);
}

void list_best(std::span<const float> logits, std::uint32_t k, std::vector<candidate>& best) {
  assert(k >= 1);
  collect(logits, std::max(reached_by(logits, k), std::numeric_limits<float>::lowest()), logits, best);
  const auto end = best.begin() + static_cast<std::ptrdiff_t>(std::min<std::size_t>(k, best.size()));
  std::partial_sort(best.begin(), end, best.end(), better);
  best.erase(end, best.end());
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
  collect(weights, least, logits, room);
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
  kernels::logits().keep_from(min_p, weights.data(), weights.size());
}

void apply_cuts(std::span<const float> logits, const sampling_params& p, std::span<float> weights,
                std::vector<candidate>& room) {
  if (p.top_k > 0) keep_top_k(logits, p.top_k, weights, room);
  if (p.top_p < 1) keep_top_p(logits, p.top_p, weights, room);
  if (p.min_p > 0) keep_min_p(p.min_p, weights);
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
