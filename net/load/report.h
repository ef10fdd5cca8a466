// report.h — what a run came to: its figures, what was found wrong, what it was held to; as text and as JSON.
// Plain data and pure functions: any thread.
#pragma once

#include <boost/json/object.hpp>
#include <string>
#include <vector>

#include "net/load/conditions.h"
#include "net/load/pool.h"

namespace weir::load {

// The number in a JSON report's `weir_load`: another one where a field's meaning changes or a field goes.
inline constexpr int report_version = 1;

struct judgement {
  condition asked;
  std::optional<double> value;  // nothing: it was not measured
  bool holds = false;
};

struct report {
  pool all{{}};
  std::string url, protocol;
  boost::json::object options;   // as they were, for the reader
  bool server_is_weir = false;   // it answered /v1/stats
  bool sampled_times = false;    // it said when it sampled
  bool interrupted = false;
  std::vector<judgement> judged;

  // This harness could not keep up: why, or empty.
  std::string bottleneck;

  void judge(const std::vector<condition>& conditions);
  // Every condition holds, and the figures are the server's.
  bool good() const;
};

// Whether this harness was the bottleneck: late by over 5 ms in one of a hundred, or out of processor.
std::string bottleneck_of(const pool& p);

std::string as_text(const report& r);
boost::json::object as_json(const report& r);

}  // namespace weir::load
