#include "core/stop/stop_matcher.h"

#include <cassert>

namespace weir::core {

stop_matcher::stop_matcher(std::span<const std::string> stops) {
  if (stops.empty()) return;
  for (const std::string& s : stops) {
    for (const char c : s) {
      auto& cls = class_of_[static_cast<unsigned char>(c)];
      if (cls == 0) cls = static_cast<std::uint16_t>(classes_++);
    }
  }
  nodes_.emplace_back();
  next_.resize(classes_, 0);
  for (std::uint32_t i = 0; i < stops.size(); ++i) add(stops[i], i);
  link();
}

// Adds a string to the trie. In next_, 0 means "no edge", since no edge of a trie leads to the root.
void stop_matcher::add(std::string_view stop, std::uint32_t index) {
  assert(!stop.empty());
  std::uint32_t n = 0;
  for (const char c : stop) {
    const std::uint32_t cls = class_of_[static_cast<unsigned char>(c)];
    if (next(n, cls) == 0) {
      next(n, cls) = static_cast<std::uint32_t>(nodes_.size());
      nodes_.push_back({.depth = nodes_[n].depth + 1});
      next_.resize(nodes_.size() * classes_, 0);
    }
    n = next(n, cls);
  }
  if (nodes_[n].matched > 0) return;  // the same string came before
  nodes_[n].matched = nodes_[n].depth;
  nodes_[n].which = index;
}

// Fills each node's missing edges from its fallback, which is the node of the longest proper suffix of its
// string. The order is breadth first, so that the edges of the fallback are complete by then.
void stop_matcher::link() {
  std::vector<std::uint32_t> order{0}, fallback(nodes_.size(), 0);
  order.reserve(nodes_.size());
  for (std::size_t i = 0; i < order.size(); ++i) {
    const std::uint32_t n = order[i];
    if (nodes_[n].matched == 0) {
      nodes_[n].matched = nodes_[fallback[n]].matched;
      nodes_[n].which = nodes_[fallback[n]].which;
    }
    for (std::uint32_t cls = 0; cls < classes_; ++cls) {
      std::uint32_t& child = next(n, cls);
      const std::uint32_t instead = n == 0 ? 0 : next(fallback[n], cls);
      if (child == 0) {
        child = instead;
      } else {
        fallback[child] = instead;
        order.push_back(child);
      }
    }
  }
}

std::optional<std::uint64_t> stop_matcher::feed(std::string_view bytes) {
  if (empty()) return std::nullopt;
  for (const char c : bytes) {
    ++fed_;
    at_ = next(at_, class_of_[static_cast<unsigned char>(c)]);
    if (nodes_[at_].matched > 0) return fed_ - nodes_[at_].matched;
  }
  return std::nullopt;
}

}  // namespace weir::core
