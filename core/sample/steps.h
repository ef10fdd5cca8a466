// steps.h — the steps of sampling, one function each, with its definition.
//
// l_i are logits, p_i = exp(l_i) / sum_j exp(l_j) over the tokens that are still candidates. Sums are kept in
// double, always in the same order: the same logits give the same token on every run.
//
// The cuts (top_k, top_p, min_p) each keep the best so many tokens of one ranking: larger logit first, then
// lower id. What a cut keeps is therefore told by the last token that it keeps, its edge, and cuts combine by
// taking the tighter edge; nothing sorts a vocabulary.
//
// Sources: penalties as in OpenAI's API reference (frequency, presence) and in Keskar et al. 2019 as Hugging
// Face transformers has it (RepetitionPenaltyLogitsProcessor: a positive logit is divided, a negative one
// multiplied); top_p of Holtzman et al. 2020 (TopPLogitsWarper); min_p of Nguyen et al. 2024
// (MinPLogitsWarper). One difference: TopKLogitsWarper keeps every token that ties with the k-th, here
// exactly k stay.
#pragma once

#include <cstdint>
#include <limits>
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

// The ranking: true where a comes before b.
constexpr bool before(candidate a, candidate b) {
  return a.logit > b.logit || (a.logit == b.logit && a.id < b.id);
}

// The edge that keeps every token that is not masked.
inline constexpr candidate no_edge{std::numeric_limits<float>::lowest(),
                                   std::numeric_limits<token_id>::max()};

constexpr bool inside(candidate c, candidate edge) { return !before(edge, c); }

// l_i := l_i / r where l_i > 0, l_i * r where not, for every token of prompt and output (r =
// repetition_penalty); then l_i := l_i - frequency * (times in the output) - presence * (1 where it is in the
// output).
void apply_penalties(std::span<float> logits, std::span<const token_counts::entry> seen,
                     const sampling_params& p);

// l_i := l_i + bias_i.
void apply_bias(std::span<float> logits, std::span<const std::pair<token_id, float>> bias);

// l_i := -inf.
void apply_mask(std::span<float> logits, std::span<const token_id> ids);

// l_i := (l_i - l_top) / temperature: the shift changes no p_i, and keeps any temperature > 0 from
// overflowing.
void apply_temperature(std::span<float> logits, float temperature, float top);

// The first of the ranking: nothing where no logit is finite, or one is NaN or +inf.
std::optional<candidate> largest(std::span<const float> logits);

// Fills `out` with every token whose logit is above -inf, in order of ids.
void list_candidates(std::span<const float> logits, std::vector<candidate>& out);

// Keeps the k best. `c` is shortened to them, in no particular order. REQUIRES: k >= 1.
candidate keep_top_k(std::vector<candidate>& c, std::uint32_t k);

// Keeps the shortest beginning of the ranking whose p_i add up to at least top_p: the token that crosses is
// kept. Reorders `c`. REQUIRES: `top` is the best of c.
candidate keep_top_p(std::vector<candidate>& c, float top_p, candidate top);

// Keeps where p_i >= min_p * p_top. REQUIRES: 0 < min_p <= 1.
candidate keep_min_p(float min_p, candidate top);

// The token where the running sum of p_i over the kept ids, in their order, first exceeds u. `weights`
// [vocab] is room for the unnormalised p_i. REQUIRES: 0 <= u < 1, `top` is inside the edge.
token_id draw_token(std::span<const float> logits, candidate edge, candidate top, double u,
                    std::span<float> weights);

}  // namespace weir::core
