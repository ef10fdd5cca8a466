// local_automaton.h — the part of a terminal's automaton that one walk over a vocabulary reaches. It is small
// enough to stay in the processor's nearest cache.
//
// Thread safety: none; one walk each.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <vector>

#include "core/grammar/id_table.h"
#include "core/grammar/masks/id_tree.h"
#include "core/grammar/regex/regex_pool.h"

namespace weir::core::grammar {

class local_automaton {
 public:
  using state = std::uint32_t;
  static constexpr state dead = 0;

  local_automaton(regex_pool& pool, regex_id start) : pool_(pool) {
    static constexpr std::array<std::uint8_t, 256> one_class{};
    states_.push_back({one_class.data(), 0, regex_pool::nothing, false});
    next_.push_back(dead);
    start_ = state_of(start);
  }

  state start() const { return start_; }
  state step(state s, unsigned char b) {
    const auto& x = states_[s];
    const auto to = next_[x.row + x.of[b]];
    return to != unknown ? to : slow_step(s, b);
  }
  bool nullable(state s) const { return states_[s].nullable; }
  bool over(state s) const { return states_[s].term == regex_pool::empty; }  // nothing can follow inside
  // Whether it is known that the terminal can go on, and may not end, after every beginning of every string
  // below the node.
  bool stays(state s, const id_tree& tree, std::uint32_t node) {
    if (states_[s].asked < 2 && ++states_[s].asked == 2) find_loop(s);  // most states are reached once
    const auto& x = states_[s];
    return x.loop_kinds != 0 && tree.all_below(node, x.loop_kinds, x.loop_length);
  }

 private:
  static constexpr state unknown = 0xFFFF'FFFF;
  static constexpr std::size_t most_closed = 16, most_looked_at = 128;
  struct known {
    const std::uint8_t* of = nullptr;  // class of a byte
    std::uint32_t row = 0;             // in next_
    regex_id term = regex_pool::nothing;
    bool nullable = false;
    std::uint8_t asked = 0;     // calls of stays(), at most 2
    byte_kinds loop_kinds = 0;  // strings of these kinds, up to loop_length bytes, stay
    std::uint32_t loop_length = 0;
  };

  state state_of(regex_id term) {
    if (term == regex_pool::nothing) return dead;
    const auto hash = mixed(0, term);
    const auto found = by_term_.find(hash, [&](state s) { return states_[s].term == term; });
    if (found != id_table::none) return found;
    const auto made = static_cast<state>(states_.size());
    by_term_.add(hash, made);
    const auto& classes = pool_.classes(term);
    states_.push_back(
        {classes.of.data(), static_cast<std::uint32_t>(next_.size()), term, pool_.nullable(term)});
    next_.resize(next_.size() + classes.representative.size(), unknown);
    return made;
  }

  state slow_step(state s, unsigned char b) {
    const auto to = state_of(pool_.transition(states_[s].term, b));
    const auto& x = states_[s];
    return next_[x.row + x.of[b]] = to;
  }

  void find_loop(state s) {
    if (states_[s].nullable) return;
    const auto loop = pool_.byte_loop(states_[s].term);
    if (loop.max == 0) return find_closed(s);
    states_[s].loop_kinds = kinds_within(loop.bytes);
    states_[s].loop_length = loop.max;
  }

  // Finds the printable bytes that lead from each of a few states to another of these states, as in the
  // automaton of a text that is searched for.
  void find_closed(state s) {
    std::vector<state> closed{s};
    byte_set bytes;
    for (unsigned b = 0x20; b < 0x7F; ++b) bytes.set(b);
    for (std::size_t i = 0; i < closed.size(); ++i) {
      if (closed.size() > most_closed || ++looked_at_ > most_looked_at) return;
      for (auto b = bytes._Find_first(); b < bytes.size(); b = bytes._Find_next(b)) {
        const auto to = step(closed[i], static_cast<unsigned char>(b));
        if (to == dead || states_[to].nullable)
          bytes.reset(b);
        else if (std::find(closed.begin(), closed.end(), to) == closed.end())
          closed.push_back(to);
      }
    }
    for (const auto c : closed) {
      if (states_[c].loop_length > 0) continue;
      states_[c].asked = 2;
      states_[c].loop_kinds = kinds_within(bytes);
      states_[c].loop_length = unbounded;
    }
  }

  regex_pool& pool_;
  std::vector<known> states_;  // the first is dead
  std::vector<state> next_;    // rows of states, one entry for each class of bytes
  id_table by_term_;
  state start_ = dead;
  std::size_t looked_at_ = 0;  // by find_closed()
};

}  // namespace weir::core::grammar
