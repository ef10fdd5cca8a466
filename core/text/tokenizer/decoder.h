// decoder.h — the `decoder` of tokenizer.json: makes text of pieces.
//
// Steps that change each piece by itself are in read(), which the tokenizer calls once for each piece at
// load. Steps that change the text as a whole, which only remove characters at its start, are in finish().
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
#include "core/text/tokenizer/regex.h"

namespace weir::core {

class decoder {
 public:
  // Without `field`, pieces are joined with spaces. Throws refusal, also for what growth.h bounds.
  explicit decoder(const std::optional<json_field>& field);

  // The text of one piece inside a longer text.
  struct reading {
    std::string bytes;        // may begin or end inside a UTF-8 character
    bool byte_piece = false;  // the piece is spelled "<0x0A>" and stands for one byte; see byte_joiner.h
  };
  reading read(std::string_view piece) const;

  // Removes from the start of a complete text what the decoder removes there. `first_piece`: spelling of the
  // text's first piece.
  void finish(std::string& text, std::string_view first_piece) const;

  struct replace {
    pattern what;
    std::string by;
  };
  struct byte_fallback {};
  struct byte_level {};
  struct strip {
    std::string character;    // one UTF-8 character
    std::size_t start, stop;  // most copies of it that are removed at the start and at the end
  };

 private:
  void add(const json_field& field, text_growth& so_far);
  void add_strip(const json_field& field);

  std::vector<std::variant<replace, byte_fallback, byte_level, strip>> steps_;  // of read()
  bool fused_ = false;  // while loading: steps from here on apply to the whole text
  bool joins_with_spaces_ = false;
  std::string stripped_;        // one character that finish() removes
  std::size_t strip_most_ = 0;  // most copies of stripped_ that finish() removes
  std::string first_loses_;     // every occurrence in the first piece is removed by finish()
};

// Hugging Face's clean_up_tokenization_spaces: removes spaces before English punctuation and contractions.
std::string clean_up_spaces(std::string text);

}  // namespace weir::core
