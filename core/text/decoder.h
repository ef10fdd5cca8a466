// decoder.h — the `decoder` of tokenizer.json: what a piece reads as inside a running text.
//
// Immutable once built: any thread. Everything a decoder does to a piece alone happens once, at load; what it
// does to the text as a whole (taking spaces off its start) is left to finish().
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "core/text/json_field.h"
#include "core/text/regex.h"

namespace weir::core {

class decoder {
 public:
  // No field: pieces are joined with spaces. Throws refusal.
  explicit decoder(const std::optional<json_field>& field);

  struct reading {
    std::string bytes;        // not always whole UTF-8
    bool byte_piece = false;  // one byte of a run: see byte_joiner.h
  };
  reading read(std::string_view piece) const;

  // What the text's start loses. `first_piece` is the spelling of the piece that it begins with.
  void finish(std::string& text, std::string_view first_piece) const;

  struct replace {
    pattern what;
    std::string by;
  };
  struct byte_fallback {};
  struct byte_level {};
  struct strip {
    std::string character;
    std::size_t start, stop;
  };

 private:
  void add(const json_field& field);
  void add_strip(const json_field& field);

  std::vector<std::variant<replace, byte_fallback, byte_level, strip>> steps_;  // each on a piece alone
  bool fused_ = false;  // later steps see the whole text
  bool joins_with_spaces_ = false;
  std::string stripped_;  // a character that the text's start loses up to strip_most_ times
  std::size_t strip_most_ = 0;
  std::string first_loses_;  // what the first piece loses wherever it stands in it
};

// Hugging Face's clean_up_tokenization_spaces: no space before English punctuation and contractions.
std::string clean_up_spaces(std::string text);

}  // namespace weir::core
