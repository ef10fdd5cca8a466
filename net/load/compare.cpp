#include "net/load/compare.h"

#include <boost/json/array.hpp>

namespace weir::load {
namespace {

constexpr int resamples = 4000;

double median(std::vector<double> v) {
  const auto middle = v.begin() + static_cast<std::ptrdiff_t>(v.size() / 2);
  std::nth_element(v.begin(), middle, v.end());
  if (v.size() % 2) return *middle;
  return (*middle + *std::max_element(v.begin(), middle)) / 2;
}

struct asked {
  figure of;
  const char* statistic;
};

constexpr asked compared_figures[] = {
    {figure::ttft_ms, "p50"},    {figure::ttft_ms, "p99"},        {figure::tpot_ms, "p50"},
    {figure::itl_ms, "p50"},     {figure::itl_ms, "p99"},         {figure::itl_ms, "max"},
    {figure::gap_max_ms, "p50"}, {figure::gap_cv, "p50"},         {figure::added_jitter_ms, "p99"},
    {figure::e2el_ms, "p50"},    {figure::output_throughput, ""},
};

}  // namespace

std::optional<ratio> ratio_of(const std::vector<double>& a, const std::vector<double>& b,
                              std::uint64_t seed) {
  const std::size_t n = std::min(a.size(), b.size());
  if (n < 2) return std::nullopt;
  ratio r;
  r.a = median({a.begin(), a.begin() + static_cast<std::ptrdiff_t>(n)});
  r.b = median({b.begin(), b.begin() + static_cast<std::ptrdiff_t>(n)});
  if (r.b <= 0) return std::nullopt;
  r.value = r.a / r.b;
  std::mt19937_64 random(seed);
  std::uniform_int_distribution<std::size_t> pick(0, n - 1);
  std::vector<double> drawn, from_a(n), from_b(n);
  for (int i = 0; i < resamples; ++i) {
    for (std::size_t k = 0; k < n; ++k) {
      const auto at = pick(random);
      from_a[k] = a[at];
      from_b[k] = b[at];
    }
    const double below = median(from_b);
    if (below > 0) drawn.push_back(median(from_a) / below);
  }
  r.low = quantile(drawn, 0.025);
  r.high = quantile(drawn, 0.975);
  return r;
}

comparison_report compare(std::size_t pairs, const window& measure,
                          const std::function<bool()>& interrupted) {
  comparison_report out;
  std::vector<std::vector<double>> a(std::size(compared_figures)), b(a);
  std::size_t failed_a = 0, failed_b = 0;
  const auto note = [&](const report& r, std::vector<std::vector<double>>& into) {
    const std::string failure = failure_of(r);
    if (!failure.empty() && ++(&into == &b ? failed_b : failed_a) == pairs) out.failure = failure;
    if (!r.bottleneck.empty()) out.bottleneck = r.bottleneck;
    (&into == &b ? out.b : out.a) = r.url;
    for (std::size_t f = 0; f < std::size(compared_figures); ++f)
      if (const auto v = r.all.value(entry(compared_figures[f].of).name, compared_figures[f].statistic))
        into[f].push_back(*v);
  };
  for (std::size_t i = 0; i < pairs && !out.interrupted; ++i) {
    const bool second_first = i % 2;
    const report one = measure(second_first);
    const report other = measure(!second_first);
    out.interrupted = one.interrupted || other.interrupted || interrupted();
    if (one.interrupted || other.interrupted) break;  // an incomplete pair is not used
    note(one, second_first ? b : a);
    note(other, second_first ? a : b);
    ++out.pairs;
  }
  for (std::size_t f = 0; f < std::size(compared_figures); ++f) {
    compared c;
    c.of = compared_figures[f].of;
    c.statistic = compared_figures[f].statistic;
    if (a[f].size() == out.pairs && b[f].size() == out.pairs) c.result = ratio_of(a[f], b[f]);
    out.figures.push_back(std::move(c));
  }
  return out;
}

std::string as_text(const comparison_report& r) {
  std::string out = fmt::format(
      "A {}\nB {}\n{} pairs of windows, alternating\n\n{:<22}{:>6}{:>12}{:>12}{:>10}   95 % interval\n", r.a,
      r.b, r.pairs, "", "", "A", "B", "A / B");
  for (const auto& c : r.figures) {
    out += fmt::format("{:<22}{:>6}", entry(c.of).name, c.statistic);
    if (!c.result) {
      out += "   not measured on both\n";
      continue;
    }
    const bool differs = c.result->low > 1 || c.result->high < 1;
    out +=
        fmt::format("{:>12.3f}{:>12.3f}{:>10.3f}   {:.3f} to {:.3f}{}\n", c.result->a, c.result->b,
                    c.result->value, c.result->low, c.result->high, differs ? "" : "   no difference seen");
  }
  if (r.interrupted) out += "interrupted: this is what was measured until then\n";
  if (!r.bottleneck.empty())
    out +=
        fmt::format("NOT A COMPARISON OF THE SERVERS: this harness was the bottleneck; {}\n", r.bottleneck);
  return out;
}

boost::json::object as_json(const comparison_report& r) {
  boost::json::array ratios;
  for (const auto& c : r.figures) {
    boost::json::object o{{"figure", boost::json::string(entry(c.of).name.data(), entry(c.of).name.size())},
                          {"statistic", c.statistic}};
    if (c.result) {
      o["a"] = c.result->a;
      o["b"] = c.result->b;
      o["ratio"] = c.result->value;
      o["low"] = c.result->low;
      o["high"] = c.result->high;
    }
    ratios.push_back(std::move(o));
  }
  return {{"weir_load", report_version},
          {"a", r.a},
          {"b", r.b},
          {"pairs", r.pairs},
          {"interrupted", r.interrupted},
          {"bottleneck", r.bottleneck},
          {"ratios", ratios}};
}

}  // namespace weir::load
