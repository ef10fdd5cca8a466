// stop_strings.h — the stop strings of a request, made ready for the search: the automaton of Aho and
// Corasick, 1975.
//
// The jobs of a request share one: copies cost a reference. Its size follows from the bytes of the strings
// alone: a node for each different beginning, 24 bytes each.
//
// Thread safety: as core/shared_list.h.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/shared_list.h"

namespace weir::core {

class stop_strings {
 public:
  using node_id = std::uint32_t;
  static constexpr node_id root = 0;

  stop_strings() = default;  // matches nothing
  // REQUIRES: no string is empty.
  stop_strings(std::span<const std::string> all);
  stop_strings(const std::vector<std::string>& all) : stop_strings(std::span(all)) {}
  stop_strings(std::initializer_list<std::string> all) : stop_strings(std::span(all.begin(), all.end())) {}

  bool empty() const noexcept { return nodes_.empty(); }
  // Bytes of the longest string; 0: there is none.
  std::uint32_t longest() const noexcept { return empty() ? 0 : nodes_[nodes_.size() - 1].depth; }

  // Strings of which an equal automaton is made: those of this one, by their indices. A string that was there
  // before under another index is replaced by an equal or another string of the list.
  std::vector<std::string> texts() const;

  // The node of the longest text that some string begins with and that ends the text of node `n` followed by
  // `byte`. Takes one comparison in the mean over a text, where few strings begin alike. REQUIRES: not empty.
  node_id next(node_id n, unsigned char byte) const noexcept;

  // REQUIRES: not empty.
  std::uint32_t depth(node_id n) const noexcept { return nodes_[n].depth; }      // bytes from the root
  std::uint32_t matched(node_id n) const noexcept { return nodes_[n].matched; }  // of the longest string
  std::uint32_t which(node_id n) const noexcept { return nodes_[n].which; }      // its index

  // Bytes of the automaton, which all copies have together.
  std::uint64_t bytes() const noexcept { return nodes_.bytes(); }

 private:
  struct node {
    std::uint32_t depth = 0;
    std::uint32_t matched = 0;  // length of the longest string that ends here; 0: none
    std::uint32_t which = 0;    // index of that string; of equal strings, of the first
    node_id fallback = root;    // the node of the longest proper suffix of its text
    node_id first = 0;          // its children stand side by side, in the order of their bytes
    std::uint16_t children = 0;
    unsigned char byte = 0;  // the last one of its text
  };
  class builder;

  static node_id child(std::span<const node> all, node_id n, unsigned char byte) noexcept;
  static node_id next(std::span<const node> all, node_id n, unsigned char byte) noexcept;

  shared_list<node> nodes_;  // breadth first; the first is the root
};

}  // namespace weir::core
