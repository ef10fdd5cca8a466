// local_automaton.h — the part of a terminal's automaton that one walk over a vocabulary comes to, small
// enough to stay in the processor's nearest cache.
//
// Thread safety: none; one walk each.
#pragma once

#include <array>
#include <cstdint>
#include <unordered_map>
#include <vector>

#include "core/grammar/regex_pool.h"

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
  regex_id term(state s) const { return states_[s].term; }

 private:
  static constexpr state unknown = 0xFFFF'FFFF;
  struct known {
    const std::uint8_t* of = nullptr;  // class of a byte
    std::uint32_t row = 0;             // in next_
    regex_id term = regex_pool::nothing;
    bool nullable = false;
  };

  state state_of(regex_id term) {
    if (term == regex_pool::nothing) return dead;
    const auto [at, is_new] = by_term_.try_emplace(term, static_cast<state>(states_.size()));
    if (!is_new) return at->second;
    const auto& classes = pool_.classes(term);
    states_.push_back(
        {classes.of.data(), static_cast<std::uint32_t>(next_.size()), term, pool_.nullable(term)});
    next_.resize(next_.size() + classes.representative.size(), unknown);
    return at->second;
  }

  state slow_step(state s, unsigned char b) {
    const auto to = state_of(pool_.transition(states_[s].term, b));
    const auto& x = states_[s];
    return next_[x.row + x.of[b]] = to;
  }

  regex_pool& pool_;
  std::vector<known> states_;  // the first is dead
  std::vector<state> next_;    // rows of states, an entry a class
  std::unordered_map<regex_id, state> by_term_;
  state start_ = dead;
};

}  // namespace weir::core::grammar
