// subject.h — which texts are subjects of a bus (actors/bus.h): words of printable characters, joined by
// dots.
//
// Thread safety: pure functions; any thread.
#pragma once

#include <algorithm>
#include <cstddef>
#include <string_view>

namespace weir::net {

inline constexpr std::size_t most_subject_bytes = 256;

// A word of a subject has no white space, which would end the subject on the wire, and no `*` or `>`.
inline bool is_word(std::string_view word) {
  return !word.empty() && std::ranges::all_of(word, [](unsigned char c) {
    return c > ' ' && c != 0x7f && c != '*' && c != '>';
  });
}

namespace detail {

inline bool is_subject(std::string_view text, bool wild) {
  if (text.empty() || text.size() > most_subject_bytes) return false;
  for (;;) {
    const std::size_t dot = text.find('.');
    const std::string_view word = text.substr(0, dot);
    const bool last = dot == text.npos;
    if (!is_word(word) && !(wild && (word == "*" || (word == ">" && last)))) return false;
    if (last) return true;
    text.remove_prefix(dot + 1);
  }
}

}  // namespace detail

// What a message is published under.
inline bool is_subject(std::string_view text) { return detail::is_subject(text, false); }
// What a subscription asks for: a word may be `*`, and the last word `>`.
inline bool is_subject_pattern(std::string_view text) { return detail::is_subject(text, true); }

}  // namespace weir::net
