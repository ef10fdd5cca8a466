// healing.h — token healing: the last token of a prompt is taken away, and the first token of the answer
// begins with its bytes.
//
// A prompt that ends inside a word, or with a space, is cut into tokens that the model has rarely seen there.
// With healing the model chooses how the word is cut. The text of the answer begins behind the prompt as it
// was sent: the bytes of the token that was taken away are not part of it.
//
// Source: the idea is Lundberg's, «The Art of Prompt Design: Prompt Boundaries and Token Healing», 2023.
//
// Thread safety: immutable; any thread.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "core/token.h"

namespace weir::core {

class tokenizer;  // core/text/tokenizer/tokenizer.h

struct healing {
  token_id token = 0;                  // that was taken away
  std::string bytes;                   // of this token; never empty
  std::vector<std::uint32_t> allowed;  // the tokens that begin with them, as draw::allowed has them
};

// How a prompt is healed whose last token is `last`. Null: it is not, because the token has no text (it is
// special). Looks at each of the model's `vocab_size` tokens.
std::shared_ptr<const healing> healing_of(token_id last, const tokenizer& by, std::uint32_t vocab_size);

}  // namespace weir::core
