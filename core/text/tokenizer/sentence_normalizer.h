// sentence_normalizer.h — how SentencePiece changes a text before it is cut: replacements of a table, spaces
// that are dropped, a space in front, and U+2581 for each space.
//
// Thread safety: immutable once built; any thread.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "core/text/tokenizer/charsmap.h"
#include "core/text/tokenizer/piece_trie.h"
#include "core/turn.h"

namespace weir::core {

struct sentence_rules {
  std::optional<charsmap> replacements;
  piece_trie user_defined;              // stay as they are
  bool leading_space = true;            // a space in front of a text
  bool at_the_start_alone = false;      // not in front of a text that goes on behind an added token
  bool removes_extra_spaces = true;     // at both ends, and all but one in the middle
};

// How many times as long as a text its normal form may be.
double growth_of(const sentence_rules& rules) noexcept;

// `opens`: `text` is the start of what is being encoded. `at`: turn.h; this throws nobody_waits. REQUIRES:
// `text` is valid UTF-8.
std::string normalize(std::string_view text, bool opens, const sentence_rules& rules, turn* at = nullptr);

}  // namespace weir::core
