#include "core/grammar/rules.h"

#include <algorithm>
#include <cassert>

namespace weir::core::grammar {

rules::rules(std::uint32_t max_parts)
    : pool_(std::make_shared<regex_pool>(max_parts)), max_parts_(std::max(max_parts, 2u)) {
  part p;
  intern(p);
  p.what = kind::empty;
  intern(p);
}

part_id rules::intern(part p) {
  burn(1 + p.parts.size() / 16);
  auto hash = mixed(static_cast<std::uint64_t>(p.what), p.ref);
  hash = mixed(hash, std::uint64_t{p.min} << 32 | p.max);
  for (const auto x : p.parts) hash = mixed(hash, x);
  const auto known = known_.find(hash, [&](part_id id) { return parts_[id] == p; });
  if (known != id_table::none) return known;
  if (parts_.size() >= max_parts_) {
    too_many_ = true;
    return nothing;
  }
  const auto id = static_cast<part_id>(parts_.size());
  parts_.push_back(std::move(p));
  known_.add(hash, id);
  return id;
}

part_id rules::terminal(regex_id language) {
  if (language == regex_pool::nothing) return nothing;
  if (language == regex_pool::empty) return empty;
  part p;
  p.what = kind::terminal;
  p.ref = language;
  return intern(std::move(p));
}

part_id rules::literal(std::string_view bytes) { return terminal(pool_->literal(bytes)); }

part_id rules::token_part(std::vector<token_name> which, bool negated) {
  std::sort(which.begin(), which.end());
  which.erase(std::unique(which.begin(), which.end()), which.end());
  if (which.empty() && !negated) return nothing;
  token_set_names set{std::move(which), negated};
  const auto [at, is_new] = known_sets_.try_emplace(set, static_cast<std::uint32_t>(token_sets_.size()));
  if (is_new) token_sets_.push_back(std::move(set));
  part p;
  p.what = kind::tokens;
  p.ref = at->second;
  return intern(std::move(p));
}

part_id rules::tokens(std::vector<token_name> which) { return token_part(std::move(which), false); }
part_id rules::no_token_of(std::vector<token_name> which) { return token_part(std::move(which), true); }

part_id rules::sequence(std::span<const part_id> parts) {
  part p;
  p.what = kind::sequence;
  for (const auto x : parts) {
    if (x == nothing) return nothing;
    if (x == empty) continue;
    if (parts_[x].what == kind::sequence)
      p.parts.insert(p.parts.end(), parts_[x].parts.begin(), parts_[x].parts.end());
    else
      p.parts.push_back(x);
  }
  if (p.parts.empty()) return empty;
  if (p.parts.size() == 1) return p.parts[0];
  return intern(std::move(p));
}

part_id rules::choice(std::span<const part_id> parts) {
  part p;
  p.what = kind::choice;
  for (const auto x : parts) {
    if (x == nothing) continue;
    if (parts_[x].what == kind::choice)
      p.parts.insert(p.parts.end(), parts_[x].parts.begin(), parts_[x].parts.end());
    else
      p.parts.push_back(x);
  }
  std::sort(p.parts.begin(), p.parts.end());  // a union has no order
  p.parts.erase(std::unique(p.parts.begin(), p.parts.end()), p.parts.end());
  if (p.parts.empty()) return nothing;
  if (p.parts.size() == 1) return p.parts[0];
  return intern(std::move(p));
}

part_id rules::repeat(part_id x, std::uint32_t min, std::uint32_t max) {
  assert(min <= max);
  if (max == 0 || x == empty) return empty;
  if (x == nothing) return min == 0 ? empty : nothing;
  if (min == 1 && max == 1) return x;
  part p;
  p.what = kind::repeat;
  p.ref = x;
  p.min = min, p.max = max;
  return intern(std::move(p));
}

part_id rules::call(rule_id r) {
  part p;
  p.what = kind::call;
  p.ref = r;
  return intern(std::move(p));
}

rule_id rules::declare(std::string where) {
  if (rules_.size() >= max_parts_) {
    too_many_ = true;
    return 0;
  }
  rules_.push_back({std::move(where), nothing, false});
  return static_cast<rule_id>(rules_.size() - 1);
}

void rules::define(rule_id r, part_id body) {
  if (too_many_) return;  // the id may be another rule's
  assert(!rules_[r].defined);
  rules_[r].body = body;
  rules_[r].defined = true;
}

part_id rules::named(std::string where, part_id body) {
  const auto r = declare(std::move(where));
  define(r, body);
  return call(r);
}

std::string rules::failure() const {
  if (too_many_) return "more than " + std::to_string(max_parts_) + " parts";
  return pool_->failure();
}

}  // namespace weir::core::grammar
