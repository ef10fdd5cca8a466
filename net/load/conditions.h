// conditions.h — what a run is held to: `--slo ttft=200ms,tpot=50ms` decides which requests were good,
// `--assert 'added_jitter_p99<5ms'` whether the run was.
//
// Pure functions: any thread. A name that no report has is an error here, before anything is sent.
#pragma once

#include <limits>
#include <string>
#include <string_view>
#include <vector>

#include "core/error.h"

namespace weir::load {

// Milliseconds; infinite: not asked for.
struct objectives {
  double ttft = std::numeric_limits<double>::infinity();
  double tpot = std::numeric_limits<double>::infinity();
  double e2el = std::numeric_limits<double>::infinity();
};

core::result<objectives> parse_slo(std::string_view text);

enum class comparison { less, at_most, more, at_least, equal };

struct condition {
  std::string text;       // as it was given
  std::string measure;    // a report's name: added_jitter_ms, coalesced_frac
  std::string statistic;  // p50 p90 p95 p99 p99.9 max min mean; empty: the measure is one number
  comparison is = comparison::less;
  double limit = 0;       // in the measure's own unit

  bool holds(double value) const noexcept;
};

// NAME[_STATISTIC] OP VALUE[UNIT], OP one of < <= > >= ==, UNIT one of us ms s %. `_ms` may be left out of a
// name.
core::result<condition> parse_condition(std::string_view text);

}  // namespace weir::load
