// forced_tokens.h — tokens that a text has to go on with, whatever a model would draw.
//
// Forced tokens depend on the constraint, the text and the tokenizer alone, never on other jobs
// (docs/architecture.md, P1).
//
// Thread safety: any thread, as constraint.h says.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/grammar/constraint.h"

namespace weir::core::grammar {

// Most bytes of the text before the forced bytes that the tokenizer encodes together with them.
inline constexpr std::size_t most_before = 64;

// The bytes with which every allowed text goes on from this parse, up to the first place where several bytes
// can follow, a token is named by its id, or the text may end. At most `most` bytes.
std::string forced_bytes(constraint&, parse_id, std::size_t most = 64);

// The tokens that the tokenizer makes of forced_bytes(). A token that the tokenizer would replace in some
// allowed text is left out, with all tokens behind it. `written`: the last tokens of the text; those of its
// last `most_before` bytes are enough. The result is empty where nothing is forced. It is also empty where
// the tokenizer makes other tokens than `written` of the text so far.
std::vector<token_id> canonical_tokens(constraint&, parse_id, std::span<const token_id> written);

// Whether a token may be forced at this parse. False: canonical_tokens() and single_token() give none,
// whatever was written before. The constraint remembers the answer.
bool may_force(constraint&, parse_id);

// The one token that may come. nullopt: several, or the text may end, or the constraint has failed.
std::optional<token_id> single_token(constraint&, parse_id);

}  // namespace weir::core::grammar
