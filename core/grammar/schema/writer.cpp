// Goals, scalars and constants. Arrays are in write_arrays.cpp, objects in write_objects.cpp.
#include "core/grammar/schema/writer.h"

#include <algorithm>
#include <set>

#include "core/grammar/schema/multiples.h"
#include "core/grammar/schema/refused.h"

namespace weir::core::grammar {

schema_writer::schema_writer(rules& out, json_space space, const value_notation& how, const json_tree& tree,
                             schema_keywords& keywords)
    : rules_(out),
      pool_(out.regex()),
      json_(out, space, how),
      spelling_(how.text()),
      tree_(tree),
      keywords_(keywords),
      texts_(pool_, tree, keywords),
      normal_form_(keywords, tree),
      validator_(tree, keywords, texts_, normal_form_) {}

part_id schema_writer::write(bool only_objects) {
  const part_id root = only_objects ? objects() : value_of({{json_tree::root, false}});
  write_waiting();
  return root;
}

// The schema's values that are objects.
part_id schema_writer::objects() {
  const goal g{{json_tree::root, false}};
  std::vector<part_id> parts;
  for (constraints& c : normal_form_.cases(g)) {
    if (c.values) {
      for (json_node_id v : c.values->all())
        if (tree_[v].kind == json_kind::object && validator_.satisfies(v, g)) parts.push_back(constant(v));
    } else if (c.types & type_object) {
      parts.push_back(object(c, g));
    }
  }
  const part_id all = rules_.choice(parts);
  return all == rules::nothing ? all : rules_.named("", all);
}

void schema_writer::write_waiting() {
  while (!waiting_.empty()) {
    const auto [rule, g] = std::move(waiting_.back());
    waiting_.pop_back();
    tree_.burn();
    write_rule(rule, g);
    if (const std::string failure = rules_.failure(); !failure.empty())
      refuse_schema(tree_.pointer(blamed(g)), "the schema is too large: {}", failure);
  }
}

std::string schema_writer::where(const goal& g) const { return tree_.pointer(blamed(g)); }

bool schema_writer::is_false(const goal& g) const {
  return std::ranges::any_of(g, [&](const literal& l) {
    return tree_[l.schema].kind == json_kind::boolean && tree_[l.schema].truth == l.negated;
  });
}

part_id schema_writer::value_of(goal g) {
  std::erase_if(g, [&](const literal& l) {  // asks nothing
    return tree_[l.schema].kind == json_kind::boolean && tree_[l.schema].truth != l.negated;
  });
  if (is_false(g)) return rules::nothing;
  if (g.empty()) return json_.value();
  g = normalised(std::move(g));
  const auto [at, made] = known_.try_emplace(g, 0);
  if (made) {
    at->second = rules_.declare(where(g));
    waiting_.emplace_back(at->second, g);
  }
  return rules_.call(at->second);
}

void schema_writer::write_rule(rule_id rule, const goal& g) {
  std::vector<part_id> parts;
  for (const constraints& c : normal_form_.cases(g)) parts.push_back(case_of(c, g));
  rules_.define(rule, rules_.choice(parts));
}

// Whether null, true or false is among the values that are not allowed.
bool schema_writer::denies_value(const constraints& c, json_kind kind, bool truth) const {
  return std::ranges::any_of(c.not_values, [&](json_node_id v) {
    return tree_[v].kind == kind && (kind == json_kind::null || tree_[v].truth == truth);
  });
}

part_id schema_writer::case_of(const constraints& c, const goal& g) {
  if (c.values) return constants(*c.values, g);
  std::vector<part_id> parts;
  if ((c.types & type_null) && !denies_value(c, json_kind::null, false))
    parts.push_back(rules_.literal(json_.null()));
  if (c.types & type_boolean) {
    const bool no_true = denies_value(c, json_kind::boolean, true);
    const bool no_false = denies_value(c, json_kind::boolean, false);
    if (!no_true && !no_false)
      parts.push_back(rules_.terminal(json_.boolean()));
    else if (!no_true)
      parts.push_back(rules_.literal(json_.word(true)));
    else if (!no_false)
      parts.push_back(rules_.literal(json_.word(false)));
  }
  if (c.types & type_number) parts.push_back(number(c));
  if (c.types & type_string) parts.push_back(string(c));
  if (c.types & type_array) parts.push_back(array(c, g));
  if (c.types & type_object) parts.push_back(object(c, g));
  return rules_.choice(parts);
}

// The values of enum or const that satisfy the goal. Scalars are one terminal, however many there are.
part_id schema_writer::constants(const value_set& values, const goal& g, bool no_strings) {
  std::vector<part_id> parts;
  std::vector<std::string> texts;
  for (json_node_id v : values.all()) {
    if (no_strings && tree_[v].kind == json_kind::string) continue;
    if (!validator_.satisfies(v, g)) continue;
    if (auto text = scalar_text(v))
      texts.push_back(std::move(*text));
    else
      parts.push_back(constant(v));
  }
  parts.push_back(rules_.terminal(pool_.literals(std::move(texts))));
  return rules_.choice(parts);
}

// A scalar has one spelling. nullopt: an array or object, or a string that is no terminal.
std::optional<std::string> schema_writer::scalar_text(json_node_id value) const {
  const json_node& n = tree_[value];
  switch (n.kind) {
    case json_kind::null:
      return std::string(json_.null());
    case json_kind::boolean:
      return std::string(json_.word(n.truth));
    case json_kind::number: {  // 1.0 is 1
      const decimal d = decimal::of(n.text);
      return d.integer() && d.digit_count() <= 64 ? d.text() : n.text;
    }
    case json_kind::string:
      if (spelling_ == spelling::plain) return std::nullopt;
      return fmt::format("\"{}\"", spelled(n.text, spelling_));
    case json_kind::array:
    case json_kind::object:
      break;
  }
  return std::nullopt;
}

// A value of enum or const: its members in the order written, white space as everywhere.
part_id schema_writer::constant(json_node_id value) {
  if (const auto text = scalar_text(value)) return rules_.literal(*text);
  const json_node& n = tree_[value];
  if (n.kind == json_kind::string) return json_.string_part(pool_.literal(spelled(n.text, spelling_)));
  // Constants are nested at most as deep as the schema's text, which is bounded.
  const bool object = n.kind == json_kind::object;
  std::vector<part_id> parts{json_.open(object ? '{' : '[')};
  for (std::size_t i = 0; i < n.items.size(); ++i) {
    if (i > 0) parts.push_back(json_.comma());
    if (object) parts.push_back(json_.name_of(n.names[i]));
    parts.push_back(constant(n.items[i]));
  }
  parts.push_back(json_.close(object ? '}' : ']'));
  return rules_.sequence(parts);
}

part_id schema_writer::number(const constraints& c) {
  const bool integers = c.types & type_integer, fractions = c.types & type_fraction;
  const bool excepted =
      std::ranges::any_of(c.not_values, [&](json_node_id v) { return tree_[v].kind == json_kind::number; });
  if (!c.low && !c.high && c.multiples.empty() && c.not_multiples.empty() && !excepted) {
    if (integers && fractions) return rules_.terminal(json_.number());
    if (integers) return rules_.terminal(json_.integer());
  }
  regex_id texts = multiples_of_all(c);
  for (json_node_id m : c.not_multiples) {
    if (const auto those = multiples_of(m, {{}, {}, true, fractions})) {
      texts = pool_.both(texts, pool_.complement(those->texts));
    } else {
      keywords_.relax(m, "the opposite of this multipleOf is not supported");
    }
  }
  for (json_node_id v : c.not_values) {
    if (tree_[v].kind != json_kind::number) continue;
    const number_bound at{decimal::of(tree_[v].text), true};
    texts = pool_.both(texts, pool_.either(numbers_within(pool_, {at, std::nullopt, true, true}),
                                           numbers_within(pool_, {std::nullopt, at, true, true})));
  }
  return pool_.live(texts) ? rules_.terminal(texts) : rules::nothing;
}

// nullopt: it has too many remainders, and too many multiples within the limits.
std::optional<schema_writer::some_multiples> schema_writer::multiples_of(json_node_id value,
                                                                         const number_limits& limits) {
  const decimal of = decimal::of(tree_[value].text);
  if (const auto those = multiples(pool_, of)) return some_multiples{*those, false};
  auto within = multiples_within(pool_, of, limits);
  if (!within && limits.low && limits.high)
    within = listed_multiples(pool_, of, *limits.low, *limits.high, 5'000);
  if (!within) return std::nullopt;
  return some_multiples{*within, limits.integers};
}

// The numbers that satisfy the bounds, the types and multipleOf of a case.
regex_id schema_writer::multiples_of_all(const constraints& c) {
  const number_limits limits{c.low, c.high, (c.types & type_integer) != 0, (c.types & type_fraction) != 0};
  regex_id texts = regex_pool::anything;
  bool within = false;
  for (json_node_id m : c.multiples) {
    if (const auto those = multiples_of(m, limits)) {
      texts = pool_.both(texts, those->texts);
      within = within || those->within;
    } else {
      keywords_.relax(m, fmt::format("multipleOf is supported for numbers whose only prime factors are 2 "
                                     "and 5, for others with at most {} remainders, and between a minimum "
                                     "and a maximum with at most 5,000 multiples",
                                     most_remainders));
    }
  }
  return within ? texts : pool_.both(texts, numbers_within(pool_, limits));
}

// The strings of a case, without quotes. `free`: nothing but the length is asked, so that every spelling of
// every character may be generated.
regex_id schema_writer::string_content(const constraints& c, bool& free, spelling as) {
  free = true;
  regex_id content = any_text(pool_, as);
  for (const text_rule& rule : c.texts) {
    const auto language = texts_.language(rule, as);
    if (!language) continue;
    free = false;
    content = pool_.both(content, rule.negated ? pool_.complement(*language) : *language);
  }
  std::vector<std::string> others;
  for (json_node_id v : c.not_values)
    if (tree_[v].kind == json_kind::string) others.push_back(spelled(tree_[v].text, as));
  if (!others.empty()) {
    free = false;
    content = pool_.both(content, pool_.complement(pool_.literals(std::move(others))));
  }
  if (!free && (c.min_length > 0 || c.max_length != unbounded))
    content = pool_.both(content, text_of_length(pool_, c.min_length, c.max_length, as));
  return content;
}

// The same with any length that is asked for.
regex_id schema_writer::strings(const constraints& c, spelling as) {
  bool free = true;
  const regex_id content = string_content(c, free, as);
  return free ? text_of_length(pool_, c.min_length, c.max_length, as) : content;
}

part_id schema_writer::string(const constraints& c) {
  if (c.min_length > c.max_length) return rules::nothing;
  bool free = true;
  const regex_id content = string_content(c, free, spelling_);
  if (free) return json_.string_of_length(c.min_length, c.max_length);
  return pool_.live(content) ? json_.string_part(content) : rules::nothing;
}

// The names of members that satisfy a goal, without quotes.
regex_id schema_writer::name_language(const goal& names) {
  if (names.empty()) return any_text(pool_, spelling_);
  const auto [at, made] = name_languages_.try_emplace(normalised(names), regex_pool::nothing);
  if (!made) return at->second;
  std::vector<regex_id> all;
  for (const constraints& c : normal_form_.cases(at->first)) {
    if (!(c.types & type_string) || c.min_length > c.max_length) continue;
    bool free = true;
    regex_id content = string_content(c, free, spelling_);
    if (free && (c.min_length > 0 || c.max_length != unbounded))
      content = text_of_length(pool_, c.min_length, c.max_length, spelling_);
    if (c.values) {
      std::vector<std::string> constants;
      for (json_node_id v : c.values->all())
        if (tree_[v].kind == json_kind::string) constants.push_back(spelled(tree_[v].text, spelling_));
      content = pool_.both(content, pool_.literals(std::move(constants)));
    }
    all.push_back(content);
  }
  return at->second = pool_.either(all);
}

}  // namespace weir::core::grammar
