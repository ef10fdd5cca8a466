#include "core/grammar/distinct_texts.h"

#include <algorithm>
#include <cassert>

namespace weir::core::grammar {

// A state as numbers: a place inside a text of the list.
struct distinct_texts::place {
  text_list::range in;         // the texts that the current text may become
  std::uint64_t seen = 0;      // texts that the list has already, as bits
  std::uint32_t min = 1, max;  // how many texts still come, with this one

  static place of(const state& s) {
    return {{s[0], s[1], s[2]}, std::uint64_t{s[4]} << 32 | s[3], s[5], s[6]};
  }
  distinct_texts::state state() const {
    return {
        in.first, in.last, in.depth, static_cast<std::uint32_t>(seen), static_cast<std::uint32_t>(seen >> 32),
        min,      max};
  }
  bool was_seen(std::uint32_t text) const { return (seen >> text & 1) != 0; }
  bool all_seen() const {
    for (auto i = in.first; i < in.last; ++i)
      if (!was_seen(i)) return false;
    return true;
  }
};

distinct_texts::distinct_texts(std::vector<std::string> texts) : texts_(std::move(texts)) {
  assert(texts_.size() <= most_texts);
  key_ = "distinct ";
  key_ += texts_.key();
}

automaton::state distinct_texts::start(std::uint32_t min, std::uint32_t max) const {
  assert(1 <= min && min <= max && min <= texts_.size());
  return place{texts_.whole(), 0, min, std::min(max, texts_.size())}.state();
}

// `max` is at most the number of texts. So wherever another text may come, some text is left that was not
// seen, and a list in any order can reach `min`.
std::optional<automaton::state> distinct_texts::next(const state& s, unsigned char b) const {
  place p = place::of(s);
  p.in = texts_.narrowed(p.in, b);
  if (p.all_seen()) return std::nullopt;
  return p.state();
}

bool distinct_texts::may_end(const state& s) const {
  const place p = place::of(s);
  return p.min <= 1 && texts_.ends(p.in) && !p.was_seen(p.in.first);
}

std::vector<std::bitset<256>> distinct_texts::firsts(const state& s) const {
  auto out = texts_.firsts(place::of(s).in);
  std::erase_if(out, [&](const std::bitset<256>& set) {
    return !next(s, static_cast<unsigned char>(set._Find_first()));
  });
  return out;
}

std::optional<automaton::state> distinct_texts::next_item(const state& s) const {
  place p = place::of(s);
  if (p.max <= 1 || !texts_.ends(p.in) || p.was_seen(p.in.first)) return std::nullopt;
  p.seen |= std::uint64_t{1} << p.in.first;
  p.in = texts_.whole();
  p.min -= p.min > 1 ? 1 : 0;
  --p.max;
  return p.state();
}

}  // namespace weir::core::grammar
