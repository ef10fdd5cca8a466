// forcing.h — which tokens of a text a constraint decides without asking the model. forced_tokens.h finds
// them.
//
// Thread safety: plain data and a pure function.
#pragma once

#include <cstdint>
#include <string_view>

#include "core/error.h"

namespace weir::core::grammar {

enum class forcing : std::uint8_t {
  // Where only one text can follow, its tokens are those that the tokenizer makes of this text. A model that
  // draws might spell the same text with other tokens.
  canonical,
  // A token that is the only one allowed is not drawn. The tokens are those that draws would give.
  single,
  // Every token is drawn.
  off
};

// "canonical", "single", "off". Errors: invalid_param, param "force".
result<forcing> parse_forcing(std::string_view name);

}  // namespace weir::core::grammar
