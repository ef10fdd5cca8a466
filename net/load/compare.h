// compare.h — compares two servers: measures them in short windows, and computes the ratios of their figures
// with confidence intervals.
//
// The windows are in the order A B B A A B B A …, so that a drift affects both servers alike. The interval is
// a percentile bootstrap over pairs of windows: 4,000 times, as many pairs as were measured are drawn with
// replacement. The middle 95 % of the ratios of their medians are the interval.
//
// Thread safety: pure functions, except compare(); any thread.
#pragma once

#include <functional>
#include <vector>

#include "net/load/run.h"

namespace weir::load {

struct ratio {
  double a = 0, b = 0;                  // medians of the windows
  double value = 0, low = 0, high = 0;  // a / b, and its 95 % interval
};

// The ratio of pairs (a[i], b[i]); nullopt if there are fewer than two pairs or the median of b is zero.
std::optional<ratio> ratio_of(const std::vector<double>& a, const std::vector<double>& b,
                              std::uint64_t seed = 1);

struct compared {
  figure of;
  std::string statistic;
  std::optional<ratio> result;  // nullopt: not measured in every window, or see ratio_of()
};

struct comparison_report {
  std::string a, b;
  std::size_t pairs = 0;
  std::vector<compared> figures;
  std::string bottleneck;  // of the latest window that had one; empty: none had
  bool interrupted = false;
  std::string failure;  // failure_of() a server that failed in every window; empty: neither did
};

// Measures one window of the first or the second server.
using window = std::function<report(bool second)>;

// Measures `pairs` pairs of windows; fewer if `interrupted` returns true.
comparison_report compare(std::size_t pairs, const window& measure, const std::function<bool()>& interrupted);

std::string as_text(const comparison_report& r);
boost::json::object as_json(const comparison_report& r);

}  // namespace weir::load
