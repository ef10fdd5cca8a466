// params.h — how one job wants its tokens chosen: every sampling field, once.
//
// A request carries what its client set (sampling_request). actors/make_job.h checks it and makes the
// sampling_params of the job, with the model's own defaults for what is not set. visit_sampling() says what
// each field is: requests, generation_config.json and the command line are read by that table.
//
// The code of a new field that is a number goes into at most five files:
//   core/sample/params.h          a member of each struct, and a row of visit_sampling()
//   core/sample/steps.cpp         what it does: apply_penalties() and has_penalties(), or apply_cuts()
//   core/model/device_draws.cpp   its copy into kernels::draw_numbers
//   kernels/decoder.h             a member of draw_numbers
//   kernels/cuda/draws/sample.cu  what it does on a device, and the new size of draw_order
// A field with a step of its own, beside those groups, has a place in core/sample/pipeline.h and .cpp, too.
// Two things beside that: if net/protocol/planned.h has a row for the name, the row is deleted; and programs
// that embed weir have the field once <weir/engine.hpp> declares it.
//
// Thread safety: plain data and pure functions; any thread.
#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <utility>
#include <vector>

#include "core/shared_list.h"
#include "core/token.h"

namespace weir::core {

// Checked values. The defaults are neutral: a field that nobody set changes nothing.
struct sampling_params {
  float temperature = 1.0f;  // 0 = greedy, ties to the lowest id
  std::uint32_t top_k = 0;   // 0 = off
  float top_p = 1.0f;
  float min_p = 0.0f;
  float repetition_penalty = 1.0f;  // prompt and output
  float frequency_penalty = 0.0f;   // output only
  float presence_penalty = 0.0f;    // output only
  std::uint64_t seed = 0;           // the key of Philox: same seed, same job, same tokens
  std::uint32_t choice = 0;         // index of a parallel choice of a request; each has its own numbers
  // Added after the penalties, each token once. The jobs of a request share the list.
  shared_list<std::pair<token_id, float>> logit_bias;
};

// The same fields as a client sent them. The types are wide, so that an error can show a wrong value.
struct sampling_request {
  std::optional<double> temperature;
  std::optional<std::int64_t> top_k;
  std::optional<double> top_p, min_p, repetition_penalty, frequency_penalty, presence_penalty;
  std::optional<std::uint64_t> seed;                        // unset: drawn at random
  std::vector<std::pair<std::int64_t, double>> logit_bias;  // token id, what is added to its logit
};

// The numbers from `low` to `high`. `low` itself is not one of them where `above_low` is set.
struct number_range {
  double low = -std::numeric_limits<double>::infinity(), high = std::numeric_limits<double>::infinity();
  bool above_low = false;

  bool holds(double v) const { return (above_low ? v > low : v >= low) && v <= high; }  // no NaN
};

// What a field is, beside its type and default.
struct sampling_field {
  const char* name;                  // in a request and in generation_config.json; --top-k is top_k
  number_range range;                // of a request's value, or of each value of a list
  std::optional<number_range> file;  // of generation_config.json's value; none: not read from there
  const char* option = "";           // what --help says of the command line's option; empty: no option
};

// Calls v(field, member of sampling_request, member of sampling_params) for each field. The first member's
// type says how a request's value is read.
template <class V>
void visit_sampling(V&& v) {
  using sent = sampling_request;
  using used = sampling_params;
  v({.name = "temperature",
     .range = {0, 2},
     .file = number_range{0, 2},
     .option = "0 = always the likeliest token; 0 to 2"},
    &sent::temperature, &used::temperature);
  v({.name = "top_k",
     .range = {-1, 1 << 30},
     .file = number_range{0, 1 << 24},  // the largest vocabulary that a config may have
     .option = "only the k likeliest tokens; 0 or -1 = off"},
    &sent::top_k, &used::top_k);
  v({.name = "top_p",
     .range = {0, 1},
     .file = number_range{0, 1, true},
     .option = "only the likeliest tokens that hold this share; [0, 1], 0 = the likeliest alone"},
    &sent::top_p, &used::top_p);
  v({.name = "min_p",
     .range = {0, 1},
     .file = number_range{0, 1},
     .option = "only tokens at least this likely beside the likeliest; [0, 1]"},
    &sent::min_p, &used::min_p);
  v({.name = "repetition_penalty",
     .range = {0.01, 2},
     .file = number_range{0, 2, true},
     .option = "(0, 2]; 1 = off"},
    &sent::repetition_penalty, &used::repetition_penalty);
  v({.name = "frequency_penalty", .range = {-2, 2}}, &sent::frequency_penalty, &used::frequency_penalty);
  v({.name = "presence_penalty", .range = {-2, 2}}, &sent::presence_penalty, &used::presence_penalty);
  v({.name = "seed", .option = "same seed, same tokens; random where it is missing"}, &sent::seed,
    &used::seed);
  v({.name = "logit_bias", .range = {-100, 100}}, &sent::logit_bias, &used::logit_bias);
}

}  // namespace weir::core
