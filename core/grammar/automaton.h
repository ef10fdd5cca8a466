// automaton.h — languages that are cheaper as automata than as terms: many texts, the multiples of a number,
// lists without doubles. A state of one is a term of regex_pool.h, which makes states when a text comes to
// them.
//
// Invariants:
// 1. Every state that next() gives leads to an end: next() is nullopt exactly where no text goes on so.
// 2. Two automata with one key are the same, so that pools share what they know of them.
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
  using state = std::array<std::uint32_t, 8>;  // of the automaton's own meaning

  virtual ~automaton() = default;

  virtual std::string_view key() const = 0;
  virtual std::size_t bytes() const = 0;  // about what it holds
  virtual bool finite() const = 0;        // it takes finitely many texts

  virtual std::optional<state> next(const state&, unsigned char b) const = 0;
  virtual bool may_end(const state&) const = 0;
  // The bytes that next() takes, apart by what it makes of them.
  virtual std::vector<std::bitset<256>> firsts(const state&) const = 0;
  // Lists: the state that may also follow, behind the language that was named as separator.
  virtual std::optional<state> next_item(const state&) const { return std::nullopt; }
  // The texts of a state that has few. Empty: it has many, or they are not known.
  virtual std::vector<std::string> few(const state&) const { return {}; }

  // A state that allows the same next `horizon` bytes as `s`; it may forget what only later bytes depend on.
  virtual state within(const state& s, std::uint32_t horizon) const {
    static_cast<void>(horizon);
    return s;
  }
  virtual bool counted(const state&) const { return false; }  // within() may change it
};

}  // namespace weir::core::grammar
