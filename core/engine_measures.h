// engine_measures.h — distributions that an engine measures: for each job, and for each step.
//
// A request begins when it was read (job::created), and a token counts from when it was sampled, so no time
// includes delivery. `ttft`, `queue` and `prefill` are measured together, when the first token of a job is
// sampled: a job that ends before adds to none of the three.
//
// Thread safety: the owner's thread only. Copies are plain data.
#pragma once

#include "core/histogram.h"

namespace weir::core {

// The bounds of latencies are those of vLLM's metrics of the same names, where docs/metrics.md does not say
// otherwise.
inline constexpr auto first_token_bounds =
    bounds_in_s({0.001, 0.005, 0.01, 0.02, 0.04, 0.06, 0.08, 0.1, 0.25, 0.5, 0.75,
                 1,     2.5,   5,    7.5,  10,   20,   40,   80,  160,  640, 2560});
inline constexpr auto token_gap_bounds =
    bounds_in_s({0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.075, 0.1, 0.15, 0.2, 0.3,
                 0.4,   0.5,    0.75,  1,    2.5,   5,    7.5,   10,  20,   40,  80});
inline constexpr auto step_time_bounds =
    bounds_in_s({0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.075, 0.1, 0.25, 0.5, 1, 2.5, 5, 10});
inline constexpr auto step_tokens_bounds =
    bounds_of({1, 8, 16, 32, 64, 128, 256, 512, 1024, 2048, 4096, 8192, 16384});

struct engine_measures {
  histogram<first_token_bounds> ttft;     // from the request to the first token
  histogram<first_token_bounds> queue;    // from the request to the first batch
  histogram<first_token_bounds> prefill;  // from the first batch to the first token
  histogram<token_gap_bounds> gap;        // between two tokens of a job that follow one another
  histogram<step_time_bounds> step_time;  // step_report::took, of steps that computed rows
  // Tokens of prompts and answers that such a step computed: step_report::rows.
  histogram<step_tokens_bounds> step_tokens;

  // Adds the measures of another engine.
  engine_measures& operator+=(const engine_measures& o) noexcept {
    ttft += o.ttft;
    queue += o.queue;
    prefill += o.prefill;
    gap += o.gap;
    step_time += o.step_time;
    step_tokens += o.step_tokens;
    return *this;
  }
};

}  // namespace weir::core
