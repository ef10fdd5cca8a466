// cuts.h — what few requests ask for between the logits and the draw, one function each, with its definition.
//
// The cuts are as in core/sample/steps.h: each sets the weights of what it drops to 0, and its p_i are over
// what the steps before it left. Each keeps at least one token.
//
// Sources:
//   top_n_sigma  Tang et al. 2024, «Top-nσ: not all logits are you need»; the deviation as in llama.cpp, over
//                the logits above -inf, divided by their number
//   dynamic temperature  llama.cpp (temp_ext)
//   smoothing    kalomaze's quadratic sampling with its curve; temperature comes before it, as in koboldcpp
//   top_a        BlinkDL, RWKV-LM
//   typical      Meister et al. 2022, «Locally typical sampling», as Hugging Face transformers has it
//                (TypicalLogitsWarper). One difference: there every token that ties with the last one is
//                kept, here ties go to the lowest id.
//   tfs          Bricken 2019, «Tail free sampling», centred on the cut as in the original. Two differences:
//                tokens with p_i < 1e-8 are dropped, as in exllamav2, and of equal derivatives all are kept.
//   mirostat     core/sample/mirostat.h
//   XTC          p-e-w, «Exclude top choices» (text-generation-webui), as llama.cpp has it: the ends of
//                answers and of lines are not spared
//
// All logits and weights are [vocab]. Nothing allocates where `room` has the vocabulary's capacity.
//
// Thread safety: pure functions; any thread.
#pragma once

#include <span>
#include <vector>

#include "core/sample/steps.h"

namespace weir::core {

// Whether `p` asks for a step of this file, or for mirostat.
bool has_rare_cuts(const sampling_params& p);

// What the steps of one draw depend on beside logits and parameters.
struct rare_state {
  double coin = 1;  // in [0, 1): XTC is done where it is below xtc_probability
  double mu = 0;    // mirostat's
};

// Writes the weights that all steps of `p` from top_n_sigma to XTC leave, in the order of
// core/sample/pipeline.h. Changes `logits`.
// REQUIRES: temperature > 0; there is a largest() logit.
void weigh_rarely(std::span<float> logits, const sampling_params& p, const rare_state& now,
                  std::span<float> weights, std::vector<candidate>& room);

// l_i := -inf where l_i < l_top - n * sigma; sigma is the standard deviation of the logits above -inf. Cost:
// four passes. REQUIRES: n > 0.
void keep_top_n_sigma(std::span<float> logits, float n);

// l_i := (l_i - l_top) / T; then, where smoothing_factor f > 0 and c is smoothing_curve,
// l_i := -f * (3 - c) / 2 * l_i^2 + f * (c - 1) / 2 * l_i^3.
//
// T is the temperature, or with a dynatemp_range r it lies between max(0, temperature - r) and temperature +
// r: T = low + (high - low) * (H / log n)^dynatemp_exponent, where H = -sum_i p_i * log p_i before any
// temperature, and n is the number of logits above -inf. A T of 0 leaves the best token. Cost: two passes,
// four with a range. `room_for_weights` is overwritten.
void temper(std::span<float> logits, const sampling_params& p, std::span<float> room_for_weights);

// Keeps the tokens with p_i >= top_a * p_top * p_top. Cost: two passes. REQUIRES: the best token's weight
// is 1.
void keep_top_a(float top_a, std::span<float> weights);

// Ranks the tokens by |-log p_i - H|, the smallest first, where H = -sum_i p_i * log p_i. Keeps the shortest
// beginning whose p_i add up to at least typical_p: the token that crosses is kept. Cost: three passes, and
// log(vocab) for each kept token. REQUIRES: typical_p > 0; the weights are exp(l_i + a constant).
void keep_typical(std::span<const float> logits, float typical_p, std::span<float> weights,
                  std::vector<candidate>& room);

// Takes the p_i of the whole vocabulary from the best on, p_i = 0 for what is dropped. d_i =
// |p_i - 2 * p_(i+1) + p_(i+2)|, and D_i is the share that d_0 to d_i have of the sum of all. Keeps one token
// more than there are D_i <= tfs. Cost: sorts what the cuts before it left.
void keep_tfs(std::span<const float> logits, float tfs, std::span<float> weights,
              std::vector<candidate>& room);

// Of the tokens with p_i >= threshold, drops all but the worst. Cost: two passes.
void drop_top_choices(std::span<const float> logits, float threshold, std::span<float> weights);

}  // namespace weir::core
