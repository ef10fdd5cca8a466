// stop_matcher.h — finds the first of several stop strings in a text that comes piece by piece (Aho and
// Corasick, 1975).
//
// One matcher is built for each job. feed() costs one table look-up for each byte and never allocates. A
// piece is bytes, not characters: a stop string may begin and end inside a token.
//
// Thread safety: one owner.
//
// Invariants:
//   1. pending() is the length of the longest suffix of the text so far that a stop string begins with. Those
//      bytes may still be part of a match; the bytes before them cannot.
//   2. The match is the one that ends first. Of several that end at the same byte, it is the longest.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace weir::core {

class stop_matcher {
 public:
  stop_matcher() = default;  // matches nothing
  // REQUIRES: no string is empty.
  explicit stop_matcher(std::span<const std::string> stops);

  bool empty() const noexcept { return nodes_.empty(); }

  // Takes the next bytes of the text. Returns the offset in the text of the first byte of a match; nullopt if
  // there is none so far. Must not be called again after a match.
  std::optional<std::uint64_t> feed(std::string_view bytes);

  // Index of the string that matched; of equal strings, that of the first. REQUIRES: feed() found a match.
  std::uint32_t which() const noexcept { return nodes_[at_].which; }

  // Bytes of the text so far.
  std::uint64_t fed() const noexcept { return fed_; }
  std::uint32_t pending() const noexcept { return empty() ? 0 : nodes_[at_].depth; }

 private:
  struct node {
    std::uint32_t depth = 0;    // bytes from the root
    std::uint32_t matched = 0;  // length of the longest stop string that ends here; 0: none
    std::uint32_t which = 0;    // index of that string
  };

  std::uint32_t& next(std::uint32_t node, std::uint32_t cls) { return next_[node * classes_ + cls]; }
  void add(std::string_view stop, std::uint32_t index);
  void link();

  // [byte] its class. All bytes that occur in no stop string are in class 0, which keeps the table small.
  std::array<std::uint16_t, 256> class_of_{};
  std::uint32_t classes_ = 1;
  std::vector<node> nodes_;          // the first is the root
  std::vector<std::uint32_t> next_;  // [nodes, classes]
  std::uint32_t at_ = 0;             // node of the text so far
  std::uint64_t fed_ = 0;
};

}  // namespace weir::core
