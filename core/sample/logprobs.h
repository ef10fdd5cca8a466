// logprobs.h — the logprobs of a drawn token and of the likeliest tokens, from the logits as the model
// computed them.
//
// kernels/logprobs.h defines them. A decoder on a device computes them there (kernels/decoder.h).
#pragma once

#include <cstdint>
#include <span>

#include "core/sample/pipeline.h"
#include "core/token.h"
#include "kernels/logprobs.h"

namespace weir::core {

using kernels::draw_logprobs;
using kernels::most_top_logprobs;
using kernels::scored_token;
using kernels::token_logprob;

// Logprobs of `drawn` and of the `top` likeliest tokens, within 2e-6 of the exact values for these logits
// (and their rounding to float). Does not allocate. REQUIRES: sampler::pick() drew `drawn` from `logits`; top
// <= most_top_logprobs; `scratch` as for pick().
void compute_logprobs(std::span<const float> logits, token_id drawn, std::uint32_t top,
                      sample_scratch& scratch, draw_logprobs& out);

// The same for a token that was given and not drawn: `given` may be any token. Returns false and writes
// nothing if no logit is finite, one is NaN or +inf, or there are none.
bool score_token(std::span<const float> logits, token_id given, std::uint32_t top, sample_scratch& scratch,
                 scored_token& out);

}  // namespace weir::core
