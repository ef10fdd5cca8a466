// output_watch.h — watches the output of a job for what ends it: its stop strings, and repetition.
//
// A token is decided when no stop string can withhold it any more. Stop strings are found in the bytes of the
// output, across tokens: a token that may be part of one is withheld until it cannot be, or until the output
// ends.
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

#include "core/stop/repeats.h"
#include "core/stop/stop_matcher.h"
#include "core/stop/token_table.h"

namespace weir::core {

class output_watch {
 public:
  enum class verdict : std::uint8_t { goes_on, stop_string, repetition };

  // `max_repeats`: repetitions in a row that end the job; 0: none does. Before the output has `min_tokens`
  // tokens nothing ends it, and stop strings do not begin. `shows_stop`: a stop string that ends the job is
  // shown, to its last byte.
  output_watch(stop_strings stops, std::uint32_t max_repeats, std::uint32_t min_tokens,
               bool shows_stop = false);

  // Takes the last token of `output`. REQUIRES: take() has seen every token before it, and always said
  // goes_on.
  verdict take(std::span<const token> output, const token_table& text);

  // Leading tokens of the output that no stop string can withhold any more.
  std::uint32_t decided() const noexcept { return decided_; }

  // A stop string matched. The tokens that are not decided are then never shown.
  bool matched() const noexcept { return matched_; }
  // Index of the stop string. REQUIRES: matched().
  std::uint32_t which() const noexcept { return stops_.which(); }
  // Bytes of the output that may be shown, where the last decided token has more: the stop string begins
  // inside it, or ends there where it is shown. Unset: all of them. REQUIRES: matched().
  std::optional<std::uint64_t> shown_bytes() const noexcept { return shown_bytes_; }

 private:
  // Feeds a token to the stop strings. Returns the bytes of the output that are shown where the token
  // completes a stop string; nullopt: it completes none.
  std::optional<std::uint64_t> feed(token_id id, const token_table& text);
  // Decides the tokens that end within the first `bytes` of the output's bytes.
  void decide(std::span<const token> output, std::uint64_t bytes, const token_table& text);
  // The job ends, and `bytes` are shown: decides the tokens that begin before their end.
  void cut(std::span<const token> output, std::uint64_t bytes, const token_table& text);

  const std::uint32_t min_tokens_;
  const bool shows_stop_;
  stop_matcher stops_;
  std::optional<repeats> loops_;
  std::uint32_t decided_ = 0;
  std::uint64_t text_bytes_ = 0, decided_bytes_ = 0;  // of the output, and of its decided part
  bool matched_ = false;
  std::optional<std::uint64_t> shown_bytes_;
};

}  // namespace weir::core
