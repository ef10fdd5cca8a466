#include "core/grammar/stacks.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <tuple>

namespace weir::core::grammar {
namespace {

std::uint64_t with_entry(std::uint64_t hash, const stack_entry& e) {
  return mixed(mixed(hash, std::uint64_t{e.at} << 32 | e.below), std::uint64_t{e.min} << 32 | e.max);
}

// A set of entries, each with the number of its group.
class entry_set {
 public:
  // False: the set has it already.
  bool insert(std::uint32_t group, const stack_entry& e) {
    const auto hash = with_entry(group, e);
    const std::pair one(group, e);
    if (places_.find(hash, [&](std::uint32_t i) { return all_[i] == one; }) != id_table::none) return false;
    places_.add(hash, size());
    all_.push_back(one);
    return true;
  }
  std::uint32_t size() const { return static_cast<std::uint32_t>(all_.size()); }

 private:
  id_table places_;
  std::vector<std::pair<std::uint32_t, stack_entry>> all_;
};

// For each group, a list of the groups that wait for it.
class waiting_lists {
 public:
  explicit waiting_lists(std::size_t groups) : first_(groups, none) {}
  void add(std::uint32_t of, std::uint32_t who) {
    links_.push_back({who, first_[of]});
    first_[of] = static_cast<std::uint32_t>(links_.size() - 1);
  }
  template <class Visit>
  void each(std::uint32_t of, Visit visit) const {
    for (auto i = first_[of]; i != none; i = links_[i].next) visit(links_[i].who);
  }

 private:
  static constexpr std::uint32_t none = 0xFFFF'FFFF;
  struct link {
    std::uint32_t who = 0, next = none;
  };
  std::vector<std::uint32_t> first_;
  std::vector<link> links_;
};

}  // namespace

// Expands one node: finds every symbol that may come next and, for each, the set of what follows it.
class expander {
 public:
  expander(stack_store& store, stack_id of) : store_(store), symbols_(store.symbols_), of_(of) {}

  expansion run() {
    for (const auto& e : store_.entries(of_)) add(item_of(e));
    while (!open_.empty() && !out_.failed) {
      const auto i = open_.back();
      open_.pop_back();
      advance(i);
      if (seen_.size() > stack_store::most_entries) out_.failed = true;
    }
    if (!out_.failed) close();
    if (!out_.failed) name_nodes();
    if (out_.failed) return expansion{{}, false, true};
    make_heads();
    return std::move(out_);
  }

 private:
  // `below` of an item is a node of the store, or of_group with the index in groups_ of a symbol's group.
  static constexpr std::uint32_t of_group = 0x8000'0000;
  using item = stack_entry;
  struct group {
    symbol_id what = 0;
    std::vector<item> entries;            // each once
    std::vector<std::uint32_t> includes;  // groups whose entries belong to this one
    std::optional<stack_id> node;
  };

  static item item_of(const stack_entry& e) { return e; }

  void add(item i) {
    if (seen_.insert(0, i)) open_.push_back(i);
  }

  item at_dot(dot_id d, stack_id below) const {
    if (d <= dot_accept) return {d, 0, 0, below};
    const auto& x = symbols_.dots[d];
    return {d, x.min, x.max, below};
  }

  void advance(const item& i) {
    if (i.at == dot_accept) {
      out_.may_end = true;
      return;
    }
    if (i.at == dot_end) {
      // A rule that began in this expansion matched the empty text: its caller has gone on behind it already.
      if (i.below & of_group) return;
      for (const auto& e : store_.entries(i.below)) add(item_of(e));
      return;
    }
    const auto& d = symbols_.dots[i.at];
    const auto behind = at_dot(d.next, i.below);
    if (i.min == 0) add(behind);
    const auto g = group_of(d.what, i.max > 0);
    if (!g) return;
    const auto left = i.max == unbounded ? unbounded : i.max - 1;
    const auto rest = left > 0 ? item{i.at, i.min == 0 ? 0 : i.min - 1, left, i.below} : behind;
    follow(*g, rest);
  }

  // Adds to a symbol's group what follows the symbol.
  void follow(std::uint32_t g, const item& rest) {
    if (rest.at != dot_end)
      add_to(g, rest);
    else if (rest.below & of_group)
      groups_[g].includes.push_back(rest.below & ~of_group);
    else
      for (const auto& e : store_.entries(rest.below)) add_to(g, e);
  }

  bool add_to(std::uint32_t g, const item& e) {
    if (!entries_.insert(g, e)) return false;
    groups_[g].entries.push_back(e);
    return true;
  }

  std::optional<std::uint32_t> group_of(symbol_id s, bool wanted) {
    if (!wanted) return std::nullopt;
    const auto hash = mixed(0, s);
    const auto known = by_symbol_.find(hash, [&](std::uint32_t g) { return groups_[g].what == s; });
    if (known != id_table::none) return known;
    const auto made = static_cast<std::uint32_t>(groups_.size());
    by_symbol_.add(hash, made);
    groups_.emplace_back();
    groups_.back().what = s;
    for (const auto a : symbols_.symbols[s].alternatives) add(at_dot(a, of_group | made));
    return made;
  }

