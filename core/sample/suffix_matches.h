// suffix_matches.h — where the end of a sequence has come before, and how much of it.
//
// A match is a place with the same token as the latest one. Its length is how many tokens up to it are the
// same as those up to the latest. The matches of the next token are made from those of this one: a match of
// length n at place i gives one of length n + 1 at i + 1, if the token there is the next one.
//
// Cost of a token: how often it and the one before it have come, at most the sequence's length. The
// constructor takes what is there in linear time, by the Z algorithm (Gusfield 1997, section 1.4). Nothing
// allocates after it.
//
// Thread safety: the owner's thread only.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "core/sample/token_history.h"
#include "core/sample/token_index.h"

namespace weir::core {

class suffix_matches {
 public:
  struct match {
    std::uint32_t place = 0, length = 0;
  };

  // The matches at the end of `of`; `most` is its length once it has all tokens. No
  // match is longer than `limit`.
  suffix_matches(const token_history& of, std::uint32_t most, std::uint32_t vocab_size, std::uint32_t limit);

  static std::uint64_t bytes_for(std::uint32_t most, std::uint32_t vocab_size) noexcept;

  // The history has one token more.
  void add(const token_history& of);

  // The next token's matches begin anew: none is longer than what is added from now on.
  void forget() noexcept { matches_.clear(); }

  // The latest place first.
  std::span<const match> all() const noexcept { return matches_; }

 private:
  void link(token_id id);

  static constexpr std::uint32_t none = 0xFFFF'FFFF;
  token_index tokens_;
  std::vector<std::uint32_t> latest_;  // [tokens_] the latest place of the token
  std::vector<std::uint32_t> before_;  // [place] the place before it with the same token, or none
  std::vector<match> matches_, next_;
};

}  // namespace weir::core
