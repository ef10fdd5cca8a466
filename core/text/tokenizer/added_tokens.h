// added_tokens.h — the `added_tokens` of tokenizer.json: pieces that are cut out of a text before the rest of
// the text is divided into words.
//
// Thread safety: immutable once built; any thread.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/text/tokenizer/normalizer.h"
#include "core/text/tokenizer/regex.h"
#include "core/token.h"

namespace weir::core {

inline constexpr std::int64_t largest_added_id = (1 << 24) - 1;

struct added_token {
  std::string content;
  token_id id = 0;
  bool special = false;     // a control token: not shown in output, and not recognised in user text
  bool normalized = false;  // searched for in normalized text, with `content` normalized too
  bool lstrip = false, rstrip = false;  // the white space before (after) the token belongs to it
  bool single_word = false;             // matches only with no word character before or after it
};

// The fields of an added token except its id.
added_token parse_added_token(const json_field& field);

// A part of a text: an added token, or (no id) the text between added tokens.
struct text_segment {
  span_of_text at;
  std::optional<token_id> id;
};

// Whether one of `spans` has a byte in common with `at`. REQUIRES: `spans` are sorted and do not overlap.
bool overlaps_any(const std::vector<span_of_text>& spans, span_of_text at) noexcept;

// A set of strings, each with a value >= 0.
class trie {
 public:
  trie() : nodes_(1) {}
  // Adds a string, or replaces the value of one that was added before. An empty string is ignored.
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
  // Without `field` there are no added tokens. Throws refusal.
  added_tokens(const std::optional<json_field>& field, const normalizer& n);
  // `path`: names the list in errors.
  added_tokens(std::vector<added_token> tokens, const normalizer& n, const std::string& path);

  // The two searches: in the text before normalization, and in the normalized text.
  enum class stage { raw, normalized };

  // Cuts `text` into added tokens and the text between them. Of the tokens that begin at the same byte, the
  // longest is taken. A special token that overlaps one of the `plain` spans is not recognised. REQUIRES:
  // `text` is valid UTF-8; the spans are sorted and do not overlap.
  // `at`: turn.h; this throws nobody_waits.
  std::vector<text_segment> cut(stage s, std::string_view text, const std::vector<span_of_text>& plain,
                                turn* at = nullptr) const;

  bool has(stage s) const noexcept { return !(s == stage::raw ? raw_ : normalized_).empty(); }
  const std::vector<added_token>& all() const noexcept { return tokens_; }

 private:
  struct match {
    const added_token* token = nullptr;
    std::size_t size = 0;
  };
  void add(added_token t, const normalizer& n, const std::string& path);
  match longest_at(const trie& t, std::string_view text, std::size_t at,
                   const std::vector<span_of_text>& plain) const;

  std::vector<added_token> tokens_;
  trie raw_, normalized_;  // values are indices into tokens_
};

}  // namespace weir::core
