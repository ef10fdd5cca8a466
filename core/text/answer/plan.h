// plan.h — what a reader has to know of a request: the model's format with its marks as tokens, the tools,
// and where the prompt ends.
//
// Thread safety: immutable once built; any thread.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/text/answer/format.h"
#include "core/text/answer/tools.h"
#include "core/text/tokenizer/tokenizer.h"
#include "core/token.h"

namespace weir::core {

struct known_mark {
  token_id id = 0;
  std::string spelling;
  bool hidden = false;  // a special token, which is not shown
};

// A model's format over its vocabulary.
//
// Spellings are compared as bytes, in which a mark that is one token has a form that no text has: the byte
// 0xFF and the number of the mark. So a mark is never taken for the same characters in ordinary tokens, nor
// the other way round.
class known_format {
 public:
  known_format(answer_format f, const tokenizer& t);

  const answer_format& format() const noexcept { return format_; }
  // The marks that are one token, by token.
  std::span<const known_mark> tokens() const noexcept { return tokens_; }
  // Number of the mark that this token is; -1: it is none. O(log marks).
  int mark_of(token_id id) const noexcept;
  // The longest mark with which this text begins; null: there is none.
  const known_mark* mark_beginning(std::string_view text) const noexcept;
  // A spelling of the format in the form in which it is compared, without white space at its ends.
  std::string compared(std::string_view spelling) const;
  // Appends mark number `mark` in that form.
  static void append_mark(std::string& out, int mark);

 private:
  answer_format format_;
  std::vector<known_mark> tokens_;
};

// The marks between messages inside an answer.
std::span<const std::string_view> envelope_words(envelope e);

struct answer_plan {
  std::shared_ptr<const known_format> format;  // never null
  std::vector<tool_definition> tools;          // whose calls are read; empty: calls are text
  bool separate_reasoning = false;             // reasoning is a part; else it is text, marks and all
  bool begins_in_reasoning = false;            // the prompt ends inside reasoning
  // The answer is constrained to calls, so that an object without marks is a call at once.
  bool calls_only = false;
};

}  // namespace weir::core
