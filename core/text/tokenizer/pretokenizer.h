// pretokenizer.h — the `pre_tokenizer` of tokenizer.json: cuts text into words. No token spans two words.
//
// Thread safety: immutable once built; any thread.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "core/text/json_field.h"
#include "core/text/tokenizer/growth.h"
#include "core/text/tokenizer/metaspace.h"
#include "core/text/tokenizer/regex.h"

namespace weir::core {

// A text and its words.
struct word_list {
  std::string text;
  std::vector<span_of_text> words;  // in order, not empty, without overlap; gaps between words are possible
};

class pretokenizer {
 public:
  // Without `field`, the whole text is one word. Throws refusal, also for what growth.h bounds.
  explicit pretokenizer(const std::optional<json_field>& field);

  // Writes the words of `text` to `out`, with the text as the steps changed it. `opens`: `text` is the start
  // of what is being encoded. `at`: turn.h; this throws nobody_waits. REQUIRES: `text` is valid UTF-8.
  void cut(std::string_view text, bool opens, word_list& out, turn* at = nullptr) const;

  // What a step does with each match: drops it, makes it a word, joins it to the text before or after it, or
  // makes one word of all matches in a row.
  enum class behavior { removed, isolated, merged_with_previous, merged_with_next, contiguous };

  // Steps. `invert`: what does not match counts as a match, and the other way round.
  struct split {
    pattern what;
    behavior how;
    bool invert;
  };
  struct by_class {
    bool (*matches)(char32_t) noexcept;
    behavior how;
  };
  struct leading_space {};
  struct byte_level {};
  struct metaspace {
    metaspace_rules rules;
  };

 private:
  void add(const json_field& field, text_growth& so_far);
  // The steps of a rule, and how many times as long they may make a text.
  double add_byte_level(const json_field& field);
  double add_metaspace(const json_field& field);

  std::vector<std::variant<split, by_class, leading_space, byte_level, metaspace>> steps_;
};

}  // namespace weir::core
