// answer_parts.h — what the grammars of answers are made of: marks, spellings, and text without them.
//
// Only for core/grammar. Thread safety: none; one thread builds.
#pragma once

#include <initializer_list>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/grammar/rules.h"
#include "core/text/answer/plan.h"

namespace weir::core::grammar {

std::string_view without_white(std::string_view spelling);  // without white space at its ends

class answer_parts {
 public:
  // `words`: null: no mark is one token.
  answer_parts(rules& r, const answer_format& format, const tokenizer* words);

  // A spelling: marks as tokens, the rest as text.
  part_id spelled(std::string_view spelling);
  // The first mark of the spelling that is one token; nullopt: it has none.
  std::optional<token_id> token_in(std::string_view spelling) const;
  // Text in which none of the spellings stands. Where each has a token, the text is any tokens but those;
  // else the text is characters, and white space in a spelling stands for any. Empty spellings stand nowhere.
  using spellings = std::span<const std::string_view>;
  part_id text_without(spellings which);
  // Such text of at most `most` tokens. nullopt: tokens cannot be counted, because a spelling is no token,
  // and some tokens have several bytes.
  std::optional<part_id> text_without(spellings which, std::uint32_t most);
  // The characters of text_without(), whether the spellings are tokens or not.
  regex_id characters_without(spellings which);
  // White space between two parts of an answer: what the spelling has, or a little other.
  part_id white_like(std::string_view spelling);
  // The language of a regular expression that is part of this program.
  regex_id language(std::string_view expression);

  rules& out() { return rules_; }
  regex_pool& pool() { return rules_.regex(); }

 private:
  struct piece {
    std::optional<token_id> token;
    std::string text;
  };
  std::vector<piece> cut(std::string_view spelling) const;
  std::optional<std::vector<token_name>> tokens_of(spellings which) const;
  regex_id flexible(std::string_view spelling);

  rules& rules_;
  std::optional<known_format> known_;  // nullopt: no mark is one token
  bool single_bytes_ = false;  // each token that is text is one byte
};

}  // namespace weir::core::grammar
