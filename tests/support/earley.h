// earley.h — a plain recogniser of rules: J. Earley's algorithm as he gave it, with sets of items a position.
//
// It shares nothing with the product's walk but the terminals' automata: no stacks, nothing interned, nothing
// remembered between texts. Slow, and easy to see through.
#pragma once

#include <algorithm>
#include <set>
#include <string_view>
#include <tuple>
#include <vector>

#include "core/grammar/rules.h"

namespace weir::tests {

class earley {
 public:
  explicit earley(core::grammar::rules& r) : rules_(r) {}

  // Whether the whole text follows the rules.
  bool accepts(std::string_view text) {
    chart_.assign(1, {});
    add(0, begin(rules_.root(), 0));
    close(0);
    for (const char c : text) {
      const auto at = chart_.size() - 1;
      chart_.emplace_back();
      for (const auto& i : chart_[at]) {
        if (rules_.at(i.part).what != kind::terminal) continue;
        const auto to = rules_.regex().transition(i.progress, static_cast<unsigned char>(c));
        if (to != core::grammar::regex_pool::nothing) add(at + 1, {i.part, to, i.origin});
      }
      close(at + 1);
    }
    const auto& last = chart_.back();
    return std::any_of(last.begin(), last.end(), [&](const item& i) {
      return i.part == rules_.root() && i.origin == 0 && complete(i);
    });
  }

 private:
  using kind = core::grammar::rules::kind;
  using part_id = core::grammar::part_id;
  struct item {
    part_id part;
    std::uint32_t progress;  // parts or repetitions that were read; a terminal's state
    std::size_t origin;
    friend auto operator<=>(const item&, const item&) = default;
  };

  item begin(part_id p, std::size_t at) const {
    const auto& x = rules_.at(p);
    return {p, x.what == kind::terminal ? x.ref : 0, at};
  }

  bool complete(const item& i) const {
    const auto& x = rules_.at(i.part);
    switch (x.what) {
      case kind::nothing:
      case kind::tokens:
        return false;
      case kind::empty:
        return true;
      case kind::terminal:
        return rules_.regex().nullable(i.progress);
      case kind::sequence:
        return i.progress == x.parts.size();
      case kind::repeat:
        return i.progress >= x.min;
      case kind::choice:
      case kind::call:
        return i.progress == 1;
    }
    return false;
  }

  // The parts that may come next in an item.
  std::vector<part_id> wanted(const item& i) const {
    const auto& x = rules_.at(i.part);
    if (x.what == kind::sequence && i.progress < x.parts.size()) return {x.parts[i.progress]};
    if (x.what == kind::repeat && i.progress < x.max) return {x.ref};
    if (x.what == kind::choice && i.progress == 0) return x.parts;
    if (x.what == kind::call && i.progress == 0) return {rules_.rule_at(x.ref).body};
    return {};
  }

  item advanced(item i) const {
    const auto& x = rules_.at(i.part);
    const bool endless = x.what == kind::repeat && x.max == core::grammar::unbounded;
    i.progress = endless ? std::min(i.progress + 1, x.min) : i.progress + 1;
    return i;
  }

  void add(std::size_t at, item i) { chart_[at].insert(i); }

  void close(std::size_t at) {
    for (std::size_t before = 0; before != chart_[at].size();) {
      before = chart_[at].size();
      for (const auto i : std::vector<item>(chart_[at].begin(), chart_[at].end())) {
        for (const auto p : wanted(i)) add(at, begin(p, at));
        if (!complete(i)) continue;
        for (const auto w : std::vector<item>(chart_[i.origin].begin(), chart_[i.origin].end())) {
          const auto parts = wanted(w);
          if (std::find(parts.begin(), parts.end(), i.part) != parts.end()) add(at, advanced(w));
        }
      }
    }
  }

  core::grammar::rules& rules_;
  std::vector<std::set<item>> chart_;
};

}  // namespace weir::tests