  // Every group gets the entries of the groups that it includes, and of those that these include. An entry
  // goes once to each group, so that a long chain of groups with few entries stays cheap.
  void close() {
    waiting_lists users(groups_.size());
    std::vector<std::pair<std::uint32_t, item>> open;
    for (std::uint32_t g = 0; g < groups_.size(); ++g) {
      auto& included = groups_[g].includes;
      std::sort(included.begin(), included.end());
      included.erase(std::unique(included.begin(), included.end()), included.end());
      for (const auto x : included) users.add(x, g);
      for (const auto& e : groups_[g].entries) open.emplace_back(g, e);
    }
    std::size_t total = open.size();
    while (!open.empty() && total <= stack_store::most_entries * 4) {
      const auto [g, e] = open.back();
      open.pop_back();
      users.each(g, [&, e = e](std::uint32_t u) {
        if (!add_to(u, e)) return;
        open.emplace_back(u, e);
        ++total;
      });
    }
    if (total > stack_store::most_entries * 4) out_.failed = true;
  }

  template <class Visit>
  void each_group_below(const group& g, Visit visit) const {
    for (const auto& e : g.entries)
      if (e.below & of_group) visit(e.below & ~of_group);
  }

  // Gives every group a node. Groups that lie below themselves get named nodes; the others are interned by
  // content, each after the groups below it.
  void name_nodes() {
    intern_what_can_be();
    std::vector<bool> cyclic(groups_.size());
    std::vector<std::uint32_t> users(groups_.size(), 0);
    std::vector<std::uint32_t> free;
    for (const auto& g : groups_)
      if (!g.node) each_group_below(g, [&](std::uint32_t x) { ++users[x]; });
    for (std::uint32_t g = 0; g < groups_.size(); ++g) {
      cyclic[g] = !groups_[g].node;
      if (cyclic[g] && users[g] == 0) free.push_back(g);
    }
    while (!free.empty()) {  // below no other group, so on no cycle
      const auto g = free.back();
      free.pop_back();
      cyclic[g] = false;
      each_group_below(groups_[g], [&](std::uint32_t x) {
        if (--users[x] == 0 && !groups_[x].node) free.push_back(x);
      });
    }
    std::vector<std::uint32_t> named;
    for (std::uint32_t g = 0; g < groups_.size(); ++g)
      if (cyclic[g]) named.push_back(g);
    if (named.empty()) return;
    if (!reuse_older(named)) make_named(named);
    intern_what_can_be();
  }

  void intern_what_can_be() {
    std::vector<std::uint32_t> missing(groups_.size(), 0);
    waiting_lists users(groups_.size());
    std::vector<std::uint32_t> ready;
    for (std::uint32_t g = 0; g < groups_.size(); ++g) {
      if (groups_[g].node) continue;
      each_group_below(groups_[g], [&](std::uint32_t x) {
        if (groups_[x].node) return;
        ++missing[g];
        users.add(x, g);
      });
      if (missing[g] == 0) ready.push_back(g);
    }
    while (!ready.empty()) {
      const auto g = ready.back();
      ready.pop_back();
      groups_[g].node = store_.intern(resolved(groups_[g], {}));
      users.each(g, [&](std::uint32_t u) {
        if (--missing[u] == 0) ready.push_back(u);
      });
    }
  }

  // The entries of a group, with nodes in place of the groups below. `as`: nodes of groups without one.
  std::vector<stack_entry> resolved(const group& g, const std::map<std::uint32_t, stack_id>& as) const {
    std::vector<stack_entry> out;
    for (auto e : g.entries) {
      if (e.below & of_group) {
        const auto x = e.below & ~of_group;
        const auto& node = groups_[x].node;
        e.below = node ? *node : as.at(x);
      }
      out.push_back(e);
    }
    std::sort(out.begin(), out.end());
    out.erase(std::unique(out.begin(), out.end()), out.end());
    return out;
  }

  // Uses nodes that an older expansion named, if they satisfy the equations of these groups. False: none do.
  bool reuse_older(const std::vector<std::uint32_t>& named) {
    std::set<stack_id> origins;
    for (const auto g : named)
      for (const auto& e : groups_[g].entries)
        if (!(e.below & of_group) && store_.nodes_[e.below].named)
          origins.insert(store_.nodes_[e.below].origin);
    for (const auto origin : origins) {
      std::map<std::uint32_t, stack_id> as;
      for (const auto g : named)
        if (const auto at = store_.by_name_.find(key(origin, groups_[g].what)); at != store_.by_name_.end())
          as[g] = at->second;
      if (as.size() != named.size()) continue;
      const bool same = std::all_of(named.begin(), named.end(), [&](std::uint32_t g) {
        return resolved(groups_[g], as) == store_.entries(as[g]);
      });
      if (!same) continue;
      for (const auto g : named) groups_[g].node = as[g];
      return true;
    }
    return false;
  }

