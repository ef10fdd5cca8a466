// report.h — the result of a run: figures, findings and conditions, as data, as text and as JSON.
//
// Thread safety: plain data and pure functions; any thread.
#pragma once

#include <boost/json/object.hpp>
#include <string>
#include <vector>

#include "net/load/conditions.h"
#include "net/load/pool.h"

namespace weir::load {

// Version of the JSON report, in its field `weir_load`. It changes when a field is removed or changes its
// meaning.
inline constexpr int report_version = 1;

struct judgement {
  condition asked;
  std::optional<double> value;  // nullopt: it was not measured
  bool holds = false;
};

struct report {
  pool all{{}};
  std::string url, protocol;
  boost::json::object options;   // of the run, for people
  bool sampled_times = false;    // the server said when it sampled tokens
  bool interrupted = false;
  std::vector<judgement> judged;

  // Why this harness, and not the server, limited the figures; empty: it did not.
  std::string bottleneck;

  // Checks conditions and adds the results to `judged`.
  void judge(const std::vector<condition>& conditions);
  // All conditions hold, and this harness was not the bottleneck.
  bool good() const;
};

// Why this harness was the bottleneck; empty if it was not. It was the bottleneck if the 99th percentile of
// sched_lag_ms or loop_lag_ms is over 5 ms, or if it used over 90 % of its threads' processor time.
std::string bottleneck_of(const pool& p);

// Why the run measured nothing, which has an exit code of its own; empty if it measured something: a request
// completed or was cancelled, or tokens came without an error until this harness ended every stream.
std::string failure_of(const report& r);

std::string as_text(const report& r);
boost::json::object as_json(const report& r);

}  // namespace weir::load
