// pretokenizer.h — the `pre_tokenizer` of tokenizer.json: text cut into the words that merges stay inside of.
//
// Immutable once built: any thread.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "core/text/json_field.h"
#include "core/text/metaspace.h"
#include "core/text/regex.h"

namespace weir::core {

// A text and the words it is cut into: in order, none empty, not necessarily touching.
struct word_list {
  std::string text;
  std::vector<span_of_text> words;
};

class pretokenizer {
 public:
  // No field: the whole text is one word. Throws refusal.
  explicit pretokenizer(const std::optional<json_field>& field);

  // The words of valid `text`; `opens`: nothing was in front of it in what is being encoded.
  void cut(std::string_view text, bool opens, word_list& out) const;

  // What becomes of the stretches that a step looks for.
  enum class behavior { removed, isolated, merged_with_previous, merged_with_next, contiguous };

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
  void add(const json_field& field);
  void add_byte_level(const json_field& field);
  void add_metaspace(const json_field& field);

  std::vector<std::variant<split, by_class, leading_space, byte_level, metaspace>> steps_;
};

}  // namespace weir::core
