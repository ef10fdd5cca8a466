#include "core/grammar/symbols.h"

#include <algorithm>
#include <optional>
#include <unordered_map>

namespace weir::core::grammar {
namespace {

using part_kind = rules::kind;

// Which parts some text satisfies, and which the empty text satisfies: the least solution of their equations.
// When the facts of a part change, the parts that need it are looked at again.
class part_facts {
 public:
  part_facts(const rules& r, const std::vector<regex_id>& languages) : rules_(r), languages_(languages) {
    const auto n = r.part_count();
    productive_.assign(n, false);
    nullable_.assign(n, false);
    list_waiting(n);
    for (part_id p = 0; p < n; ++p) look(p);
    while (!open_.empty()) {
      const auto p = open_.back();
      open_.pop_back();
      for (auto i = first_[p]; i < first_[p + 1]; ++i) look(waiting_[i]);
    }
  }
  bool productive(part_id p) const { return productive_[p]; }
  bool nullable(part_id p) const { return nullable_[p]; }

 private:
  template <class Visit>
  void each_needed(part_id p, Visit visit) const {
    const auto& x = rules_.at(p);
    for (const auto y : x.parts) visit(y);
    if (x.what == part_kind::repeat) visit(x.ref);
    if (x.what == part_kind::call) visit(rules_.rule_at(x.ref).body);
  }

  void list_waiting(part_id n) {
    first_.assign(n + 2, 0);
    for (part_id p = 0; p < n; ++p) each_needed(p, [&](part_id y) { ++first_[y + 2]; });
    for (part_id p = 2; p < n + 2; ++p) first_[p] += first_[p - 1];
    waiting_.resize(first_[n + 1]);
    for (part_id p = 0; p < n; ++p) each_needed(p, [&](part_id y) { waiting_[first_[y + 1]++] = p; });
  }

  void look(part_id p) {
    const auto& x = rules_.at(p);
    rules_.burn(1 + x.parts.size() / 16);
    bool can = false, can_be_empty = false;
    const auto all = [&](const std::vector<bool>& fact) {
      return std::all_of(x.parts.begin(), x.parts.end(), [&](part_id y) { return fact[y]; });
    };
    const auto any = [&](const std::vector<bool>& fact) {
      return std::any_of(x.parts.begin(), x.parts.end(), [&](part_id y) { return fact[y]; });
    };
    switch (x.what) {
      case part_kind::nothing:
        break;
      case part_kind::empty:
        can = can_be_empty = true;
        break;
      case part_kind::terminal:
        can = languages_[p] != regex_pool::nothing;
        can_be_empty = can && rules_.regex().nullable(languages_[p]);
        break;
      case part_kind::tokens:
        can = true;
        break;
      case part_kind::sequence:
        can = all(productive_), can_be_empty = all(nullable_);
        break;
      case part_kind::choice:
        can = any(productive_), can_be_empty = any(nullable_);
        break;
      case part_kind::repeat:
        can = x.min == 0 || productive_[x.ref];
        can_be_empty = x.min == 0 || nullable_[x.ref];
        break;
      case part_kind::call: {
        const auto body = rules_.rule_at(x.ref).body;
        can = productive_[body], can_be_empty = nullable_[body];
        break;
      }
    }
    if (can == productive_[p] && can_be_empty == nullable_[p]) return;
    productive_[p] = can;
    nullable_[p] = can_be_empty;
    open_.push_back(p);
  }

  const rules& rules_;
  const std::vector<regex_id>& languages_;
  std::vector<bool> productive_, nullable_;
  std::vector<std::uint32_t> first_;  // [part] where the parts that need it begin in waiting_
  std::vector<part_id> waiting_;
  std::vector<part_id> open_;
};

class symbol_maker {
 public:
  symbol_maker(const rules& r, const token_trie& trie, const std::vector<token_id>& ending)
      : rules_(r), trie_(trie), ending_(ending), languages_(spelled_languages()), facts_(r, languages_) {}

