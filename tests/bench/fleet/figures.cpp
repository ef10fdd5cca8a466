#include "tests/bench/fleet/figures.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

namespace weir::bench::fleet {

namespace {

void append(auto& to, const auto& from) { to.insert(to.end(), from.begin(), from.end()); }

}  // namespace

double figures::busy() const {
  return seconds > 0 && !busy_s.empty() ? std::accumulate(busy_s.begin(), busy_s.end(), 0.0) /
                                              (seconds * static_cast<double>(busy_s.size()))
                                        : 0;
}

void add(figures& to, const figures& cell) {
  to.requests += cell.requests;
  to.ended += cell.ended;
  to.refused += cell.refused;
  to.refused_by_worker += cell.refused_by_worker;
  to.prompt_tokens += cell.prompt_tokens;
  to.found += cell.found;
  to.promised += cell.promised;
  append(to.first_ms, cell.first_ms);
  append(to.gap_ms, cell.gap_ms);
  append(to.jobs, cell.jobs);
  append(to.busy_s, cell.busy_s);
  append(to.tokens, cell.tokens);
  to.seconds = cell.seconds;
}

double quantile(std::vector<float>& values, double share) {
  if (values.empty()) return 0;
  const auto at = static_cast<std::ptrdiff_t>(share * static_cast<double>(values.size() - 1));
  std::ranges::nth_element(values, values.begin() + at);
  return values[static_cast<std::size_t>(at)];
}

double busiest(const std::vector<double>& all) {
  const double sum = std::accumulate(all.begin(), all.end(), 0.0);
  return sum > 0 ? *std::ranges::max_element(all) * static_cast<double>(all.size()) / sum : 0;
}

boost::json::object json_of(figures& f) {
  return {{"requests", f.requests},
          {"ended", f.ended},
          {"refused", f.refused},
          {"refused_by_worker", f.refused_by_worker},
          {"prompt_tokens", f.prompt_tokens},
          {"found_tokens", f.found},
          {"promised_tokens", f.promised},
          {"first_p50_ms", quantile(f.first_ms, 0.5)},
          {"first_p90_ms", quantile(f.first_ms, 0.9)},
          {"first_p99_ms", quantile(f.first_ms, 0.99)},
          {"gap_p50_ms", quantile(f.gap_ms, 0.5)},
          {"gap_p99_ms", quantile(f.gap_ms, 0.99)},
          {"busy", f.busy()},
          {"busiest_tokens", busiest(f.tokens)},
          {"busiest_jobs", busiest(f.jobs)},
          {"busiest_time", busiest(f.busy_s)}};
}

std::string table_head() {
  return "| policy | found | first p50 | p99 | gap p50 | p99 | busy | busiest: jobs | tokens | refused |\n"
         "|---|---|---|---|---|---|---|---|---|---|\n";
}

std::string table_line(const std::string& policy, figures& f) {
  return fmt::format(
      "| {} | {:.1f} % | {:.0f} ms | {:.0f} ms | {:.1f} ms | {:.1f} ms | {:.0f} % | {:.2f} | {:.2f} | {} |\n",
      policy, f.prompt_tokens > 0 ? 100 * f.found / f.prompt_tokens : 0, quantile(f.first_ms, 0.5),
      quantile(f.first_ms, 0.99), quantile(f.gap_ms, 0.5), quantile(f.gap_ms, 0.99), 100 * f.busy(),
      busiest(f.jobs), busiest(f.tokens), f.refused);
}

}  // namespace weir::bench::fleet
