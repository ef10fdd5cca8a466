// definition.h — sampling once more, in float64 and in the plainest way. The pipeline is compared with it.
//
// Written from the definitions alone; it shares no code with core/sample. Everything is sorted, nothing is
// clever. A cut sets the logits of what it drops to -inf.
#pragma once

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <numeric>
#include <vector>

#include "core/sample/dry.h"
#include "core/sample/params.h"

namespace weir::tests {

struct definition {
  using numbers = std::vector<double>;
  static constexpr double never = -std::numeric_limits<double>::infinity();

  core::sampling_params p;
  std::vector<core::token_id> prompt, output;
  std::vector<core::token_id> masked, forbidden;  // by min_tokens; by a constraint

  // The logits that the cuts see, before temperature.
  numbers reshaped(const std::vector<float>& raw) const {
    numbers l(raw.begin(), raw.end());
    struct shares {
      double latest = 0, in_output = 0, latest_output = 0;
    };
    std::map<core::token_id, shares> seen;
    const std::size_t all = prompt.size() + output.size();
    for (std::size_t i = 0; i < all; ++i) {
      const double s = share(all - 1 - i);
      shares& of = seen[i < prompt.size() ? prompt[i] : output[i - prompt.size()]];
      of.latest = s;
      if (i < prompt.size()) continue;
      of.in_output += s;
      of.latest_output = s;
    }
    for (const auto& [id, s] : seen) {
      double& x = l[static_cast<std::size_t>(id)];
      const double factor = 1 + (static_cast<double>(p.repetition_penalty) - 1) * s.latest;
      x = x > 0 ? x / factor : x * factor;
      x -= static_cast<double>(p.frequency_penalty) * s.in_output;
      x -= static_cast<double>(p.presence_penalty) * s.latest_output;
    }
    for (const auto& [id, b] : p.logit_bias) l[static_cast<std::size_t>(id)] += static_cast<double>(b);
    if (p.dry_multiplier > 0) repeat_no_more(l);
    for (const core::token_id id : late()) l[static_cast<std::size_t>(id)] = never;
    for (const auto* ids : {&forbidden, &masked})
      for (const auto id : *ids) l[static_cast<std::size_t>(id)] = never;
    for (std::size_t i = 0; i < l.size(); ++i) {
      const auto has = [&](const core::token_set& set) {
        return std::find(set.begin(), set.end(), static_cast<core::token_id>(i)) != set.end();
      };
      if (has(p.disallow_tokens) || (!p.allowed_token_ids.empty() && !has(p.allowed_token_ids))) l[i] = never;
    }
    return l;
  }

  // Each token's probability of being drawn. `coin`: XTC's; `mu`: mirostat's.
  numbers probabilities(const std::vector<float>& raw, double coin = 1, double mu = 0) const {
    numbers l = reshaped(raw);
    if (p.temperature == 0) {
      numbers one(l.size(), 0.0);
      one[ranked(l)[0]] = 1;
      return one;
    }
    if (p.top_n_sigma > 0) near_the_top(l);
    if (!p.temperature_last) temper(l);
    if (p.top_k > 0) keep(l, ranked(l), p.top_k);
    if (p.top_p < 1) {
      const auto q = softmax(l);
      keep(l, ranked(l), reaching(q, ranked(l), static_cast<double>(p.top_p)));
    }
    if (p.min_p > 0) likely(l, [&](double top) { return static_cast<double>(p.min_p) * top; });
    if (p.top_a > 0) likely(l, [&](double top) { return static_cast<double>(p.top_a) * top * top; });
    if (p.typical_p < 1) typical(l);
    if (p.tfs < 1) free_of_tail(l);
    if (p.mirostat_mode > 0) steered(l, mu);
    if (coin < static_cast<double>(p.xtc_probability)) without_choices(l);
    if (p.temperature_last) temper(l);
    return softmax(l);
  }

 private:
  std::vector<core::token_id> history() const {
    auto all = prompt;
    all.insert(all.end(), output.begin(), output.end());
    return all;
  }

  static bool same(const std::vector<core::token_id>& all, std::size_t a, std::size_t b, std::size_t n) {
    for (std::size_t i = 0; i < n; ++i)
      if (all[a + i] != all[b + i]) return false;
    return true;
  }

