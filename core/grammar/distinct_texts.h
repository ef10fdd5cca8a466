// distinct_texts.h — an automaton for lists of texts in which no text occurs twice. A state includes the set
// of the texts that the list already has.
//
// Thread safety: immutable; any thread.
#pragma once

#include "core/grammar/text_list.h"

namespace weir::core::grammar {

class distinct_texts final : public automaton {
 public:
  static constexpr std::uint32_t most_texts = 64;

  // REQUIRES: at most `most_texts` different ones, none empty.
  explicit distinct_texts(std::vector<std::string> texts);
  // The state before a list of `min` to `max` texts. The separator is that of regex_pool::language().
  // REQUIRES: 1 <= min <= max, and min is at most the number of texts.
  state start(std::uint32_t min, std::uint32_t max) const;

  std::string_view key() const override { return key_; }
  std::size_t bytes() const override { return texts_.bytes() + key_.size(); }
  bool finite() const override { return true; }
  std::optional<state> next(const state&, unsigned char b) const override;
  bool may_end(const state&) const override;
  std::vector<std::bitset<256>> firsts(const state&) const override;
  std::optional<state> next_item(const state&) const override;

 private:
  struct place;

  text_list texts_;
  std::string key_;
};

}  // namespace weir::core::grammar
