#define XXH_INLINE_ALL
#include "core/grammar/regex/regex_pool.h"

#include <xxhash.h>

#include <algorithm>

#include "core/grammar/process_seed.h"
#include "core/grammar/regex/regex_prints.h"
#include "core/grammar/regex/regex_tables.h"
#include "core/grammar/text_list.h"

namespace weir::core::grammar {
namespace {

bool before(const regex_print& x, const regex_print& y) {
  return x.high != y.high ? x.high < y.high : x.low < y.low;
}

}  // namespace

regex_print print_of(std::string_view bytes) {
  const auto h = XXH3_128bits_withSeed(bytes.data(), bytes.size(), process_seed());
  return {h.low64, h.high64};
}

regex_pool::node& regex_pool::node::operator=(node&& o) noexcept {
  what = o.what;
  nullable = o.nullable;
  plain = o.plain;
  counted = o.counted;
  depth = o.depth;
  a = o.a, b = o.b, min = o.min, max = o.max;
  members = std::move(o.members);
  print = o.print;
  return *this;  // what walks remember of the term is not moved
}

regex_pool::regex_pool(std::uint32_t max_nodes)
    : tables_(std::make_unique<tables>()), max_nodes_(std::max(max_nodes, 16u)) {
  const auto add = [&](kind what, bool is_nullable, bool is_plain, regex_id a) {
    node n;
    n.what = what;
    n.nullable = is_nullable;
    n.plain = is_plain;
    n.a = a;
    print_text text(static_cast<char>(what));
    if (what == kind::complement) text.add(nodes_[a].print);
    n.print = text.done();
    intern(std::move(n));
  };
  add(kind::nothing, false, true, 0);
  add(kind::empty, true, true, 0);
  add(kind::complement, true, true, nothing);  // plain, because it is never empty
}

regex_pool::~regex_pool() = default;

void regex_pool::give_up(std::string why) {
  if (failure_.empty()) failure_ = std::move(why);
  exhausted_.store(true, std::memory_order_relaxed);
}

regex_id regex_pool::intern(node&& n) {
  if (budget_) budget_->burn(1 + n.members.size() / 16);
  const auto known =
      tables_->by_print.find(n.print.low, [&](regex_id r) { return nodes_[r].print == n.print; });
  if (known != id_table::none) return known;
  if (nodes_.size() >= max_nodes_ || n.depth > max_depth) {
    give_up(n.depth > max_depth ? fmt::format("regular expressions nested deeper than {}", max_depth)
                                : fmt::format("more than {} parts of regular expressions", max_nodes_));
    return nothing;
  }
  tables_->by_print.add(n.print.low, nodes_.size());
  count(sizeof(node) + sizeof(regex_id) * n.members.size() + 48);
  return nodes_.push(std::move(n));
}

regex_id regex_pool::bytes_of(const byte_set& set) {
  if (set.none()) return nothing;
  node n;
  n.what = kind::bytes;
  n.print = print_text(static_cast<char>(kind::bytes)).add(set).done();
  const auto known =
      tables_->by_print.find(n.print.low, [&](regex_id r) { return nodes_[r].print == n.print; });
  if (known != id_table::none) return known;
  n.a = sets_.push(set);
  return intern(std::move(n));
}

regex_id regex_pool::concat_of(regex_id a, regex_id b) {
  if (a == nothing || b == nothing) return nothing;
  if (a == empty) return b;
  if (b == empty) return a;
  if (a == anything && b == anything) return anything;
  if (const auto fewer = absorbed(a, b); fewer != a) return concat_of(fewer, b);
  const node &x = nodes_[a], &y = nodes_[b];
  node n;
  n.what = kind::concat;
  n.a = a, n.b = b;
  n.nullable = x.nullable && y.nullable;
  n.plain = x.plain && y.plain;
  n.counted = n.plain && (x.counted || y.counted);
  const int behind = !x.nullable ? 0 : y.depth + (y.what == kind::concat ? 0 : 1);
  n.depth = static_cast<std::uint16_t>(std::max(x.depth + 1, behind));
  n.print = print_text(static_cast<char>(kind::concat)).add(x.print).add(y.print).done();
  return intern(std::move(n));
}

// x{m,n}c* is x{m}c* if every x is a c; this saves a counter.
regex_id regex_pool::absorbed(regex_id a, regex_id b) {
  const auto& x = nodes_[a];
  const auto& loop = nodes_[nodes_[b].what == kind::concat ? nodes_[b].a : b];
  if (x.what != kind::repeat || loop.what != kind::repeat || x.min == x.max || loop.min > 0 ||
      loop.max != unbounded || !has_all_bytes(loop.a, x.a))
    return a;
  return repeat_of(x.a, x.min, x.min);
}

// Whether `some` is a set of bytes, each of which is a text of `all`.
bool regex_pool::has_all_bytes(regex_id all, regex_id some) const {
  const auto& s = nodes_[some];
  if (s.what != kind::bytes) return false;
  const auto has = [&](regex_id r) {
    return nodes_[r].what == kind::bytes && (sets_[s.a] & ~sets_[nodes_[r].a]).none();
  };
  return has(all) || (nodes_[all].what == kind::either && std::ranges::any_of(nodes_[all].members, has));
}

// Replaces each member of the kind `what` by its own members, sorts the list, and drops duplicates. The order
// is that of the prints, so that a term is the same in every pool.
bool regex_pool::flatten(kind what, std::vector<regex_id>& members) {
  std::vector<regex_id> out;
  for (const auto m : members) {
    const auto& n = nodes_[m];
    if (n.what == what)
      out.insert(out.end(), n.members.begin(), n.members.end());
    else
      out.push_back(m);
  }
  work_ += out.size();
  std::sort(out.begin(), out.end(),
            [&](regex_id x, regex_id y) { return before(nodes_[x].print, nodes_[y].print); });
  out.erase(std::unique(out.begin(), out.end()), out.end());
  members = std::move(out);
  return !members.empty();
}

regex_id regex_pool::either_of(std::vector<regex_id> members) {
  flatten(kind::either, members);
  byte_set set;
  std::size_t sets = 0;
  for (const auto m : members) {
    if (m == anything) return anything;
    if (nodes_[m].what == kind::bytes) set |= sets_[nodes_[m].a], ++sets;
  }
  std::erase(members, nothing);
  if (sets > 1) {  // one set instead of several
    std::erase_if(members, [&](regex_id m) { return nodes_[m].what == kind::bytes; });
    members.push_back(bytes_of(set));
    flatten(kind::either, members);
  }
  const auto nullable_too = [&](regex_id m) { return m != empty && nodes_[m].nullable; };
  if (std::any_of(members.begin(), members.end(), nullable_too)) std::erase(members, empty);
  if (members.empty()) return nothing;
  if (members.size() == 1) return members[0];
  node n;
  n.what = kind::either;
  print_text text(static_cast<char>(kind::either));
  for (const auto m : members) {
    const auto& x = nodes_[m];
    n.nullable = n.nullable || x.nullable;
    n.plain = n.plain && x.plain;
    n.counted = n.counted || x.counted;
    n.depth = std::max(n.depth, static_cast<std::uint16_t>(x.depth + 1));
    text.add(x.print);
  }
  n.counted = n.counted && n.plain;
  n.print = text.done();
  n.members = std::move(members);
  return intern(std::move(n));
}

// The intersection of x{m,n} and c{p,q} is one loop over x if every x is a c, and no longer text of c begins
// as an x does. A pattern together with a length is such a pair. nullopt: not known to be one.
std::optional<regex_id> regex_pool::one_loop(regex_id some, regex_id all) {
  const auto &x = nodes_[some], &c = nodes_[all];
  if (x.what != kind::repeat || c.what != kind::repeat || !has_all_bytes(c.a, x.a)) return std::nullopt;
  const auto& set = sets_[nodes_[x.a].a];
  const bool none_longer = std::ranges::all_of(nodes_[c.a].members, [&](regex_id m) {
    const auto& n = nodes_[m];
    if (n.what == kind::bytes) return true;
    return n.what == kind::concat && nodes_[n.a].what == kind::bytes && (sets_[nodes_[n.a].a] & set).none();
  });
  if (!none_longer) return std::nullopt;
  const auto min = std::max(x.min, c.min), max = std::min(x.max, c.max);
  return min > max ? regex_id{nothing} : repeat_of(x.a, min, max);
}

void regex_pool::join_loops(std::vector<regex_id>& members) {
  constexpr std::size_t most_members = 8;
  if (members.size() > most_members) return;
  for (std::size_t i = 0; i < members.size(); ++i)
    for (std::size_t k = 0; k < members.size(); ++k) {
      const auto one = i == k ? std::nullopt : one_loop(members[i], members[k]);
      if (!one) continue;
      members[i] = *one;
      members.erase(members.begin() + static_cast<std::ptrdiff_t>(k));
      flatten(kind::both, members);
      return join_loops(members);  // the list has one member less now
    }
}

regex_id regex_pool::both_of(std::vector<regex_id> members) {
  flatten(kind::both, members);
  byte_set set;
  set.set();
  std::size_t sets = 0;
  for (const auto m : members) {
    if (m == nothing) return nothing;
    if (nodes_[m].what == kind::bytes) set &= sets_[nodes_[m].a], ++sets;
  }
  std::erase(members, anything);
  if (sets > 1) {
    if (set.none()) return nothing;
    std::erase_if(members, [&](regex_id m) { return nodes_[m].what == kind::bytes; });
    members.push_back(bytes_of(set));
    flatten(kind::both, members);
  }
  join_loops(members);
  if (std::find(members.begin(), members.end(), regex_id{nothing}) != members.end()) return nothing;
  if (members.empty()) return anything;
  if (members.size() == 1) return members[0];
  if (std::find(members.begin(), members.end(), regex_id{empty}) != members.end()) {
    const bool all =
        std::all_of(members.begin(), members.end(), [&](regex_id m) { return nodes_[m].nullable; });
    return all ? empty : nothing;
  }
  node n;
  n.what = kind::both;
  n.nullable = true;
  n.plain = false;
  print_text text(static_cast<char>(kind::both));
  for (const auto m : members) {
    const auto& x = nodes_[m];
    n.nullable = n.nullable && x.nullable;
    n.depth = std::max(n.depth, static_cast<std::uint16_t>(x.depth + 1));
    text.add(x.print);
  }
  n.print = text.done();
  n.members = std::move(members);
  return intern(std::move(n));
}

regex_id regex_pool::complement_of(regex_id r) {
  const auto& x = nodes_[r];
  if (x.what == kind::complement) return x.a;
  node n;
  n.what = kind::complement;
  n.a = r;
  n.nullable = !x.nullable;
  n.plain = r == nothing;
  n.depth = static_cast<std::uint16_t>(x.depth + 1);
  n.print = print_text(static_cast<char>(kind::complement)).add(x.print).done();
  return intern(std::move(n));
}

regex_id regex_pool::repeat_of(regex_id r, std::uint32_t min, std::uint32_t max) {
  if (max == 0 || r == empty) return empty;
  if (r == nothing) return min == 0 ? empty : nothing;
  if (r == anything) return anything;
  const auto& x = nodes_[r];
  if (x.nullable) min = 0;
  if (min == 1 && max == 1) return r;
  if (x.nullable && max == 1) return r;
  if (x.what == kind::repeat && max == unbounded && x.max == unbounded && x.min <= 1 && min <= 1)
    return repeat_of(x.a, x.min == 1 && min == 1 ? 1 : 0, unbounded);  // (r*)* and the like
  node n;
  n.what = kind::repeat;
  n.a = r;
  n.min = min, n.max = max;
  n.nullable = min == 0;
  n.plain = x.plain;
  n.counted = x.plain && (x.counted || min > 1 || (max != unbounded && max > 1));
  n.depth = static_cast<std::uint16_t>(x.depth + 1);
  n.print = print_text(static_cast<char>(kind::repeat)).add(x.print).add(min).add(max).done();
  return intern(std::move(n));
}

// The operations of builders.

regex_id regex_pool::bytes(const byte_set& set) { return bytes_of(set); }

regex_id regex_pool::byte(unsigned char b) {
  auto& known = tables_->single[b];
  if (known == nothing) {
    byte_set set;
    set.set(b);
    known = bytes_of(set);
  }
  return known;
}

regex_id& regex_pool::remembered(const std::string& name) {
  return tables_->by_name.try_emplace(name, nothing).first->second;
}

regex_id regex_pool::literal(std::string_view text) {
  regex_id r = empty;
  for (auto i = text.size(); i-- > 0;) r = concat_of(byte(static_cast<unsigned char>(text[i])), r);
  return r;
}

regex_id regex_pool::literals(std::vector<std::string> texts) {
  std::sort(texts.begin(), texts.end());
  texts.erase(std::unique(texts.begin(), texts.end()), texts.end());
  if (budget_) budget_->burn(texts.size());
  std::size_t bytes = 0;
  for (const auto& t : texts) bytes += t.size();
  if (texts.size() > one_of_texts::few_texts || bytes > one_of_texts::few_bytes) {
    auto all = std::make_shared<const one_of_texts>(std::move(texts));
    const auto start = all->start();
    return language(std::move(all), start);
  }
  // The tree is built from the last text to the first: open[d] holds the branches found at depth d of the
  // path of the text before.
  std::vector<std::vector<regex_id>> open(1);
  const auto close = [&](std::string_view path, std::size_t depth) {
    while (open.size() > depth + 1) {
      const auto below = either_of(std::move(open.back()));
      open.pop_back();
      const auto b = static_cast<unsigned char>(path[open.size() - 1]);
      open.back().push_back(concat_of(byte(b), below));
    }
  };
  std::string_view last;
  for (const auto& text : texts) {
    const auto shared =
        std::mismatch(last.begin(), last.end(), text.begin(), text.end()).first - last.begin();
    close(last, static_cast<std::size_t>(shared));
    open.resize(text.size() + 1);
    open.back().push_back(empty);
    last = text;
  }
  close(last, 0);
  return either_of(std::move(open.front()));
}

regex_id regex_pool::concat(regex_id a, regex_id b) { return concat_of(a, b); }

regex_id regex_pool::concat(std::span<const regex_id> parts) {
  regex_id r = empty;
  for (auto i = parts.size(); i-- > 0;) r = concat_of(parts[i], r);
  return r;
}

regex_id regex_pool::either(regex_id a, regex_id b) { return either_of({a, b}); }
regex_id regex_pool::either(std::span<const regex_id> all) { return either_of({all.begin(), all.end()}); }
regex_id regex_pool::both(regex_id a, regex_id b) { return both_of({a, b}); }
regex_id regex_pool::complement(regex_id r) { return complement_of(r); }
regex_id regex_pool::repeat(regex_id r, std::uint32_t min, std::uint32_t max) {
  return repeat_of(r, min, max);
}

}  // namespace weir::core::grammar
