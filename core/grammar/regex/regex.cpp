#include "core/grammar/regex/regex.h"

#include <algorithm>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "core/grammar/regex/regex_context.h"
#include "core/grammar/regex/regex_scanner.h"

namespace weir::core::grammar {
namespace {

constexpr int max_nesting = 200;

struct flags {
  bool ignore_case = false, dot_all = false;
};

// A look-ahead at the beginning of an alternative of the expression; it applies to the whole text.
struct look_ahead {
  fragment what;
  bool positive = true;
};

// Recursive descent; the recursion is bounded by max_nesting.
class parser {
 public:
  parser(regex_pool& pool, std::string_view text, const regex_options& o)
      : pool_(pool), in_(text), options_(o), make_(pool, o.as) {}

  regex_id parse() {
    flags f{options_.ignore_case, options_.dot_all};
    std::vector<regex_id> out;
    do out.push_back(top_alternative(f));
    while (in_.take('|'));
    if (!in_.done()) in_.refuse("a closing parenthesis without its opening one");
    return pool_.either(out);
  }

 private:
  regex_id top_alternative(flags& f) {
    std::vector<look_ahead> looks;
    std::vector<fragment> parts;
    bool anchored = options_.how == regex_options::match::whole;
    while (in_.more() && in_.peek() != '|' && in_.peek() != ')') {
      const auto at = in_.offset();
      if (in_.take("(?=") || in_.take("(?!")) {
        if (!anchored || std::any_of(parts.begin(), parts.end(), is_text))
          in_.refuse_at(at, "look-ahead that is not at the start of an anchored branch");
        const bool positive = in_.text()[at + 2] == '=';
        looks.push_back({group_body(f), positive});
        if (in_.at_quantifier()) in_.refuse("a repeated look-ahead");
        continue;
      }
      anchored = anchored || in_.peek() == '^';
      parts.push_back(term(f));
    }
    const auto body = joined(parts);
    auto out = options_.how == regex_options::match::whole ? make_.whole(body) : make_.search(body);
    for (const auto& look : looks) {
      const auto ahead = make_.search(look.what, true);
      out = pool_.both(out, look.positive ? ahead : pool_.complement(ahead));
    }
    return out;
  }

  // Whether the fragment is more than the anchor ^ or flags.
  static bool is_text(const fragment& f) {
    return f.of != fragments::beginning().of && f.of != fragment::plain(regex_pool::empty).of;
  }

  fragment joined(const std::vector<fragment>& parts) {
    auto out = fragment::plain(regex_pool::empty);
    for (auto i = parts.size(); i-- > 0;) out = make_.concat(parts[i], out);
    return out;
  }

  // Reads from behind an opening parenthesis to behind the closing one.
  fragment group_body(flags f) {
    const auto opened = in_.offset();
    if (++nesting_ > max_nesting) in_.refuse("groups nested deeper than 200");
    auto out = fragment{};
    do {
      std::vector<fragment> parts;
      while (in_.more() && in_.peek() != '|' && in_.peek() != ')') parts.push_back(term(f));
      out = make_.either(out, joined(parts));
    } while (in_.take('|'));
    if (!in_.take(')')) in_.refuse_at(opened, "a group that is not closed");
    --nesting_;
    return out;
  }

  // An atom with its quantifier. `f`: flags that "(?i)" changes from here to the end of the group.
  fragment term(flags& f) {
    const auto at = in_.offset();
    bool repeatable = true;
    auto out = atom(f, repeatable);
    const auto count = in_.quantifier();
    if (!count) return out;
    if (!repeatable) in_.refuse_at(at, "a repeated assertion");
    const auto repeated = make_.repeat(out, count->min, count->max);
    if (!repeated) in_.refuse_at(at, "\\b and \\B in what may be repeated more than 16 times");
    return *repeated;
  }

  fragment atom(flags& f, bool& repeatable) {
    if (in_.at_quantifier()) in_.refuse("a quantifier with nothing to repeat");
    if (in_.peek() == '(') return group(f, repeatable);
    if (in_.peek() == '[') return one_of(in_.character_class(f.ignore_case));
    if (in_.take('.')) return one_of(f.dot_all ? code_points::all() : ecma_dot());
    const auto assertion = [&](const fragment& what) {
      repeatable = false;
      return what;
    };
    if (in_.take('^') || in_.take("\\A")) return assertion(fragments::beginning());
    if (in_.take('$') || in_.take("\\z") || in_.take("\\Z")) return assertion(fragments::end());
    if (in_.take("\\b")) return assertion(fragments::word_border());
    if (in_.take("\\B")) return assertion(fragments::no_word_border());
    return one_of(in_.character(f.ignore_case));
  }

  fragment one_of(const code_points& set) {
    std::u32string key;
    for (const auto& r : set.ranges()) key += {r.first, r.last};
    const auto [at, is_new] = known_sets_.try_emplace(std::move(key), regex_pool::nothing);
    if (is_new) at->second = grammar::one_of(pool_, set, options_.as);
    return fragment::plain(at->second);
  }

  fragment group(flags& f, bool& repeatable) {
    const auto at = in_.offset();
    if (in_.take("(?:")) return group_body(f);
    if (in_.take("(?=") || in_.take("(?!"))
      in_.refuse_at(at, "look-ahead that is not at the start of an anchored branch");
    if (in_.take("(?<=") || in_.take("(?<!")) in_.refuse_at(at, "look-behind");
    if (in_.take("(?>")) in_.refuse_at(at, "an atomic group");
    if (in_.take("(?P<") || in_.take("(?<")) {
      in_.group_name();
      return group_body(f);
    }
    if (in_.take("(?P=")) in_.refuse_at(at, "a back-reference");
    if (in_.take("(?R") || in_.take("(?P>") || in_.take("(?&") || in_.take("(?0") || in_.take("(?1"))
      in_.refuse_at(at, "recursion");
    if (!in_.take("(?")) {
      in_.take('(');
      return group_body(f);
    }
    auto inner = f;
    in_.flags_of_group(inner.ignore_case, inner.dot_all);
    if (in_.take(':')) return group_body(inner);
    if (!in_.take(')')) in_.refuse_at(at, "this kind of group");
    f = inner;
    repeatable = false;
    return fragment::plain(regex_pool::empty);
  }

  regex_pool& pool_;
  regex_scanner in_;
  const regex_options& options_;
  fragments make_;
  std::unordered_map<std::u32string, regex_id> known_sets_;  // of code points, by their ranges
  int nesting_ = 0;
};

}  // namespace

boost::system::result<regex_id, regex_error> parse_regex(regex_pool& pool, std::string_view expression,
                                                         const regex_options& options) {
  if (expression.size() > options.max_bytes)
    return regex_error{options.max_bytes,
                       fmt::format("the expression is longer than {} bytes", options.max_bytes)};
  try {
    return {boost::system::in_place_value, parser(pool, expression, options).parse()};
  } catch (const regex_refusal& r) {
    return r.what;
  }
}

regex_id any_text(regex_pool& pool, spelling how) {
  return pool.any_number(one_of(pool, code_points::all(), how));
}

regex_id text_of_length(regex_pool& pool, std::uint32_t min, std::uint32_t max, spelling how) {
  return pool.repeat(one_of(pool, code_points::all(), how), min, max);
}

}  // namespace weir::core::grammar
