// output_watch.h — watches the output of a job for what ends it: its stop strings, and repetition; and for
// what it must not have: its banned strings.
//
// A token is decided when no string can withhold it any more. Strings are found in the bytes of the output,
// across tokens: a token that may be part of one is withheld until it cannot be, or until the output ends.
// Stop strings are compared byte by byte; in banned strings the letters A to Z match large and small ones.
//
// Where a banned string may begin, the output may be taken back to. What is decided there must not depend on
// the tokens behind: with D(n) decided of the first n tokens, and s and b the tokens of these n in which what
// may become a stop string or a banned one begins (n: there is none), D(n) = min(s, D(b)), where D(b) is n if
// b = n.
//
// Thread safety: the owner's thread only. take() does not allocate.
//
// Invariants:
//   1. decided() never falls, and is at most the number of tokens that take() has seen.
//   2. Once a stop string matched, nothing more is decided.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "core/stop/repeats.h"
#include "core/stop/stop_matcher.h"
#include "core/stop/token_table.h"

namespace weir::core {

class output_watch {
 public:
  enum class verdict : std::uint8_t { goes_on, stop_string, repetition, banned_string };

  struct rules {
    stop_strings stops;
    stop_strings banned;            // without large letters A to Z
    std::uint32_t max_repeats = 0;  // repetitions in a row that end the job; 0: none does
    // Before the output has as many tokens nothing ends it, and stop strings do not begin.
    std::uint32_t min_tokens = 0;
    bool shows_stop = false;       // a stop string that ends the job is shown, to its last byte
    std::uint32_t max_output = 0;  // tokens that take() sees at most at a time; for banned strings
    // Bytes at the beginning of the first token that are no text of the answer (job::healed).
    std::uint32_t healed = 0;
  };

  explicit output_watch(rules r);

  // Takes the last token of `output`. Of a stop string and a banned one, the one that ends first counts.
  // Where both end at one byte, it is the stop string, unless that is shown. REQUIRES: take() has seen every
  // token before it, and always said goes_on.
  verdict take(std::span<const token> output, const token_table& text);

  // Leading tokens of the output that no string can withhold any more.
  std::uint32_t decided() const noexcept { return decided_; }

  // Nothing more is decided: a stop string matched, or end_before_banned() was called. The tokens that are
  // not decided are then never shown.
  bool cut_off() const noexcept { return cut_off_; }
  // Index of the stop string. REQUIRES: take() said stop_string.
  std::uint32_t which() const noexcept { return stops_.which(); }
  // Bytes of the output that may be shown, where the last decided token has more: the string begins inside
  // it, or ends there where it is shown. Unset: all of them. REQUIRES: cut_off().
  std::optional<std::uint64_t> shown_bytes() const noexcept { return shown_bytes_; }

  // --- REQUIRES: take() said banned_string ---

  // Index of the token of `output` in which the banned string begins.
  std::uint32_t banned_from(std::span<const token> output, const token_table& text) const {
    return token_of(output, banned_at_, text);
  }
  // Takes all tokens of `output` back but the first `kept`. Costs the tokens of the longest string, and those
  // that are taken back. REQUIRES: decided() <= kept < output.size().
  void go_back(std::span<const token> output, std::uint32_t kept, const token_table& text);
  // The job ends with what comes before the banned string.
  void end_before_banned(std::span<const token> output, const token_table& text) {
    cut(output, banned_at_, text);
  }

 private:
  // Bytes that token `i` adds to the text of the answer.
  std::string_view bytes_of(std::span<const token> output, std::size_t i, const token_table& text) const;
  // Index of the token of `output` that has byte `at`; output.size(): the output ends there.
  std::uint32_t token_of(std::span<const token> output, std::uint64_t at, const token_table& text) const;
  // Decides what can be decided of `output`.
  void decide(std::span<const token> output, const token_table& text);
  // The job ends, and `bytes` are shown: decides the tokens that begin before their end.
  void cut(std::span<const token> output, std::uint64_t bytes, const token_table& text);
  // Makes a matcher, whose text begins at byte `from`, as it was behind `output`.
  void seek(stop_matcher& m, std::uint64_t from, std::span<const token> output,
            const token_table& text) const;

  const std::uint32_t min_tokens_, healed_;
  const bool shows_stop_;
  stop_matcher stops_, banned_;
  std::optional<repeats> loops_;
  std::uint32_t decided_ = 0;
  std::vector<std::uint32_t> decided_of_;  // D(n) of each n > 0, where there are banned strings
  // Bytes of the output's tokens, and of its decided ones. Of the first token, those of `healed` count.
  std::uint64_t text_bytes_, decided_bytes_ = 0;
  std::uint64_t stops_from_ = 0;  // where the text of stops_ begins, in bytes of the output
  std::uint64_t banned_at_ = 0;   // where the banned string begins that was found
  bool cut_off_ = false;
  std::optional<std::uint64_t> shown_bytes_;
};

}  // namespace weir::core
