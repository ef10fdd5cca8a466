// piece_trie.h — a set of strings, each with a value, that says which of them a text begins with.
//
// Made once of all its strings: the children of a node lie side by side, so a step is a search among a few
// bytes. It takes some 13 bytes for each byte of its strings, less what they share.
//
// Thread safety: immutable once built; any thread.
#pragma once

#include <cstdint>
#include <cstring>
#include <string_view>
#include <utility>
#include <vector>

namespace weir::core {

class piece_trie {
 public:
  piece_trie() = default;
  // `strings`: each with its value, which is not negative. Of equal strings the last one counts; an empty
  // string is ignored.
  explicit piece_trie(std::vector<std::pair<std::string_view, std::int32_t>> strings);

  bool empty() const noexcept { return nodes_.size() < 2; }
  std::size_t longest() const noexcept { return longest_; }  // bytes of the longest string

  // Calls found(value, length) for each string that `text` starts with, shorter ones first.
  void walk(std::string_view text, const auto& found) const {
    if (empty()) return;
    std::uint32_t at = 0;
    for (std::size_t i = 0; i < text.size(); ++i) {
      const node& from = nodes_[at];
      const char* const begin = bytes_.data() + from.first;
      const void* const hit = from.children == 0 ? nullptr : std::memchr(begin, text[i], from.children);
      if (hit == nullptr) return;
      at = from.first + static_cast<std::uint32_t>(static_cast<const char*>(hit) - begin);
      if (nodes_[at].value >= 0) found(nodes_[at].value, i + 1);
    }
  }

  // The length of the longest string that `text` starts with; 0 for none.
  std::size_t longest_at(std::string_view text) const {
    std::size_t best = 0;
    walk(text, [&](std::int32_t, std::size_t length) { best = length; });
    return best;
  }

 private:
  struct node {
    std::uint32_t first = 0;     // child
    std::uint32_t children = 0;  // their number
    std::int32_t value = -1;
  };
  std::vector<node> nodes_;  // the first is the root; the children of a node in a row
  std::vector<char> bytes_;  // [node] the byte that leads to it
  std::size_t longest_ = 0;
};

}  // namespace weir::core
