// conditions.h — the requirements that a run is checked against. `--slo ttft=200ms,tpot=50ms` decides which
// requests were good, and `--assert 'added_jitter_p99<5ms'` whether the run was.
//
// A name that no report has is an error when it is parsed, before anything is sent.
//
// Thread safety: pure functions; any thread. Error: invalid_param.
#pragma once

#include <limits>
#include <string>
#include <string_view>

#include "core/error.h"

namespace weir::load {

// Upper limits in milliseconds; infinite: no limit.
struct objectives {
  double ttft = std::numeric_limits<double>::infinity();
  double tpot = std::numeric_limits<double>::infinity();
  double e2el = std::numeric_limits<double>::infinity();
};

core::result<objectives> parse_slo(std::string_view text);

enum class comparison { less, at_most, more, at_least, equal };

struct condition {
  std::string text;       // as the user wrote it
  std::string measure;    // name of a figure: added_jitter_ms, coalesced_frac
  std::string statistic;  // p50 p90 p95 p99 p99.9 max min mean; empty: the figure's number
  comparison is = comparison::less;
  double limit = 0;       // in the measure's own unit

  bool holds(double value) const noexcept;
};

// Parses NAME[_STATISTIC] OP VALUE[UNIT]. OP is one of < <= > >= ==, UNIT one of us ms s %. The `_ms` of a
// name may be omitted.
core::result<condition> parse_condition(std::string_view text);

}  // namespace weir::load
