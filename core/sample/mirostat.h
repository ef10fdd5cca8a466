// mirostat.h — a cut that steers how surprising the drawn tokens are.
//
// The surprise of a drawn token is -log2 of the probability with which it was drawn. mu says how much is
// kept. It begins as 2 * mirostat_tau, and after each drawn token mu := mu - mirostat_eta * (surprise -
// mirostat_tau).
//
// Mode 2 drops the tokens with -log2 p_i > mu.
// Mode 1 takes the probabilities for a Zipf distribution. Its exponent s is fitted to the 100 best tokens: s
// = sum_i t_i * b_i / sum_i t_i^2 with t_i = log((i + 2) / (i + 1)) and b_i = log(p_i / p_(i+1)), i from 0
// on. The k best tokens are kept, k = (e * 2^mu / (1 - n^-e))^(1 / s) rounded down, where e = s - 1 and n is
// the size of the vocabulary. Either keeps the best token.
//
// Source: Basu et al. 2021, «Mirostat», as llama.cpp has both modes: the surprise is that of the distribution
// behind the cut. One difference: there mirostat takes the place of the other cuts, here it follows them.
//
// mu is a sampler's state. It follows from the drawn tokens and their logits, so that the same seed, prompt
// and model give the same tokens again; from the tokens alone it cannot be rebuilt.
//
// Thread safety: pure functions; any thread.
#pragma once

#include <span>
#include <vector>

#include "core/sample/steps.h"

namespace weir::core {

// The mu of the first token.
double first_mu(const sampling_params& p);

// The mu that follows `mu` once a token of this surprise was drawn.
double next_mu(const sampling_params& p, double mu, double surprise);

// The cut of mirostat_mode. `logits` and `weights` [vocab] are as in core/sample/cuts.h. Cost: three passes.
// REQUIRES: mirostat_mode is 1 or 2; a weight is not 0.
void keep_mirostat(std::span<const float> logits, const sampling_params& p, double mu,
                   std::span<float> weights, std::vector<candidate>& room);

// The surprise of token `id`, drawn by `weights`. REQUIRES: its weight is not 0.
double surprise_of(token_id id, std::span<const float> weights);

}  // namespace weir::core