  // What no_repeat_ngram_size and bad_words forbid.
  std::vector<core::token_id> late() const {
    const auto all = history();
    std::vector<core::token_id> out;
    const std::size_t n = p.no_repeat_ngram_size;
    if (n > 0)
      for (std::size_t i = 0; i + n <= all.size(); ++i)
        if (same(all, i, all.size() - (n - 1), n - 1)) out.push_back(all[i + n - 1]);
    for (std::size_t at = 0; at < p.bad_words.size(); at += static_cast<std::size_t>(p.bad_words[at]) + 1) {
      const std::size_t before = static_cast<std::size_t>(p.bad_words[at]) - 1;
      bool there = before <= all.size();
      for (std::size_t i = 0; there && i < before; ++i)
        there = all[all.size() - before + i] == p.bad_words[at + 1 + i];
      if (there) out.push_back(p.bad_words[at + 1 + before]);
    }
    return out;
  }

  // DRY with breakers of one token.
  void repeat_no_more(numbers& l) const {
    auto all = history();
    if (p.dry_range > 0 && all.size() > p.dry_range)
      all.erase(all.begin(), all.end() - static_cast<std::ptrdiff_t>(p.dry_range));
    const auto breaks = [&](core::token_id id) {
      const auto& b = p.dry_sequence_breakers;
      return b && std::find(b->single.begin(), b->single.end(), id) != b->single.end();
    };
    std::map<core::token_id, std::size_t> longest;
    for (std::size_t next = 1; next < all.size(); ++next) {
      if (breaks(all[next])) continue;
      std::size_t n = 0;
      while (n < next && all[next - 1 - n] == all[all.size() - 1 - n] && !breaks(all[all.size() - 1 - n]))
        ++n;
      longest[all[next]] = std::max(longest[all[next]], n);
    }
    for (const auto& [id, n] : longest)
      if (n >= p.dry_allowed_length)
        l[static_cast<std::size_t>(id)] -= std::min(
            1e30,
            static_cast<double>(p.dry_multiplier) *
                std::pow(static_cast<double>(p.dry_base), static_cast<double>(n) - p.dry_allowed_length));
  }

  using order = std::vector<std::size_t>;

  double share(std::size_t behind) const {
    if (p.repetition_range < 0) return 1;
    const auto range = static_cast<std::size_t>(p.repetition_range);
    if (behind < range) return 1;
    if (behind >= range + p.repetition_decay) return 0;
    return 1 - static_cast<double>(behind - range) / p.repetition_decay;
  }

  // What is left, the best first.
  static order ranked(const numbers& l) {
    order out;
    for (std::size_t i = 0; i < l.size(); ++i)
      if (l[i] != never) out.push_back(i);
    std::stable_sort(out.begin(), out.end(), [&](auto a, auto b) { return l[a] > l[b]; });
    return out;
  }

  static void keep(numbers& l, const order& ranking, std::size_t kept) {
    for (std::size_t i = kept; i < ranking.size(); ++i) l[ranking[i]] = never;
  }

  // The length of the shortest beginning whose shares add up to `wanted`, at least 1.
  static std::size_t reaching(const numbers& q, const order& ranking, double wanted) {
    double mass = 0;
    std::size_t n = 0;
    do mass += q[ranking[n++]];
    while (n < ranking.size() && mass < wanted);
    return n;
  }

  template <class Bound>
  static void likely(numbers& l, Bound bound) {
    const auto q = softmax(l);
    const double least = bound(*std::max_element(q.begin(), q.end()));
    for (std::size_t i = 0; i < l.size(); ++i)
      if (q[i] < least) l[i] = never;
  }

  void near_the_top(numbers& l) const {
    const order left = ranked(l);
    const double n = static_cast<double>(left.size());
    double mean = 0, variance = 0;
    for (const auto i : left) mean += l[i] / n;
    for (const auto i : left) variance += (l[i] - mean) * (l[i] - mean) / n;
    const double least = l[left[0]] - static_cast<double>(p.top_n_sigma) * std::sqrt(variance);
    for (double& x : l)
      if (x < least) x = never;
  }

