// added_tokens.h — the `added_tokens` of tokenizer.json: pieces found in a text before anything else is done
// to it.
//
// Immutable once built: any thread.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/text/normalizer.h"
#include "core/text/regex.h"
#include "core/token_sink.h"

namespace weir::core {

struct added_token {
  std::string content;
  token_id id = 0;
  bool special = false;     // a control token: hidden in output, and never read from a user's words
  bool normalized = false;  // looked for after the normalizer, in its normalized spelling
  bool lstrip = false, rstrip = false;  // takes the white space before, behind it
  bool single_word = false;             // only where no word goes on at either side
};

// A part of a text: an added token, or (no id) text between two.
struct text_segment {
  span_of_text at;
  std::optional<token_id> id;
};

// Whether one of `spans` (in order, apart) has a byte in common with `at`.
bool overlaps_any(const std::vector<span_of_text>& spans, span_of_text at) noexcept;

// Strings to find, the longest at the leftmost place first.
class trie {
 public:
  trie() : nodes_(1) {}
  void add(std::string_view text, std::int32_t value);
  bool empty() const noexcept { return nodes_.size() == 1; }
  // Calls found(value, length) for each string that `text` starts with, shorter ones first.
  void walk(std::string_view text, const auto& found) const {
    std::int32_t at = 0;
    for (std::size_t i = 0; i < text.size(); ++i) {
      at = child(at, text[i]);
      if (at < 0) return;
      if (nodes_[at].value >= 0) found(nodes_[at].value, i + 1);
    }
  }

 private:
  struct node {
    std::int32_t first_child = -1, sibling = -1, value = -1;
    char byte = 0;
  };
  std::int32_t child(std::int32_t of, char byte) const noexcept;
  std::vector<node> nodes_;  // the first is the root
};

class added_tokens {
 public:
  // Throws refusal.
  added_tokens(const std::optional<json_field>& field, const normalizer& n);

  // Which of the two searches: before the normalizer, or after it.
  enum class stage { raw, normalized };

  // Cuts valid `text`. Special tokens are found only where none of `plain` (in order, apart) overlaps them.
  std::vector<text_segment> cut(stage s, std::string_view text, const std::vector<span_of_text>& plain) const;

  bool has(stage s) const noexcept { return !(s == stage::raw ? raw_ : normalized_).empty(); }
  const std::vector<added_token>& all() const noexcept { return tokens_; }

 private:
  struct match {
    const added_token* token = nullptr;
    std::size_t size = 0;
  };
  match longest_at(const trie& t, std::string_view text, std::size_t at,
                   const std::vector<span_of_text>& plain) const;

  std::vector<added_token> tokens_;
  trie raw_, normalized_;  // values are places in tokens_
};

}  // namespace weir::core
