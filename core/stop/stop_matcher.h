// stop_matcher.h — finds the first of several stop strings in a text that comes piece by piece (Aho and
// Corasick, 1975).
//
// Built once a job; then feed() is one table look-up a byte and never allocates. Pieces are bytes, not
// characters: a stop string may begin and end inside a token.
//
// Thread safety: one owner.
//
// Invariants:
//   1. pending() is the length of the longest end of the text so far that begins a stop string: those bytes
//   may
//      still turn out to belong to one, all bytes before them cannot.
//   2. The match is the one that ends first; of several that end there, the longest.
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

  // Goes on over the text's next bytes. On a match: the offset of its first byte, counted from the first byte
  // ever fed; nothing may be fed after that.
  std::optional<std::uint64_t> feed(std::string_view bytes);

  std::uint64_t fed() const noexcept { return fed_; }
  std::uint32_t pending() const noexcept { return empty() ? 0 : nodes_[at_].depth; }

 private:
  struct node {
    std::uint32_t depth = 0;    // bytes from the root
    std::uint32_t matched = 0;  // length of the longest stop string that ends here; 0: none does
  };

  std::uint32_t& next(std::uint32_t node, std::uint32_t cls) { return next_[node * classes_ + cls]; }
  void add(std::string_view stop);
  void link();

  // Bytes that occur in no stop string all behave alike: class 0.
  std::array<std::uint16_t, 256> class_of_{};
  std::uint32_t classes_ = 1;
  std::vector<node> nodes_;          // 0 is the root
  std::vector<std::uint32_t> next_;  // [nodes, classes]
  std::uint32_t at_ = 0;
  std::uint64_t fed_ = 0;
};

}  // namespace weir::core
