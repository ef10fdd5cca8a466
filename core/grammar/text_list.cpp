#include "core/grammar/text_list.h"

#include <algorithm>

namespace weir::core::grammar {

text_list::text_list(std::vector<std::string> texts) {
  std::sort(texts.begin(), texts.end());
  texts.erase(std::unique(texts.begin(), texts.end()), texts.end());
  for (const std::string& t : texts) {
    all_ += t;
    ends_.push_back(static_cast<std::uint32_t>(all_.size()));
  }
  key_.assign(reinterpret_cast<const char*>(ends_.data()), ends_.size() * sizeof ends_[0]);
  key_ += all_;
}

// The texts are sorted by bytes, and those of a range share their first `depth` bytes. So texts with the same
// next byte are adjacent, and a text that ends at `depth` comes before them.
text_list::range text_list::narrowed(const range& r, unsigned char b) const {
  const auto next = [&](std::uint32_t i) {
    const std::string_view t = text(i);
    return t.size() == r.depth ? -1 : static_cast<int>(static_cast<unsigned char>(t[r.depth]));
  };
  const auto first_from = [&](std::uint32_t from, int byte) {  // the first whose next byte is not before it
    std::uint32_t low = from, high = r.last;
    while (low < high) {
      const std::uint32_t middle = low + (high - low) / 2;
      if (next(middle) < byte)
        low = middle + 1;
      else
        high = middle;
    }
    return low;
  };
  const std::uint32_t first = first_from(r.first, b);
  return {first, first_from(first, b + 1), r.depth + 1};
}

std::vector<std::bitset<256>> text_list::firsts(const range& r) const {
  std::vector<std::bitset<256>> out;
  for (std::uint32_t i = ends(r) ? r.first + 1 : r.first; i < r.last;) {
    const auto b = static_cast<unsigned char>(text(i)[r.depth]);
    out.emplace_back().set(b);
    i = narrowed({i, r.last, r.depth}, b).last;
  }
  return out;
}

std::optional<automaton::state> one_of_texts::next(const state& s, unsigned char b) const {
  const auto to = texts_.narrowed(range_of(s), b);
  if (to.empty()) return std::nullopt;
  return state_of(to);
}

std::vector<std::string> one_of_texts::few(const state& s) const {
  const auto r = range_of(s);
  std::vector<std::string> out;
  if (r.size() > few_texts) return out;
  std::size_t bytes = 0;
  for (auto i = r.first; i < r.last; ++i) bytes += texts_.text(i).size() - r.depth;
  if (bytes > few_bytes) return out;
  for (auto i = r.first; i < r.last; ++i) out.emplace_back(texts_.text(i).substr(r.depth));
  return out;
}

}  // namespace weir::core::grammar
