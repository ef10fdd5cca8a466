// compare.h — two servers side by side: short windows in the order A B B A A B B A …, so that whatever drifts
// meets both, and the ratio of their figures with an interval.
//
// The interval is a percentile bootstrap over pairs of windows: 4,000 times as many pairs are drawn with
// replacement, and the middle 95 % of the ratios of their medians are kept. Pure functions but for compare():
// any thread.
#pragma once

#include <functional>
#include <vector>

#include "net/load/run.h"

namespace weir::load {

struct ratio {
  double a = 0, b = 0;                     // medians of the windows
  double value = 0, low = 0, high = 0;     // a / b, and its 95 % interval
};

// Of pairs (a[i], b[i]). Nothing where there are fewer than two, or a median of b is zero.
std::optional<ratio> ratio_of(const std::vector<double>& a, const std::vector<double>& b,
                              std::uint64_t seed = 1);

struct compared {
  figure of;
  std::string statistic;
  std::optional<ratio> result;             // nothing: too few windows measured it
};

struct comparison_report {
  std::string a, b;
  std::size_t pairs = 0;
  std::vector<compared> figures;
  std::string bottleneck;                  // of some window
  bool interrupted = false;
};

// One window against the first or the second server.
using window = std::function<report(bool second)>;

comparison_report compare(std::size_t pairs, const window& measure, const std::function<bool()>& interrupted);

std::string as_text(const comparison_report& r);
boost::json::object as_json(const comparison_report& r);

}  // namespace weir::load
