// regex_context.h — languages with a demand on what stands before and behind: how ^ $ \b \B are made regular.
//
// A `fragment` is the language of an expression, split by what the expression demands of the character before
// its match and of the one behind it. `^` is the empty text that demands the text's beginning; `\b` is the
// empty text between a word character and another one. Concatenation settles the demands of both sides.
//
// Thread safety: none; one thread builds.
#pragma once

#include <array>
#include <cstdint>
#include <optional>

#include "core/grammar/regex/code_points.h"
#include "core/grammar/regex/regex_pool.h"

namespace weir::core::grammar {

// What must stand on one side. `other`: the edge of the text, or a character that is not of a word.
enum class demand : std::uint8_t { any, edge, word, other };

struct fragment {
  // [before][behind]
  std::array<std::array<regex_id, 4>, 4> of{};  // all `nothing`

  regex_id& at(demand before, demand behind) {
    return of[static_cast<std::size_t>(before)][static_cast<std::size_t>(behind)];
  }
  regex_id at(demand before, demand behind) const {
    return of[static_cast<std::size_t>(before)][static_cast<std::size_t>(behind)];
  }
  static fragment plain(regex_id language) {
    fragment f;
    f.at(demand::any, demand::any) = language;
    return f;
  }
  bool is_plain() const;  // demands nothing
};

// Operations on fragments whose characters have one spelling.
class fragments {
 public:
  fragments(regex_pool& pool, spelling how);

  fragment either(const fragment&, const fragment&);
  fragment concat(const fragment&, const fragment&);
  // nullopt: a repetition with \b or \B inside that may occur more than `most_borders` times.
  static constexpr std::uint32_t most_borders = 16;
  std::optional<fragment> repeat(const fragment&, std::uint32_t min, std::uint32_t max);
  static fragment beginning();       // ^
  static fragment end();             // $
  static fragment word_border();     // \b
  static fragment no_word_border();  // \B

  // The texts that the fragment matches from beginning to end.
  regex_id whole(const fragment&);
  // The texts in which it matches somewhere; at_start: from the beginning of the text.
  regex_id search(const fragment&, bool at_start = false);

  regex_id any_text() const { return any_text_; }

 private:
  fragment repeat_between_edges(const fragment&, std::uint32_t min, std::uint32_t max);
  regex_id not_empty(regex_id);
  regex_id begins(regex_id, demand);  // the texts whose first character is as demanded
  regex_id ends(regex_id, demand);
  void make_borders();  // the members word_ and other_

  regex_pool& pool_;
  spelling how_;
  regex_id any_text_;
  regex_id word_ = regex_pool::nothing, other_ = regex_pool::nothing;  // one character; made when needed
};

}  // namespace weir::core::grammar