  void make_named(const std::vector<std::uint32_t>& named) {
    for (const auto g : named) {
      stack_store::node n;
      n.named = true;
      n.origin = of_;
      n.what = groups_[g].what;
      groups_[g].node = store_.nodes_.push(std::move(n));
      store_.by_name_[key(of_, groups_[g].what)] = *groups_[g].node;
    }
    for (const auto g : named) {
      auto& entries = store_.nodes_[*groups_[g].node].entries;
      entries = resolved(groups_[g], {});
      store_.bytes_ += sizeof(stack_store::node) + entries.size() * sizeof(stack_entry);
    }
  }

  static std::uint64_t key(stack_id origin, symbol_id what) { return std::uint64_t{origin} << 32 | what; }

  void make_heads() {
    for (const auto& g : groups_) {
      const auto& s = symbols_.symbols[g.what];
      if (s.what == symbol::kind::terminal) out_.heads.push_back({s.language, *g.node});
      if (s.what == symbol::kind::tokens) out_.heads.push_back({head::token_set | s.set, *g.node});
    }
    std::sort(out_.heads.begin(), out_.heads.end());
  }

  stack_store& store_;
  const symbol_table& symbols_;
  const stack_id of_;
  expansion out_;
  entry_set seen_;  // of group 0
  std::vector<item> open_;
  std::vector<group> groups_;
  entry_set entries_;   // of groups_
  id_table by_symbol_;  // groups_
};

stack_store::stack_store(const symbol_table& symbols) : symbols_(symbols) {
  const auto end = intern({{dot_accept, 0, 0, 0}});
  const auto d = symbols.start;
  start_ = d == dot_end ? end : intern({{d, symbols.dots[d].min, symbols.dots[d].max, end}});
}

std::uint64_t stack_store::hash(const std::vector<stack_entry>& entries) {
  std::uint64_t h = entries.size();
  for (const auto& e : entries) h = with_entry(h, e);
  return h;
}

stack_id stack_store::intern(std::vector<stack_entry> entries) {
  std::sort(entries.begin(), entries.end());
  entries.erase(std::unique(entries.begin(), entries.end()), entries.end());
  const auto h = hash(entries);
  const auto known = by_content_.find(h, [&](stack_id s) { return nodes_[s].entries == entries; });
  if (known != id_table::none) return known;
  node n;
  n.counted = std::ranges::any_of(entries, [&](const stack_entry& e) {
    return e.at != dot_accept && (e.min > 1 || (e.max > 1 && e.max != unbounded) || nodes_[e.below].counted);
  });
  bytes_ += sizeof(node) + entries.size() * sizeof(stack_entry) + 64;
  n.entries = std::move(entries);
  const auto id = nodes_.push(std::move(n));
  by_content_.add(h, id);
  return id;
}

stack_id stack_store::both(stack_id x, stack_id y) {
  if (x == y) return x;
  auto all = entries(x);
  all.insert(all.end(), entries(y).begin(), entries(y).end());
  return intern(std::move(all));
}

const expansion& stack_store::expand(stack_id s) {
  if (const auto* known = known_expansion(s)) return *known;
  auto made = std::make_unique<expansion>(expander(*this, s).run());
  auto& n = nodes_[s];
  bytes_ += sizeof(expansion) + made->heads.size() * sizeof(head);
  n.owned = std::move(made);
  n.expanded.store(n.owned.get(), std::memory_order_release);
  return *n.owned;
}

// Each repetition takes at least one byte: one that takes none is not counted (dot::min). Nodes below
// themselves stay as they are.
stack_id stack_store::within(stack_id s, std::uint32_t horizon) {
  if (!nodes_[s].counted) return s;
  const auto key = [&](stack_id x) { return std::uint64_t{horizon} << 32 | x; };
  std::vector<stack_id> open{s};
  while (!open.empty()) {
    const auto x = open.back();
    if (cut_.count(key(x))) {
      open.pop_back();
      continue;
    }
    bool waits = false;
    for (const auto& e : entries(x))
      if (nodes_[e.below].counted && !cut_.count(key(e.below))) {
        open.push_back(e.below);
        waits = true;
      }
    if (waits) continue;
    auto all = entries(x);
    for (auto& e : all) {
      if (nodes_[e.below].counted) e.below = cut_[key(e.below)];
      if (e.max > horizon) e.max = unbounded;
      e.min = std::min(e.min, horizon + 1);
    }
    cut_[key(x)] = intern(std::move(all));
    bytes_ += 48;
  }
  return cut_[key(s)];
}

}  // namespace weir::core::grammar
