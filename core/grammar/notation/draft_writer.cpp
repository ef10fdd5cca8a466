// Writes a draft as rules: first the rules without recursion, as terminals where they are regular, then the
// recursive rules and what calls them.
#include <algorithm>
#include <limits>

#include "core/grammar/notation/draft.h"
#include "core/grammar/regex/regex.h"

namespace weir::core::grammar {
namespace {

// Most places of the automaton: of a terminal that is joined from parts, and of a terminal of Lark.
constexpr std::uint32_t most_places = 256, most_lexical_places = 100'000;
constexpr std::uint32_t many_times = 8;  // from here on, repeating a broad set makes a terminal broad

std::uint32_t sum(std::uint32_t a, std::uint32_t b) {
  const auto most = std::numeric_limits<std::uint32_t>::max();
  return a > most - b ? most : a + b;
}

class draft_writer {
 public:
  draft_writer(draft& d, std::string_view source) : draft_(d), rules_(d.out()) {
    for (std::size_t i = 0; i < source.size(); ++i)
      if (source[i] == '\n') lines_.push_back(i + 1);
  }

  void write(draft::rule_ref root) {
    find_order(root);
    for (const auto r : order_) settle(r);
    for (const auto r : rest_) {
      if (draft_.rule_at(r).lexical)
        throw grammar_refusal{draft_.rule_at(r).defined,
                              fmt::format("the terminal {} calls itself", draft_.rule_at(r).name)};
      done_[r].part = rules_.call(ids_[r] = rules_.declare(where(r)));
    }
    for (const auto r : rest_) rules_.define(ids_[r], as_part(lower(r)));
    const auto whole = as_part(done_[root]);
    rules_.set_root(done_[root].regular ? rules_.named(where(root), whole) : whole);
  }

 private:
  // A part as it is written: a language while it is regular, else a part of rules.
  struct lowered {
    bool regular = false;
    bool wide = false;    // a set of many characters, or a choice with such a set
    bool broad = false;   // repeats such a set
    bool border = false;  // a called rule that is broad: not joined with its neighbours
    std::uint32_t size = 0;
    regex_id language = regex_pool::nothing;
    part_id part = rules::nothing;
  };

  part_id as_part(const lowered& x) { return x.regular ? rules_.terminal(x.language) : x.part; }

  std::string where(draft::rule_ref r) {
    const auto& x = draft_.rule_at(r);
    const auto line = std::upper_bound(lines_.begin(), lines_.end(), x.defined) - lines_.begin();
    return fmt::format("the rule {} (line {}, column {})", x.name, line,
                       x.defined - lines_[static_cast<std::size_t>(line) - 1] + 1);
  }

  template <class Visit>
  void each_call(draft::rule_ref r, Visit visit) {
    for (auto p = draft_.rule_at(r).first_part; p < draft_.rule_at(r).end_part; ++p)
      if (draft_.at(p).what == draft::kind::call) visit(draft_.at(p).ref);
  }

  // Fills order_ with the rules that call only rules before them in order_, and rest_ with the others: rules
  // that call themselves, perhaps through other rules, and rules that call those.
  void find_order(draft::rule_ref root) {
    const auto n = draft_.all_rules().size();
    std::vector<std::vector<draft::rule_ref>> callers(n);
    std::vector<std::size_t> open_calls(n, 0);
    std::vector<bool> seen(n, false), settled(n, false);
    std::vector<draft::rule_ref> reached{root};
    seen[root] = true;
    for (std::size_t i = 0; i < reached.size(); ++i) {
      const auto r = reached[i];
      const auto& x = draft_.rule_at(r);
      if (!x.body) throw grammar_refusal{x.mentioned, fmt::format("{} is not defined", x.name)};
      each_call(r, [&](draft::rule_ref to) {
        callers[to].push_back(r);
        ++open_calls[r];
        if (!seen[to]) reached.push_back(to);
        seen[to] = true;
      });
    }
    for (const auto r : reached)
      if (open_calls[r] == 0) order_.push_back(r);
    for (std::size_t i = 0; i < order_.size(); ++i) {
      settled[order_[i]] = true;
      for (const auto c : callers[order_[i]])
        if (--open_calls[c] == 0) order_.push_back(c);
    }
    for (const auto r : reached)
      if (!settled[r]) rest_.push_back(r);
    done_.resize(n);
    ids_.resize(n);
  }

  void settle(draft::rule_ref r) {
    auto x = lower(r);
    if (draft_.rule_at(r).lexical && !x.regular)
      throw grammar_refusal{draft_.rule_at(r).defined,
                            fmt::format("the terminal {} is not regular, or larger than {} places",
                                        draft_.rule_at(r).name, most_lexical_places)};
    x.border = x.broad;
    if (!x.regular) x.part = rules_.named(where(r), x.part);
    done_[r] = x;
  }

  // Lowers the body of a rule. REQUIRES: done_ has the rules that the body calls.
  lowered lower(draft::rule_ref r) {
    const auto& rule = draft_.rule_at(r);
    most_ = rule.lexical ? most_lexical_places : most_places;
    lexical_ = rule.lexical;
    first_ = rule.first_part;
    parts_.assign(rule.end_part - rule.first_part, {});
    for (auto p = rule.first_part; p < rule.end_part; ++p)
      parts_[p - first_] = lower_part(draft_.at(p), rule);
    return parts_[*rule.body - first_];
  }