  void temper(numbers& l) const {
    const order left = ranked(l);
    const double top = l[left[0]];
    double t = static_cast<double>(p.temperature);
    const double r = static_cast<double>(p.dynatemp_range);
    if (r > 0 && left.size() > 1) {
      const double low = std::max(0.0, t - r), high = t + r;
      const double uncertain = entropy(softmax(l)) / std::log(static_cast<double>(left.size()));
      t = low + (high - low) * std::pow(uncertain, static_cast<double>(p.dynatemp_exponent));
    }
    const double f = static_cast<double>(p.smoothing_factor), c = static_cast<double>(p.smoothing_curve);
    for (const auto i : left) {
      const double d = (l[i] - top) / t;
      l[i] = f > 0 ? -f * (3 - c) / 2 * d * d + f * (c - 1) / 2 * d * d * d : d;
    }
  }

  static double entropy(const numbers& q) {
    double h = 0;
    for (const double x : q)
      if (x > 0) h -= x * std::log(x);
    return h;
  }

  void typical(numbers& l) const {
    const auto q = softmax(l);
    const double h = entropy(q);
    order left = ranked(l);
    std::sort(left.begin(), left.end());
    const auto surprise = [&](std::size_t i) { return std::abs(-std::log(q[i]) - h); };
    std::stable_sort(left.begin(), left.end(), [&](auto a, auto b) { return surprise(a) < surprise(b); });
    keep(l, left, reaching(q, left, static_cast<double>(p.typical_p)));
  }

  void free_of_tail(numbers& l) const {
    auto q = softmax(l);
    for (std::size_t i = 0; i < l.size(); ++i) {
      if (q[i] >= 1e-8) continue;
      q[i] = 0;
      l[i] = never;
    }
    const order left = ranked(l);
    numbers falling, bends;
    for (const auto i : left) falling.push_back(q[i]);
    falling.resize(q.size(), 0.0);
    for (std::size_t i = 0; i + 2 < falling.size(); ++i)
      bends.push_back(std::abs((falling[i] - falling[i + 1]) - (falling[i + 1] - falling[i + 2])));
    const double all = std::accumulate(bends.begin(), bends.end(), 0.0);
    if (all == 0) return;
    double sum = 0;
    std::size_t kept = 1;
    for (const double b : bends)
      if ((sum += b) <= static_cast<double>(p.tfs) * all) ++kept;
    keep(l, left, kept);
  }

  void steered(numbers& l, double mu) const {
    const double top = *std::max_element(l.begin(), l.end());
    for (double& x : l)
      if (std::exp(x - top) < 1e-37) x = never;  // as the weights are
    const auto q = softmax(l);
    const order left = ranked(l);
    if (left.size() < 2) return;
    std::size_t kept = 1;
    if (p.mirostat_mode == 2) {
      while (kept < left.size() && -std::log2(q[left[kept]]) <= mu) ++kept;
    } else {
      double products = 0, squares = 0;
      for (std::size_t i = 0; i + 1 < std::min<std::size_t>(left.size(), 100); ++i) {
        const double t = std::log(static_cast<double>(i + 2)) - std::log(static_cast<double>(i + 1));
        products += t * std::log(q[left[i]] / q[left[i + 1]]);
        squares += t * t;
      }
      const double s = products / squares, e = s - 1, n = static_cast<double>(l.size());
      const double k = std::pow(e * std::pow(2, mu) / (1 - std::pow(n, -e)), 1 / s);
      kept = k < 1 ? 1 : k > n ? l.size() : static_cast<std::size_t>(k);
    }
    keep(l, left, kept);
  }

  void without_choices(numbers& l) const {
    const auto q = softmax(l);
    order choices;
    for (const auto i : ranked(l))
      if (q[i] >= static_cast<double>(p.xtc_threshold)) choices.push_back(i);
    for (std::size_t i = 0; i + 1 < choices.size(); ++i) l[choices[i]] = never;
  }

  static numbers softmax(const numbers& l) {
    const double top = *std::max_element(l.begin(), l.end());
    numbers q(l.size());
    double total = 0;
    for (std::size_t i = 0; i < l.size(); ++i) total += q[i] = std::exp(l[i] - top);
    for (double& x : q) x /= total;
    return q;
  }
};

}  // namespace weir::tests
