// logprobs.h — what one row of logits says of a drawn token and of the likeliest tokens.
//
// The logprob of a token is the natural logarithm of its probability: logit - log(sum of exp(logit) over the
// vocabulary). Probabilities are those of the row as the model computed it, before penalties, biases, masks,
// temperature and cuts.
#pragma once

#include <array>
#include <cstdint>
#include <span>

namespace weir::kernels {

inline constexpr std::uint32_t most_top_logprobs = 20;

struct token_logprob {
  std::int32_t id = -1;
  float logprob = 0;
};

// The logprobs of one draw. A device writes this struct in exactly this layout.
struct draw_logprobs {
  token_logprob drawn;
  std::uint32_t count = 0;  // of `likeliest`: as asked for, or fewer where fewer logits are finite
  std::array<token_logprob, most_top_logprobs> likeliest{};  // the best first; ties go to the lowest id

  std::span<const token_logprob> top() const { return std::span(likeliest).first(count); }
};

// The logprobs of one token of a prompt, which was given and not drawn.
struct scored_token : draw_logprobs {
  std::uint32_t rank = 0;  // among all tokens, the best being 1
};

}  // namespace weir::kernels
