// measures.h — what a stream's frames say about it: the definitions, each in one function.
//
// Names that vLLM's `bench serve` has mean what they mean there; every latency counts from the moment the
// request was scheduled, not from the moment it was sent, so that a client that falls behind cannot hide it.
// docs/load.md explains each for people.
//
// Pure functions: any thread. Times in ms unless the name says otherwise; quantiles are nearest rank.
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "net/load/record.h"

namespace weir::load {

// Fixed by definition, so that two runs can be compared.
inline constexpr double stall_floor_ms = 200;  // a stall is a gap over max(this, stall_medians × median gap)
inline constexpr double stall_medians = 5;
// a token this soon after the one before it came together with it
inline constexpr double together_ms = 2;
// how late against the stream's own mean rate is still on schedule
inline constexpr double schedule_slack_ms = 50;
inline constexpr double fluid_gap = 1.5;           // deadline of a token, in median gaps
inline constexpr double reader_first_ms =
    1000;  // the reader of `qoe`: waits this long, then reads at this rate
inline constexpr double reader_rate = 10;

struct stream_measures {
  // Of one that was answered from its start.
  std::optional<double> ttft;                      // first frame − scheduled
  // Of one that completed.
  std::optional<double> e2el;                      // last frame − scheduled
  std::optional<double> tpot;                      // (e2el − ttft) / (output tokens − 1)
  // Of one with two frames or more.
  std::vector<double> gaps;                        // between frames: vLLM's itl
  std::optional<double> gap_cv;                    // standard deviation / mean of gaps
  std::optional<double> gap_max, gap_p99_over_p50;
  double stall_threshold = 0;
  std::uint32_t stalls = 0;                        // gaps over the threshold
  std::optional<double> stall_ratio;  // time beyond the threshold / time from first to last frame
  // Of tokens.
  std::uint64_t tokens = 0;
  // in a frame with others, or together with the token before
  std::uint64_t coalesced = 0;
  std::uint64_t on_schedule = 0;                   // at most 50 ms behind the stream's own mean rate
  std::uint64_t largest_burst = 1;                 // most tokens that came together
  std::optional<double> fluidity;                  // met deadlines / all deadlines (Etalon)
  std::optional<double> qoe;                       // Andes: 1 − delay of what is read / time it takes to read
  // With the server's own times.
  std::vector<double> added_jitter;                // (arrival − sampled) − the least of the same
  std::uint32_t source_stalls = 0;  // of the stalls: the server sampled late, delivery added nothing
};

// Frames before `from` are left out of everything but ttft, tpot and e2el.
stream_measures measure(const stream_record& r, micros from = 0);

// The one formula each, for tests and for whoever wants them alone.
double quantile(std::vector<double> values, double q);
double coefficient_of_variation(std::span<const double> values);
double fluidity(std::span<const double> gaps, double deadline);
double quality_of_experience(std::span<const frame> frames, micros scheduled);

}  // namespace weir::load
