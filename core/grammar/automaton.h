// automaton.h — languages that are cheaper as automata than as terms: many texts, the multiples of a number,
// lists without doubles. Each state of an automaton is a term of regex_pool.h. The pool makes the term when a
// text first reaches the state.
//
// Invariants:
// 1. From every state that next() returns, some text leads to an end: next() is nullopt exactly where no text
//    has this byte next.
// 2. Two automata with equal keys are the same language, so that pools share what they know of it.
//
// Thread safety: immutable; any thread.
#pragma once

#include <array>
#include <bitset>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace weir::core::grammar {

class automaton {
 public:
  using state = std::array<std::uint32_t, 8>;  // only the automaton knows its meaning

  virtual ~automaton() = default;

  virtual std::string_view key() const = 0;
  virtual std::size_t bytes() const = 0;  // roughly what the automaton holds
  virtual bool finite() const = 0;        // the language has finitely many texts

  virtual std::optional<state> next(const state&, unsigned char b) const = 0;
  virtual bool may_end(const state&) const = 0;
  // The bytes that next() takes, in disjoint sets: next() treats all bytes of a set alike.
  virtual std::vector<std::bitset<256>> firsts(const state&) const = 0;
  // For lists: the state of the next item, behind the separator (regex_pool::language()). nullopt: none.
  virtual std::optional<state> next_item(const state&) const { return std::nullopt; }
  // The texts that lead from a state to an end, if they are few. Empty: they are many, or not known.
  virtual std::vector<std::string> few(const state&) const { return {}; }

  // A state that allows the same next `horizon` bytes as `s`; it may forget what only later bytes depend on.
  virtual state within(const state& s, std::uint32_t horizon) const {
    static_cast<void>(horizon);
    return s;
  }
  virtual bool counted(const state&) const { return false; }  // within() may change it
};

}  // namespace weir::core::grammar
