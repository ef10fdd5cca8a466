#include "core/text/tokenizer/piece_trie.h"

#include <algorithm>

namespace weir::core {

piece_trie::piece_trie(std::vector<std::pair<std::string_view, std::int32_t>> strings) {
  std::ranges::stable_sort(strings, {}, &std::pair<std::string_view, std::int32_t>::first);
  // The strings [begin, end) share their first `depth` bytes, which lead to `node`.
  struct range {
    std::uint32_t node;
    std::size_t begin, end, depth;
  };
  nodes_.emplace_back();
  bytes_.push_back(0);
  std::vector<range> level{{0, 0, strings.size(), 0}}, next;
  for (; !level.empty(); level = std::move(next)) {
    next.clear();
    for (auto [at, begin, end, depth] : level) {
      for (; begin < end && strings[begin].first.size() == depth; ++begin)
        if (depth > 0) nodes_[at].value = strings[begin].second;
      if (begin == end) longest_ = std::max(longest_, depth);
      nodes_[at].first = static_cast<std::uint32_t>(nodes_.size());
      while (begin < end) {
        const char byte = strings[begin].first[depth];
        const std::size_t from = begin;
        while (begin < end && strings[begin].first[depth] == byte) ++begin;
        next.push_back({static_cast<std::uint32_t>(nodes_.size()), from, begin, depth + 1});
        nodes_.emplace_back();
        bytes_.push_back(byte);
      }
      nodes_[at].children = static_cast<std::uint32_t>(nodes_.size()) - nodes_[at].first;
    }
  }
}

}  // namespace weir::core
