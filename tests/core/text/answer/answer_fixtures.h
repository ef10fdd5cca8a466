// answer_fixtures.h — an answer that is read token by token, and shown in one line.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "core/text/answer/plan.h"
#include "core/text/answer/reader.h"
#include "core/text/tokenizer/tokenizer.h"

namespace weir::tests {

// A vocabulary of the 256 bytes, and of marks with the ids from 256 on.
std::shared_ptr<const core::tokenizer> bytes_and_marks(std::vector<std::string> marks, bool special);

struct answer_setting {
  std::string format;  // name in core::call_formats(); empty: none
  core::reasoning_format reasoning = {"<think>\n", "\n</think>\n\n"};
  core::envelope messages = core::envelope::none;
  bool begins_in_reasoning = false, calls_only = false, separate = true;
  std::vector<core::tool_definition> tools;      // empty: look(place, count, deep) and tell(hour)
  std::shared_ptr<const core::tokenizer> words;  // null: bytes alone
};

std::shared_ptr<const core::answer_plan> plan_of(const answer_setting& s);

// The parts of an answer: text in quotes, (reasoning), name#id{arguments}; a call without an end is followed
// by "…".
std::string shown(const std::string& text, const core::answer_marks& marks);

// Reads pieces, each as one token that is no mark.
std::string read_pieces(const answer_setting& s, const std::vector<std::string_view>& pieces,
                        core::answer_marks* marks = nullptr);
std::string read_whole(const answer_setting& s, std::string_view answer, core::answer_marks* marks = nullptr);
// Reads the tokens of the answer in the vocabulary of the setting, where each mark is one token.
std::string read_tokens(const answer_setting& s, std::string_view answer);

}  // namespace weir::tests
