// Bytes that a term, or several terms, treat alike.
#include <algorithm>
#include <string>
#include <unordered_set>

#include "core/grammar/regex/regex_pool.h"
#include "core/grammar/regex/regex_tables.h"

namespace weir::core::grammar {

namespace {

// The coarsest classes of bytes of which each set is a union.
regex_pool::byte_classes classes_by(std::span<const byte_set* const> sets) {
  std::vector<byte_set> parts(1);
  parts[0].set();
  for (const auto* set : sets) {
    for (std::size_t i = 0, n = parts.size(); i < n; ++i) {
      const auto inside = parts[i] & *set;
      if (inside.none() || inside == parts[i]) continue;
      parts[i] &= ~inside;
      parts.push_back(inside);
    }
  }
  regex_pool::byte_classes out;
  for (std::size_t i = 0; i < parts.size(); ++i) {
    out.representative.push_back(static_cast<std::uint8_t>(parts[i]._Find_first()));
    for (auto b = parts[i]._Find_first(); b < 256; b = parts[i]._Find_next(b))
      out.of[b] = static_cast<std::uint8_t>(i);
  }
  return out;
}

// Two bytes are in one class if all parts have them in one class. Sets no representatives.
regex_pool::byte_classes joined(std::span<const regex_pool::byte_classes* const> parts) {
  regex_pool::byte_classes joint;
  std::size_t count = 1;
  for (const auto* part : parts) {
    const auto& one = *part;
    std::vector<int> pairs(count * one.representative.size(), -1);
    count = 0;
    for (std::size_t b = 0; b < 256; ++b) {
      auto& name = pairs[joint.of[b] * one.representative.size() + one.of[b]];
      if (name < 0) name = static_cast<int>(count++);
      joint.of[b] = static_cast<std::uint8_t>(name);
    }
  }
  return joint;
}

}  // namespace

// The bytes are split by the sets that can come first in a text of the term, or of a term inside it.
const regex_pool::byte_classes& regex_pool::classes_of(regex_id r) {
  auto& n = nodes_[r];
  if (const auto known = n.partition.load(std::memory_order_relaxed)) return partitions_[known - 1];
  if (budget_) budget_->burn(2);
  auto x = r;  // a term that begins with the same sets
  for (;;) {
    const auto& t = nodes_[x];
    const bool same = t.what == kind::repeat || t.what == kind::complement ||
                      (t.what == kind::concat && !nodes_[t.a].nullable);
    if (!same || t.partition.load(std::memory_order_relaxed) != 0) break;
    x = t.a;
  }
  auto index = nodes_[x].partition.load(std::memory_order_relaxed);
  if (index == 0) index = 1 + partition_by(first_sets(x));
  nodes_[x].partition.store(index, std::memory_order_release);
  n.partition.store(index, std::memory_order_release);
  return partitions_[index - 1];
}

std::vector<std::uint32_t> regex_pool::first_sets(regex_id r) {
  std::vector<std::uint32_t> sets;
  std::vector<regex_id> open{r};
  std::unordered_set<regex_id> seen;
  while (!open.empty()) {
    const auto x = open.back();
    open.pop_back();
    const auto& t = nodes_[x];
    if (t.what == kind::bytes) {
      sets.push_back(t.a);
      continue;
    }
    if (!seen.insert(x).second) continue;
    open.insert(open.end(), t.members.begin(), t.members.end());
    if (t.what == kind::concat || t.what == kind::complement || t.what == kind::repeat) open.push_back(t.a);
    if (t.what == kind::concat && nodes_[t.a].nullable) open.push_back(t.b);
  }
  work_ += seen.size();
  std::sort(sets.begin(), sets.end());
  sets.erase(std::unique(sets.begin(), sets.end()), sets.end());
  return sets;
}

std::uint32_t regex_pool::partition_by(const std::vector<std::uint32_t>& sets) {
  if (budget_) budget_->burn(4 + sets.size());
  const std::string name(reinterpret_cast<const char*>(sets.data()), sets.size() * sizeof sets[0]);
  if (const auto known = tables_->by_sets.find(name); known != tables_->by_sets.end()) return known->second;
  std::vector<const byte_set*> all;
  for (const auto s : sets) all.push_back(&sets_[s]);
  const auto index = partition_of(classes_by(all));
  tables_->by_sets.emplace(name, index);
  return index;
}

// Classes are numbered by their first bytes, so that equal partitions have one form.
std::uint32_t regex_pool::partition_of(byte_classes classes) {
  std::array<int, 256> renamed;
  renamed.fill(-1);
  std::string text(256, '\0');
  classes.representative.clear();
  for (std::size_t b = 0; b < 256; ++b) {
    auto& name = renamed[classes.of[b]];
    if (name < 0) {
      name = static_cast<int>(classes.representative.size());
      classes.representative.push_back(static_cast<std::uint8_t>(b));
    }
    text[b] = static_cast<char>(name);
  }
  for (std::size_t b = 0; b < 256; ++b) classes.of[b] = static_cast<std::uint8_t>(text[b]);
  const auto known = tables_->partitions.find(text);
  if (known != tables_->partitions.end()) return known->second;
  // The push comes first: if host memory is short after it, no table has an index without a partition.
  const auto bytes = 2 * sizeof(byte_classes) + classes.representative.size();
  const auto index = partitions_.push(std::move(classes));
  tables_->partitions.emplace(std::move(text), index);
  count(bytes);
  return index;
}

const regex_pool::byte_classes& regex_pool::classes(std::span<const regex_id> all) {
  const std::lock_guard lock(mutex_);
  std::vector<std::uint32_t> parts;
  for (const auto r : all) {
    classes_of(r);
    parts.push_back(nodes_[r].partition.load(std::memory_order_relaxed) - 1);
  }
  std::sort(parts.begin(), parts.end());
  parts.erase(std::unique(parts.begin(), parts.end()), parts.end());
  if (parts.size() == 1) return partitions_[parts[0]];
  const std::string name(reinterpret_cast<const char*>(parts.data()), parts.size() * sizeof parts[0]);
  if (const auto known = tables_->joint.find(name); known != tables_->joint.end())
    return partitions_[known->second];
  std::vector<const byte_classes*> several;
  for (const auto p : parts) several.push_back(&partitions_[p]);
  const auto index = partition_of(joined(several));
  tables_->joint.emplace(name, index);
  return partitions_[index];
}

const regex_pool::byte_classes& regex_pool::classes(regex_id r) {
  if (const auto known = nodes_[r].partition.load(std::memory_order_acquire)) return partitions_[known - 1];
  const std::lock_guard lock(mutex_);
  return classes_of(r);
}

}  // namespace weir::core::grammar