  const lowered& of(draft::part_ref p) const { return parts_[p - first_]; }

  lowered lower_part(const draft::part& p, const draft::rule& rule) {
    switch (p.what) {
      case draft::kind::language:
        return leaf(p);
      case draft::kind::written:
        return irregular(p.ref);
      case draft::kind::call:
        return done_[p.ref];
      case draft::kind::sequence:
        return sequence(p.parts);
      case draft::kind::choice:
        return choice(p.parts);
      case draft::kind::repeat:
        return repeat(p);
      case draft::kind::both:
      case draft::kind::complement:
        return operation(p, rule);
    }
    return {};
  }

  static lowered regular(regex_id language, std::uint32_t size = 0) {
    lowered out;
    out.regular = true;
    out.language = language;
    out.size = size;
    return out;
  }

  static lowered leaf(const draft::part& p) {
    auto out = regular(p.ref, p.size);
    out.wide = p.wide;
    out.broad = p.broad;
    return out;
  }

  static lowered irregular(part_id part) {
    lowered out;
    out.part = part;
    return out;
  }

  lowered joined(const std::vector<lowered>& run) {
    if (run.size() == 1) return run[0];
    auto out = regular(regex_pool::empty);
    std::vector<regex_id> languages;
    for (const auto& x : run) {
      languages.push_back(x.language);
      out.size = sum(out.size, x.size);
      out.broad = out.broad || x.broad;
    }
    out.language = draft_.regex().concat(languages);
    return out;
  }

  // Neighbours that are regular and small together become one terminal.
  lowered sequence(const std::vector<draft::part_ref>& parts) {
    std::vector<std::vector<lowered>> runs;  // each of regular parts, or of one other part
    std::uint32_t size = 0;
    bool open = false;  // the last run may take more parts
    for (const auto p : parts) {
      const auto& x = of(p);
      const bool joins = x.regular && (lexical_ || !x.border) && x.size <= most_;
      if (open && joins && sum(size, x.size) <= most_) {
        runs.back().push_back(x);
        size = sum(size, x.size);
        continue;
      }
      runs.push_back({x});
      open = joins;
      size = x.size;
    }
    if (runs.empty()) return joined({});
    if (runs.size() == 1 && runs[0][0].regular) return joined(runs[0]);
    std::vector<part_id> out;
    for (const auto& run : runs) out.push_back(run[0].regular ? as_part(joined(run)) : run[0].part);
    return irregular(rules_.sequence(out));
  }

  // The alternatives that are regular become one terminal, whatever its size: it has few states at a time.
  lowered choice(const std::vector<draft::part_ref>& parts) {
    auto whole = regular(regex_pool::nothing);
    std::vector<regex_id> languages;
    std::vector<part_id> others;
    for (const auto p : parts) {
      const auto& x = of(p);
      if (!x.regular) {
        others.push_back(x.part);
        continue;
      }
      languages.push_back(x.language);
      whole.size = sum(whole.size, x.size);
      whole.wide = whole.wide || x.wide;
      whole.broad = whole.broad || x.broad;
      whole.border = whole.border || x.border;
    }
    whole.language = draft_.regex().either(languages);
    if (others.empty()) return whole;
    if (!languages.empty()) others.push_back(as_part(whole));
    return irregular(rules_.choice(others));
  }

  lowered repeat(const draft::part& p) {
    auto x = of(p.parts[0]);
    const bool stays = x.regular && (lexical_ || !x.border) && x.size < most_;
    if (!stays) return irregular(rules_.repeat(as_part(x), p.min, p.max));
    x.broad = x.broad || (x.wide && p.max >= many_times);
    x.wide = x.wide && p.min <= 1;
    x.language = draft_.regex().repeat(x.language, p.min, p.max);
    ++x.size;
    return x;
  }

  lowered operation(const draft::part& p, const draft::rule& rule) {
    auto& pool = draft_.regex();
    auto out = regular(regex_pool::anything, 1);
    for (const auto part : p.parts) {
      const auto& x = of(part);
      if (!x.regular)
        throw grammar_refusal{rule.defined, fmt::format("& or ~ of what is not regular, in {}", rule.name)};
      out.size = sum(out.size, x.size);
      out.broad = out.broad || x.broad;
      out.language = pool.both(out.language, x.language);
    }
    if (p.what == draft::kind::complement)
      out.language = pool.both(any_text(pool), pool.complement(out.language));
    return out;
  }

  draft& draft_;
  std::vector<std::size_t> lines_{0};  // where each line of the source begins
  rules& rules_;
  std::vector<draft::rule_ref> order_, rest_;
  std::vector<lowered> done_;  // rules
  std::vector<rule_id> ids_;   // rules of rest_
  // Of the rule that is being written.
  std::vector<lowered> parts_;
  draft::part_ref first_ = 0;
  std::uint32_t most_ = most_places;
  bool lexical_ = false;
};

}  // namespace

void write_draft(draft& d, draft::rule_ref root, std::string_view source) {
  draft_writer(d, source).write(root);
}

}  // namespace weir::core::grammar
