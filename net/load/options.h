// options.h — the command line of `weir load`, and the plan of a run that follows from it.
//
// Thread safety: any thread. resolve() reads the files that options name, and has no other effect.
#pragma once

#include <string>
#include <vector>

#include "net/load/run.h"

namespace weir::load {

struct typed_options {
  std::string url, vs, protocol, model, api_key, prompts, extra;
  std::size_t streams = 0, distinct = 0;
  double rate = 0;
  std::string arrivals = "poisson", trace;
  std::string prompt_tokens = "64", max_tokens = "128";
  double duration = 30, warmup = -1, ramp = 0, drain = 10, vs_window = 3;
  std::string slow_readers, disconnect, cancel;
  double read_rate = 0;
  bool resume = false;
  std::size_t follow = 0;
  std::string pace, on_lag;
  std::uint32_t window = 0;
  std::string slo;
  std::vector<std::string> conditions;
  std::string json, html;
  unsigned threads = 0;
  std::uint64_t seed = 1;
  double timeout = 60;
  bool insecure = false;
};

struct plan {
  run_options run;
  std::optional<run_options> vs;      // the same run with the other server of a comparison
  std::vector<condition> conditions;
  double window_s = 3;
};

// Checks the options and reads their files. Error: invalid_param, with the option in `param`.
core::result<plan> resolve(const typed_options& o);

}  // namespace weir::load
