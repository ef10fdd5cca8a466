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
// A cut that few requests ask for is in core/sample/cuts.h instead, its member in rare_numbers, and its step
// in kernels/cuda/draws/rare_cuts.h. A field with a step of its own, beside those groups, has a place in
// core/sample/pipeline.h and .cpp, too; what it makes of a sequence's tokens goes to a device as a list
// (core/model/device_draws.cpp). Two things beside that: if net/protocol/planned.h has a row for the name,
// the row is deleted; and programs that embed weir have the field once <weir/engine.hpp> declares it.
//
// Thread safety: plain data and pure functions; any thread.
#pragma once

#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "core/shared_list.h"
#include "core/token.h"
#include "core/token_set.h"

namespace weir::core {

struct dry_breakers;  // core/sample/dry.h

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

  // What few requests ask for, behind what every draw reads.
  std::int32_t repetition_range = -1;  // how many latest tokens penalties look at; -1 = all
  std::uint32_t repetition_decay = 0;  // over how many more tokens they fall to nothing
  float top_n_sigma = 0.0f;            // 0 = off
  float top_a = 0.0f;
  float typical_p = 1.0f;
  float tfs = 1.0f;
  float xtc_probability = 0.0f;
  float xtc_threshold = 0.1f;
  float dynatemp_range = 0.0f;
  float dynatemp_exponent = 1.0f;
  float smoothing_factor = 0.0f;
  float smoothing_curve = 1.0f;
  bool temperature_last = false;
  token_set disallow_tokens;               // never drawn
  token_set allowed_token_ids;             // empty: all may be drawn
  std::uint32_t no_repeat_ngram_size = 0;  // 0 = off
  // Words of several tokens, one after another: how many tokens a word has, then these. A word of one token
  // is in disallow_tokens.
  shared_list<token_id> bad_words;
  float dry_multiplier = 0.0f;  // 0 = off
  float dry_base = 1.75f;
  std::uint32_t dry_allowed_length = 2;
  std::uint32_t dry_range = 0;                                // 0 = all tokens
  std::shared_ptr<const dry_breakers> dry_sequence_breakers;  // null: none
  std::uint32_t mirostat_mode = 0;                            // 0 = off
  float mirostat_tau = 5.0f;
  float mirostat_eta = 0.1f;
};

// The same fields as a client sent them. The types are wide, so that an error can show a wrong value.
struct sampling_request {
  std::optional<double> temperature;
  std::optional<std::int64_t> top_k;
  std::optional<double> top_p, min_p;
  std::optional<double> repetition_penalty, frequency_penalty, presence_penalty;
  std::optional<std::uint64_t> seed;                        // unset: drawn at random
  std::vector<std::pair<std::int64_t, double>> logit_bias;  // token id, what is added to its logit
  std::optional<std::int64_t> repetition_range, repetition_decay;
  std::optional<double> top_n_sigma, top_a, typical_p, tfs, xtc_probability, xtc_threshold;
  std::optional<double> dynatemp_range, dynatemp_exponent, smoothing_factor, smoothing_curve;
  std::optional<bool> temperature_last;
  std::vector<std::int64_t> disallow_tokens, allowed_token_ids;
  std::optional<std::int64_t> no_repeat_ngram_size;
  std::vector<std::variant<std::string, std::vector<std::int64_t>>> bad_words;  // texts, or their tokens
  std::optional<double> dry_multiplier, dry_base;
  std::optional<std::int64_t> dry_allowed_length, dry_range;
  std::optional<std::vector<std::string>> dry_sequence_breakers;  // unset: "\n", ":", "\"", "*"
  std::optional<std::int64_t> mirostat_mode;
  std::optional<double> mirostat_tau, mirostat_eta;
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
  bool needs_items = false;          // of a list: a request cannot have it empty
};

// The fields that few requests ask for; see visit_sampling().
template <class V>
void visit_rare_sampling(V& v) {
  using sent = sampling_request;
  using used = sampling_params;
  v({.name = "repetition_range", .range = {-1, 1 << 30}}, &sent::repetition_range, &used::repetition_range);
  v({.name = "repetition_decay", .range = {0, 1 << 30}}, &sent::repetition_decay, &used::repetition_decay);
  v({.name = "disallow_tokens"}, &sent::disallow_tokens, &used::disallow_tokens);
  v({.name = "allowed_token_ids", .needs_items = true}, &sent::allowed_token_ids, &used::allowed_token_ids);
  v({.name = "top_n_sigma", .range = {-1, 100}}, &sent::top_n_sigma, &used::top_n_sigma);
  v({.name = "top_a", .range = {0, 1}}, &sent::top_a, &used::top_a);
  v({.name = "typical_p", .range = {0, 1}}, &sent::typical_p, &used::typical_p);
  v({.name = "tfs", .range = {0, 1}}, &sent::tfs, &used::tfs);
  v({.name = "xtc_probability", .range = {0, 1}}, &sent::xtc_probability, &used::xtc_probability);
  v({.name = "xtc_threshold", .range = {0, 1}}, &sent::xtc_threshold, &used::xtc_threshold);
  v({.name = "dynatemp_range", .range = {0, 2}}, &sent::dynatemp_range, &used::dynatemp_range);
  v({.name = "dynatemp_exponent", .range = {0.01, 10}}, &sent::dynatemp_exponent, &used::dynatemp_exponent);
  v({.name = "smoothing_factor", .range = {0, 10}}, &sent::smoothing_factor, &used::smoothing_factor);
  v({.name = "smoothing_curve", .range = {1, 10}}, &sent::smoothing_curve, &used::smoothing_curve);
  v({.name = "no_repeat_ngram_size", .range = {0, 1000}}, &sent::no_repeat_ngram_size,
    &used::no_repeat_ngram_size);
  v({.name = "bad_words"}, &sent::bad_words, &used::bad_words);
  v({.name = "dry_multiplier", .range = {0, 100}}, &sent::dry_multiplier, &used::dry_multiplier);
  v({.name = "dry_base", .range = {1, 100}}, &sent::dry_base, &used::dry_base);
  v({.name = "dry_allowed_length", .range = {1, 1 << 20}}, &sent::dry_allowed_length,
    &used::dry_allowed_length);
  v({.name = "dry_range", .range = {-1, 1 << 30}}, &sent::dry_range, &used::dry_range);
  v({.name = "dry_sequence_breakers"}, &sent::dry_sequence_breakers, &used::dry_sequence_breakers);
  v({.name = "mirostat_mode", .range = {0, 2}}, &sent::mirostat_mode, &used::mirostat_mode);
  v({.name = "mirostat_tau", .range = {0, 20}}, &sent::mirostat_tau, &used::mirostat_tau);
  v({.name = "mirostat_eta", .range = {0, 1}}, &sent::mirostat_eta, &used::mirostat_eta);
  v({.name = "temperature_last"}, &sent::temperature_last, &used::temperature_last);
}

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
  visit_rare_sampling(v);
}

}  // namespace weir::core
