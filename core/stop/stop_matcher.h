// stop_matcher.h — finds the first of several stop strings in a text that comes piece by piece.
//
// Each job has one, and shares the strings with the other jobs of its request. feed() never allocates. A
// piece is bytes, not characters: a stop string may begin and end inside a token.
//
// Thread safety: one owner.
//
// Invariants:
//   1. pending() is the length of the longest suffix of the text so far that a stop string begins with. Those
//      bytes may still be part of a match; the bytes before them cannot.
//   2. The match is the one that ends first. Of several that end at the same byte, it is the longest.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <utility>

#include "core/stop/stop_strings.h"

namespace weir::core {

class stop_matcher {
 public:
  stop_matcher() = default;  // matches nothing
  // `any_case`: the text's letters A to Z are searched as small ones. REQUIRES: the strings then have no
  // large ones.
  explicit stop_matcher(stop_strings stops, bool any_case = false)
      : stops_(std::move(stops)), any_case_(any_case) {}

  bool empty() const noexcept { return stops_.empty(); }

  // Takes the next bytes of the text. Returns the offset in the text of the first byte of a match; nullopt if
  // there is none so far. Must not be called again after a match, but for restart().
  std::optional<std::uint64_t> feed(std::string_view bytes) noexcept;

  // Begins anew as if `fed` bytes had come, none of which is part of a match that is still possible.
  void restart(std::uint64_t fed) noexcept {
    at_ = stop_strings::root;
    fed_ = fed;
  }

  // Index of the string that matched; of equal strings, that of the first. REQUIRES: feed() found a match.
  std::uint32_t which() const noexcept { return stops_.which(at_); }

  // Bytes of the text so far.
  std::uint64_t fed() const noexcept { return fed_; }
  std::uint32_t pending() const noexcept { return empty() ? 0 : stops_.depth(at_); }
  std::uint32_t longest() const noexcept { return stops_.longest(); }  // bytes of the longest string

 private:
  stop_strings stops_;
  bool any_case_ = false;
  stop_strings::node_id at_ = stop_strings::root;  // of the text so far
  std::uint64_t fed_ = 0;
};

}  // namespace weir::core
