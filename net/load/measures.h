// measures.h — computes the measures of one stream from its record.
//
// A name that vLLM's `bench serve` has too means the same here. Every latency counts from the time for which
// the request was scheduled, not from the time when it was sent, so that it includes any delay of the
// harness. docs/load.md explains each measure. Times are in ms unless the type is micros; quantiles are
// nearest rank.
//
// Thread safety: pure functions; any thread.
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "net/load/record.h"

namespace weir::load {

// Constants of the definitions. They are not options, so that any two runs can be compared.
inline constexpr double stall_floor_ms = 200;  // a stall is a gap over max(this, stall_medians × median gap)
inline constexpr double stall_medians = 5;
// Two tokens that arrive less than this apart came together.
inline constexpr double together_ms = 2;
// Most that a token may be behind the stream's own mean rate and still be on schedule.
inline constexpr double schedule_slack_ms = 50;
inline constexpr double fluid_gap = 1.5;           // deadline of a token, in median gaps
// The reader of `qoe` expects the first token after this time, and then reads at this rate.
inline constexpr double reader_first_ms = 1000;
inline constexpr double reader_rate = 10;  // tokens a second

struct stream_measures {
  // Of a stream that was scheduled after the warm-up and has a frame.
  std::optional<double> ttft;                      // first frame − scheduled
  // Of a stream that was scheduled after the warm-up and completed.
  std::optional<double> e2el;                      // last frame − scheduled
  std::optional<double> tpot;                      // (e2el − ttft) / (output tokens − 1)
  // Of a stream with at least two frames.
  std::vector<double> gaps;                        // between frames: vLLM's itl
  std::optional<double> gap_cv;                    // standard deviation / mean of gaps
  std::optional<double> shown_gap_cv;              // gap_cv of the frames as play_out() shows them
  std::vector<double> shown_delays;                // of each frame: shown − arrival
  std::optional<double> gap_max, gap_p99_over_p50;
  double stall_threshold = 0;
  std::uint32_t stalls = 0;                        // gaps over the threshold
  std::optional<double> stall_ratio;  // time beyond the threshold / time from first to last frame
  // Counts of tokens.
  std::uint64_t tokens = 0;
  // In a frame with other tokens, or together with the frame before.
  std::uint64_t coalesced = 0;
  std::uint64_t on_schedule = 0;                   // at most 50 ms behind the stream's own mean rate
  std::uint64_t largest_burst = 1;                 // most tokens that came together
  std::optional<double> fluidity;                  // deadlines met / all deadlines (Etalon)
  std::optional<double> qoe;                       // Andes; see quality_of_experience()
  // Of frames that have the time at which the server sampled their tokens.
  std::vector<double> added_jitter;                // (arrival − sampled) − the least such difference
  std::uint32_t source_stalls = 0;  // stalls with a gap over the threshold between the sampling times too
};

// `from`: end of the warm-up. Frames before it count only for ttft, tpot and e2el.
stream_measures measure(const stream_record& r, micros from = 0);

// The formulas of single measures. `deadline`: in ms, for each token. `scheduled`: time of the request.
double quantile(std::vector<double> values, double q);
double coefficient_of_variation(std::span<const double> values);
double fluidity(std::span<const double> gaps, double deadline);
double quality_of_experience(std::span<const frame> frames, micros scheduled);

}  // namespace weir::load
