#include "core/sample/suffix_matches.h"

#include <algorithm>

namespace weir::core {
namespace {

// For each k: how many of the last tokens are the same as those k places before them.
std::vector<std::uint32_t> repeats_of_end(const token_history& of) {
  const std::size_t n = of.size();
  const auto back = [&](std::size_t i) { return of[n - 1 - i]; };
  std::vector<std::uint32_t> z(n);
  std::size_t begin = 0, end = 0;  // the stretch that reaches farthest
  for (std::size_t k = 1; k < n; ++k) {
    std::size_t same = k < end ? std::min<std::size_t>(end - k, z[k - begin]) : 0;
    while (k + same < n && back(same) == back(k + same)) ++same;
    z[k] = static_cast<std::uint32_t>(same);
    if (k + same <= end) continue;
    begin = k;
    end = k + same;
  }
  return z;
}

}  // namespace

std::uint64_t suffix_matches::bytes_for(std::uint32_t most, std::uint32_t vocab_size) noexcept {
  const std::size_t distinct = std::min(most, vocab_size);
  return token_index::bytes_for(distinct) + distinct * sizeof(std::uint32_t) +
         std::uint64_t{most} * (sizeof(std::uint32_t) + 2 * sizeof(match));
}

suffix_matches::suffix_matches(const token_history& of, std::uint32_t most, std::uint32_t vocab_size,
                               std::uint32_t limit)
    : tokens_(std::min(most, vocab_size)) {
  latest_.reserve(std::min(most, vocab_size));
  before_.reserve(most);
  matches_.reserve(most);
  next_.reserve(most);
  for (std::size_t place = 0; place < of.size(); ++place) link(of[place]);
  if (limit == 0 || of.size() < 2) return;
  const auto z = repeats_of_end(of);
  for (std::size_t k = 1; k < z.size(); ++k)
    if (z[k] > 0) matches_.push_back({static_cast<std::uint32_t>(of.size() - 1 - k), std::min(z[k], limit)});
}

// The next place has the token.
void suffix_matches::link(token_id id) {
  const auto place = static_cast<std::uint32_t>(before_.size());
  const std::size_t number = tokens_.number(id);
  if (number == latest_.size()) {
    before_.push_back(none);
    latest_.push_back(place);
  } else {
    before_.push_back(latest_[number]);
    latest_[number] = place;
  }
}

void suffix_matches::add(const token_history& of) {
  link(of[of.size() - 1]);
  next_.clear();
  auto old = matches_.begin();
  for (std::uint32_t i = before_.back(); i != none; i = before_[i]) {
    while (old != matches_.end() && old->place + 1 > i) ++old;
    const bool longer = old != matches_.end() && old->place + 1 == i;
    next_.push_back({i, longer ? old->length + 1 : 1});
  }
  matches_.swap(next_);
}

}  // namespace weir::core
