#include "core/grammar/notation/draft.h"

#include <algorithm>
#include <cassert>

#include "core/grammar/regex/code_points.h"

namespace weir::core::grammar {

draft::part_ref draft::push(part p) {
  parts_.push_back(std::move(p));
  return static_cast<part_ref>(parts_.size() - 1);
}

draft::part_ref draft::language(regex_id r, std::uint32_t size, bool broad) {
  part p;
  p.what = kind::language;
  p.ref = r;
  p.size = size;
  p.broad = broad;
  return push(std::move(p));
}

draft::part_ref draft::text(std::string_view utf8) {
  return language(regex().literal(utf8), static_cast<std::uint32_t>(utf8.size()));
}

draft::part_ref draft::one_of(const code_points& set) {
  constexpr char32_t many = 128;
  char32_t count = 0;
  for (const auto& r : set.ranges()) count += r.last - r.first + 1;
  const auto out = language(grammar::one_of(regex(), set), 1);
  parts_[out].wide = count >= many;
  return out;
}

draft::part_ref draft::written(part_id id) {
  part p;
  p.what = kind::written;
  p.ref = id;
  return push(std::move(p));
}

draft::part_ref draft::sequence(std::vector<part_ref> parts) {
  if (parts.size() == 1) return parts[0];
  part p;
  p.what = kind::sequence;
  p.parts = std::move(parts);
  return push(std::move(p));
}

draft::part_ref draft::choice(std::vector<part_ref> parts) {
  if (parts.size() == 1) return parts[0];
  part p;
  p.what = kind::choice;
  p.parts = std::move(parts);
  return push(std::move(p));
}

draft::part_ref draft::repeat(part_ref x, std::uint32_t min, std::uint32_t max) {
  assert(min <= max);
  part p;
  p.what = kind::repeat;
  p.min = min, p.max = max;
  p.parts = {x};
  return push(std::move(p));
}

draft::part_ref draft::call(rule_ref r) {
  part p;
  p.what = kind::call;
  p.ref = r;
  return push(std::move(p));
}

draft::part_ref draft::both(std::vector<part_ref> parts) {
  if (parts.size() == 1) return parts[0];
  part p;
  p.what = kind::both;
  p.parts = std::move(parts);
  return push(std::move(p));
}

draft::part_ref draft::complement(part_ref x) {
  part p;
  p.what = kind::complement;
  p.parts = {x};
  return push(std::move(p));
}

draft::rule_ref draft::named(std::string_view name, std::size_t offset) {
  const auto [at, is_new] =
      by_name_.try_emplace(std::string(name), static_cast<rule_ref>(rules_list_.size()));
  if (is_new) {
    rules_list_.emplace_back();
    rules_list_.back().name = name;
    rules_list_.back().mentioned = offset;
  }
  return at->second;
}

std::optional<draft::rule_ref> draft::find(std::string_view name) const {
  const auto at = by_name_.find(std::string(name));
  return at == by_name_.end() ? std::nullopt : std::optional(at->second);
}

void draft::begin(rule_ref r, std::size_t offset) {
  assert(!rules_list_[r].body);
  rules_list_[r].defined = offset;
  rules_list_[r].first_part = static_cast<part_ref>(parts_.size());
}

void draft::end(rule_ref r, part_ref body) {
  rules_list_[r].body = body;
  rules_list_[r].end_part = static_cast<part_ref>(parts_.size());
}

std::string place_in(std::string_view source, std::size_t offset) {
  const auto before = source.substr(0, offset);
  const auto line = 1 + std::count(before.begin(), before.end(), '\n');
  const auto last = before.rfind('\n');
  const auto column = last == before.npos ? before.size() + 1 : before.size() - last;
  return fmt::format("line {}, column {}", line, column);
}

}  // namespace weir::core::grammar