  result<symbol_table> make() {
    if (const auto failure = rules_.failure(); !failure.empty())
      return bad_param("", "the constraint is too large: {}", failure);
    if (auto e = resolve_tokens()) return *e;
    if (!facts_.productive(rules_.root())) return blame();
    out_.dots.resize(2);
    out_.start = chain(rules_.root(), dot_end);
    while (!open_.empty()) {  // rules that were mentioned: their alternatives
      const auto [s, body] = open_.back();
      open_.pop_back();
      std::vector<dot_id> alternatives;
      const auto& x = rules_.at(body);
      if (x.what == part_kind::choice) {
        for (const auto y : x.parts)
          if (facts_.productive(y)) alternatives.push_back(chain(y, dot_end));
      } else {
        alternatives.push_back(chain(body, dot_end));
      }
      std::sort(alternatives.begin(), alternatives.end());
      alternatives.erase(std::unique(alternatives.begin(), alternatives.end()), alternatives.end());
      std::erase(alternatives, dot_end);  // the empty one: `nullable` says it
      out_.symbols[s].alternatives = std::move(alternatives);
    }
    return std::move(out_);
  }

 private:
  // The terminals' languages, cut to what the vocabulary can spell. Index: part.
  std::vector<regex_id> spelled_languages() {
    auto pool = rules_.share_regex();
    std::vector<regex_id> out(rules_.part_count(), regex_pool::nothing);
    const auto texts =
        trie_.complete() ? regex_pool::anything : pool->any_number(one_of(*pool, trie_.alphabet()));
    for (part_id p = 0; p < rules_.part_count(); ++p) {
      const auto& x = rules_.at(p);
      if (x.what != part_kind::terminal) continue;
      const auto language = texts == regex_pool::anything ? x.ref : pool->both(x.ref, texts);
      if (pool->live(language)) out[p] = language;
    }
    return out;
  }

  std::optional<error> resolve_tokens() {
    for (part_id p = 0; p < rules_.part_count(); ++p) {
      const auto& x = rules_.at(p);
      if (x.what != part_kind::tokens || token_sets_.count(x.ref)) continue;
      const auto& names = rules_.token_set(x.ref);
      std::vector<token_id> ids;
      for (const auto& name : names.names) {
        std::optional<token_id> id;
        if (const auto* given = std::get_if<token_id>(&name); given && trie_.known(*given)) id = *given;
        if (const auto* spelled = std::get_if<std::string>(&name)) id = trie_.words().id_of(*spelled);
        if (!id) {
          const auto text = std::holds_alternative<token_id>(name) ? std::to_string(std::get<token_id>(name))
                                                                   : std::get<std::string>(name);
          return bad_param("", "the vocabulary has no token {}", text);
        }
        ids.push_back(*id);
      }
      std::sort(ids.begin(), ids.end());
      ids.erase(std::unique(ids.begin(), ids.end()), ids.end());
      if (names.negated) ids = all_but(std::move(ids));
      token_sets_[x.ref] = static_cast<std::uint32_t>(out_.token_sets.size());
      out_.token_sets.push_back(std::move(ids));
    }
    return std::nullopt;
  }

  std::vector<token_id> all_but(std::vector<token_id> ids) const {
    ids.insert(ids.end(), ending_.begin(), ending_.end());
    std::sort(ids.begin(), ids.end());
    std::vector<token_id> out;
    rules_.burn(trie_.vocab_size() / 16);
    for (std::uint32_t id = 0; id < trie_.vocab_size(); ++id) {
      const auto i = static_cast<token_id>(id);
      const bool exists = !trie_.words().token_bytes(i).empty();
      if (exists && !std::binary_search(ids.begin(), ids.end(), i)) out.push_back(i);
    }
    return out;
  }

  // The place that makes the root impossible: the way down along parts that nothing satisfies.
  error blame() const {
    std::string where;
    std::vector<bool> seen(rules_.part_count(), false);
    auto p = rules_.root();
    while (!seen[p]) {
      seen[p] = true;
      const auto& x = rules_.at(p);
      std::optional<part_id> next;
      if (x.what == part_kind::call) {
        where = rules_.where(x.ref);
        next = rules_.rule_at(x.ref).body;
      } else if (x.what == part_kind::repeat) {
        next = x.ref;
      } else {
        for (const auto y : x.parts)
          if (!facts_.productive(y) && !next) next = y;
      }
      if (!next) break;
      p = *next;
    }
    if (where.empty()) return bad_param("", "no text satisfies the constraint");
    return bad_param("", "no text satisfies the constraint: {} is to blame", where);
  }

