// steps.h — the steps of sampling, one function each, with its definition.
//
// The first steps change logits l_i. Then each token gets a weight, w_i = exp((l_i - l_top) / temperature): 1
// for the best, and p_i = w_i / sum_j w_j. The cuts (top_k, top_p, min_p) set the weights of what they drop
// to 0, so that each cut's p_i are over what the cuts before it left. Sums are kept in double, always in the
// same order: the same logits give the same token on every run.
//
// «Better» is a larger logit, then a lower id. Nothing sorts a vocabulary: top_k and top_p keep the ranking
// up to one token, the edge, which is found by selection among few candidates.
//
// Sources: penalties as in OpenAI's API reference (frequency, presence) and in Keskar et al. 2019 as Hugging
// Face transformers has it (RepetitionPenaltyLogitsProcessor: a positive logit is divided, a negative one
// multiplied); top_p of Holtzman et al. 2020 (TopPLogitsWarper); min_p of Nguyen et al. 2024
// (MinPLogitsWarper). One difference: TopKLogitsWarper keeps every token that ties with the k-th, here
// exactly k stay.
//
// All logits and weights are [vocab]. Nothing allocates where `room` has the vocabulary's capacity.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "core/sample/params.h"
#include "core/sample/token_counts.h"

namespace weir::core {

struct candidate {
  float logit = 0;
  token_id id = 0;
};

constexpr bool better(candidate a, candidate b) {
  return a.logit > b.logit || (a.logit == b.logit && a.id < b.id);
}

// l_i := l_i / r where l_i > 0, l_i * r where not, for every token of prompt and output (r =
// repetition_penalty); then l_i := l_i - frequency * (times in the output) - presence * (1 where it is in the
// output).
void apply_penalties(std::span<float> logits, const token_counts& seen, const sampling_params& p);

// Whether apply_penalties() would change anything.
bool has_penalties(const sampling_params& p);

// l_i := l_i + bias_i.
void apply_bias(std::span<float> logits, std::span<const std::pair<token_id, float>> bias);

// l_i := -inf.
void apply_mask(std::span<float> logits, std::span<const token_id> ids);

// l_i := -inf for each token i that is not allowed: bit i % 32 of word i / 32 of `allowed` is 0. REQUIRES:
// `allowed` has a word for each 32 logits.
void keep_allowed(std::span<float> logits, std::span<const std::uint32_t> allowed);

// The best token; nullopt: no logit is finite, or one is NaN or +inf.
std::optional<candidate> largest(std::span<const float> logits);

// Whether a row of logits, as a model computed it, can be drawn from: there is a largest().
inline bool sound(std::span<const float> logits) { return largest(logits).has_value(); }

// w_i as above, within 1e-6 of it relatively; 0 below 1e-37. REQUIRES: no logit is above top; temperature >
// 0.
void weigh(std::span<const float> logits, float top, float temperature, std::span<float> weights);

// The sum of all weights, added block by block as in draw_token(), so that both sums are exactly equal.
double sum_of(std::span<const float> weights);

// Keeps the k best. REQUIRES: k >= 1.
void keep_top_k(std::span<const float> logits, std::uint32_t k, std::span<float> weights,
                std::vector<candidate>& room);

// Writes the k best tokens to `best`, the best first. Tokens whose logit is -inf are left out.
// REQUIRES: k >= 1.
void list_best(std::span<const float> logits, std::uint32_t k, std::vector<candidate>& best);

// Keeps the shortest beginning of the ranking whose p_i add up to at least top_p: the token that crosses is
// kept.
void keep_top_p(std::span<const float> logits, float top_p, std::span<float> weights,
                std::vector<candidate>& room);

// Keeps the tokens with p_i >= min_p * p_top.
void keep_min_p(float min_p, std::span<float> weights);

// The cuts of this file that `p` asks for: top_k, then top_p, then min_p. `weights` are as weigh() wrote
// them.
void apply_cuts(std::span<const float> logits, const sampling_params& p, std::span<float> weights,
                std::vector<candidate>& room);

// The token where the running sum of p_i, in order of ids, first exceeds u. REQUIRES: 0 <= u < 1, a weight is
// not 0.
token_id draw_token(std::span<const float> weights, double u);

}  // namespace weir::core
