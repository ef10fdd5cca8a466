// text_list.h — many texts, sorted, with a search for those that go on with a given byte; and an automaton
// for one of the texts. distinct_texts.h has an automaton for lists of them.
//
// Thread safety: immutable; any thread.
#pragma once

#include <bitset>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "core/grammar/automaton.h"

namespace weir::core::grammar {

class text_list {
 public:
  // Texts that share their first `depth` bytes: those from `first` to before `last`.
  struct range {
    std::uint32_t first = 0, last = 0, depth = 0;
    bool empty() const { return first == last; }
    std::uint32_t size() const { return last - first; }
  };

  // REQUIRES: together less than 4 GiB.
  explicit text_list(std::vector<std::string> texts);  // sorts them; each counts once

  std::uint32_t size() const { return static_cast<std::uint32_t>(ends_.size()); }
  std::string_view text(std::uint32_t i) const {
    const std::uint32_t begin = i == 0 ? 0 : ends_[i - 1];
    return std::string_view(all_).substr(begin, ends_[i] - begin);
  }
  range whole() const { return {0, size(), 0}; }
  // The texts of the range whose next byte is `b`.
  range narrowed(const range&, unsigned char b) const;
  // Whether the first text of the range, and only that, ends where the range's shared bytes end.
  bool ends(const range& r) const { return !r.empty() && text(r.first).size() == r.depth; }
  std::vector<std::bitset<256>> firsts(const range&) const;

  std::string_view key() const { return key_; }
  std::size_t bytes() const { return all_.size() + key_.size() + 4 * ends_.size(); }

 private:
  std::string all_;                  // text behind text
  std::vector<std::uint32_t> ends_;  // [texts] end of each in all_
  std::string key_;                  // lengths and texts
};

// One of the texts.
class one_of_texts final : public automaton {
 public:
  // A state with at most this many texts, of this many bytes together, is a term of its texts: few().
  static constexpr std::uint32_t few_texts = 64;
  static constexpr std::size_t few_bytes = 4'096;

  explicit one_of_texts(std::vector<std::string> texts) : texts_(std::move(texts)) {}
  state start() const { return state_of(texts_.whole()); }

  std::string_view key() const override { return texts_.key(); }
  std::size_t bytes() const override { return texts_.bytes(); }
  bool finite() const override { return true; }
  std::optional<state> next(const state&, unsigned char b) const override;
  bool may_end(const state& s) const override { return texts_.ends(range_of(s)); }
  std::vector<std::bitset<256>> firsts(const state& s) const override { return texts_.firsts(range_of(s)); }
  std::vector<std::string> few(const state&) const override;

 private:
  static state state_of(const text_list::range& r) { return {r.first, r.last, r.depth}; }
  static text_list::range range_of(const state& s) { return {s[0], s[1], s[2]}; }

  text_list texts_;
};

}  // namespace weir::core::grammar