  dot_id make_dot(symbol_id what, std::uint32_t min, std::uint32_t max, dot_id next) {
    rules_.burn();
    const auto hash = mixed(mixed(what, next), std::uint64_t{min} << 32 | max);
    const auto known = known_dots_.find(hash, [&](dot_id d) {
      const auto& x = out_.dots[d];
      return x.what == what && x.min == min && x.max == max && x.next == next;
    });
    if (known != id_table::none) return known;
    const auto made = static_cast<dot_id>(out_.dots.size());
    out_.dots.push_back({what, min, max, next});
    known_dots_.add(hash, made);
    return made;
  }

  // The dots of a part, with `next` behind them. REQUIRES: the part is productive. There is no recursion on
  // input: a sequence has no sequence in it, and a repeated part or a choice becomes a symbol, whose own
  // parts are made later.
  dot_id chain(part_id p, dot_id next) {
    const auto& x = rules_.at(p);
    if (x.what == part_kind::empty) return next;
    if (x.what == part_kind::sequence) {
      for (auto i = x.parts.size(); i-- > 0;) next = link(x.parts[i], next);
      return next;
    }
    return link(p, next);
  }

  dot_id link(part_id p, dot_id next) {
    const auto& x = rules_.at(p);
    if (x.what != part_kind::repeat) return make_dot(symbol_of(p), facts_.nullable(p) ? 0 : 1, 1, next);
    if (!facts_.productive(x.ref)) return next;  // zero times
    return make_dot(symbol_of(x.ref), facts_.nullable(x.ref) ? 0 : x.min, x.max, next);
  }

  symbol_id symbol_of(part_id p) {
    const auto& x = rules_.at(p);
    if (known_.empty()) known_.assign(rules_.part_count(), id_table::none);
    if (known_[p] != id_table::none) return known_[p];
    const auto made = known_[p] = static_cast<symbol_id>(out_.symbols.size());
    symbol s;
    s.nullable = facts_.nullable(p);
    if (x.what == part_kind::terminal) {
      s.what = symbol::kind::terminal;
      s.language = languages_[p];
    } else if (x.what == part_kind::tokens) {
      s.what = symbol::kind::tokens;
      s.set = token_sets_.at(x.ref);
    } else {
      open_.emplace_back(made, x.what == part_kind::call ? rules_.rule_at(x.ref).body : p);
    }
    out_.symbols.push_back(std::move(s));
    return made;
  }

  const rules& rules_;
  const token_trie& trie_;
  const std::vector<token_id>& ending_;
  std::vector<regex_id> languages_;
  part_facts facts_;
  symbol_table out_;
  std::unordered_map<std::uint32_t, std::uint32_t> token_sets_;  // index in the rules: index in the table
  std::vector<symbol_id> known_;                                 // of parts
  id_table known_dots_;
  std::vector<std::pair<symbol_id, part_id>> open_;
};

}  // namespace

std::vector<bool> satisfiable_parts(const rules& r) {
  auto pool = r.share_regex();
  std::vector<regex_id> languages(r.part_count(), regex_pool::nothing);
  for (part_id p = 0; p < r.part_count(); ++p)
    if (const auto& x = r.at(p); x.what == part_kind::terminal && pool->live(x.ref)) languages[p] = x.ref;
  const part_facts facts(r, languages);
  std::vector<bool> out(r.part_count());
  for (part_id p = 0; p < r.part_count(); ++p) out[p] = facts.productive(p);
  return out;
}

result<symbol_table> make_symbols(const rules& r, const token_trie& trie,
                                  const std::vector<token_id>& ending) {
  return symbol_maker(r, trie, ending).make();
}

}  // namespace weir::core::grammar
