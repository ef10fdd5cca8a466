#include "core/grammar/schema/validator.h"

#include <algorithm>

#include "core/grammar/schema/refused.h"

namespace weir::core::grammar {
namespace {

constexpr std::uint32_t most_depth = 300;

bool holds(const std::optional<bool>& b) { return !b || *b; }  // what cannot be told is not judged

}  // namespace

std::uint8_t types_of(const json_tree& tree, json_node_id value) {
  switch (tree[value].kind) {
    case json_kind::null:
      return type_null;
    case json_kind::boolean:
      return type_boolean;
    case json_kind::string:
      return type_string;
    case json_kind::array:
      return type_array;
    case json_kind::object:
      return type_object;
    case json_kind::number:
      break;
  }
  return decimal::of(tree[value].text).integer() ? type_integer : type_fraction;
}

std::size_t characters(std::string_view utf8) {
  return static_cast<std::size_t>(
      std::ranges::count_if(utf8, [](char c) { return (static_cast<unsigned char>(c) & 0xC0) != 0x80; }));
}

bool schema_validator::satisfies(json_node_id value, const goal& g) {
  return std::ranges::all_of(g, [&](const literal& l) { return satisfies(value, l); });
}

// Remembered, for many values are judged by one schema.
const std::vector<alternatives>& schema_validator::said(const literal& l) {
  const auto known = said_.find(l);
  return known != said_.end() ? known->second : said_.emplace(l, keywords_.say(l)).first->second;
}

bool schema_validator::is_evaluated(const literal& l) {
  return !l.negated && (keywords_.unevaluated(l.schema, false) || keywords_.unevaluated(l.schema, true));
}

// Which members and items a schema speaks of is known in a case of its normal form.
bool schema_validator::satisfies_a_case(json_node_id value, const literal& l) {
  auto known = cases_.find(l);
  if (known == cases_.end()) known = cases_.emplace(l, forms_.cases({l})).first;
  return std::ranges::any_of(known->second, [&](const constraints& c) { return satisfies(value, c); });
}

bool schema_validator::satisfies(json_node_id value, const literal& l) {
  if (left_ == 0 || depth_ >= most_depth)
    refuse_schema(tree_.pointer(value), "checking this value against the schema takes too many steps");
  --left_;
  tree_.burn();
  ++depth_;
  if (is_evaluated(l)) {
    const bool holds = satisfies_a_case(value, l);
    --depth_;
    return holds;
  }
  bool all = true;
  for (const alternatives& some : said(l)) {
    all = std::ranges::any_of(
        some, [&](const alternative& a) { return satisfies(value, a.facts) && satisfies(value, a.also); });
    if (!all) break;
  }
  --depth_;
  return all;
}

bool schema_validator::satisfies(json_node_id value, const constraints& c) {
  const auto equals = [&](json_node_id other) { return tree_.equal(value, other); };
  if (!(c.types & types_of(tree_, value))) return false;
  if (c.values && !c.values->contains(value)) return false;
  if (std::ranges::any_of(c.not_values, equals)) return false;
  switch (tree_[value].kind) {
    case json_kind::number:
      return number_satisfies(value, c);
    case json_kind::string:
      return string_satisfies(tree_[value].text, c);
    case json_kind::array:
      return array_satisfies(value, c);
    case json_kind::object:
      return object_satisfies(value, c);
    default:
      return true;
  }
}

bool schema_validator::number_satisfies(json_node_id value, const constraints& c) {
  const decimal d = decimal::of(tree_[value].text);
  if (c.low && (d < c.low->at || (c.low->exclusive && d == c.low->at))) return false;
  if (c.high && (c.high->at < d || (c.high->exclusive && d == c.high->at))) return false;
  for (json_node_id m : c.multiples)
    if (!holds(is_multiple(d, decimal::of(tree_[m].text)))) return false;
  for (json_node_id m : c.not_multiples)
    if (is_multiple(d, decimal::of(tree_[m].text)) == true) return false;
  return true;
}

bool schema_validator::string_satisfies(const std::string& text, const constraints& c) {
  const std::size_t length = characters(text);
  if (length < c.min_length || length > c.max_length) return false;
  for (const text_rule& rule : c.texts) {
    const auto language = texts_.language(rule, spelling::plain);
    if (language && texts_.contains(*language, text) == rule.negated) return false;
  }
  return true;
}

bool schema_validator::array_satisfies(json_node_id value, const constraints& c) {
  const auto& items = tree_[value].items;
  if (items.size() < c.min_items || items.size() > c.max_items) return false;
  for (const auto& rule : c.items) {
    for (std::size_t i = 0; i < items.size(); ++i) {
      if (i < rule->first.size() ? !satisfies(items[i], rule->first[i])
                                 : rule->rest && !satisfies(items[i], *rule->rest))
        return false;
    }
  }
  for (const contains_rule& rule : c.contains) {
    const auto n = std::ranges::count_if(items, [&](json_node_id i) { return satisfies(i, rule.what); });
    if (n < rule.min || n > rule.max) return false;
  }
  return !c.unique || value_set(tree_, items).all().size() == items.size();
}

bool schema_validator::member_satisfies(const std::string& name, json_node_id value,
                                        const member_rule& rule) {
  bool named = false;
  for (const auto& [n, what] : rule.declared) {
    if (n != name) continue;
    named = true;
    if (!satisfies(value, what)) return false;
  }
  for (const auto& [pattern, what] : rule.patterns) {
    const auto language = texts_.name_language(pattern, spelling::plain);
    if (!language || !texts_.contains(*language, name)) continue;
    named = true;
    if (!satisfies(value, what)) return false;
  }
  return named || !rule.others || satisfies(value, *rule.others);
}

bool schema_validator::object_satisfies(json_node_id value, const constraints& c) {
  const json_node& n = tree_[value];
  if (n.items.size() < c.min_members || n.items.size() > c.max_members) return false;
  const auto present = [&](const std::string& name) {
    return std::ranges::find(n.names, name) != n.names.end();
  };
  if (!std::ranges::all_of(c.required, present) || std::ranges::any_of(c.absent, present)) return false;
  for (std::size_t i = 0; i < n.items.size(); ++i)
    for (const auto& rule : c.members)
      if (!member_satisfies(n.names[i], n.items[i], *rule)) return false;
  for (const some_member_rule& rule : c.some_members) {
    bool found = false;
    for (std::size_t i = 0; i < n.items.size() && !found; ++i) {
      bool meant = false;
      if (rule.rule) {
        meant =
            std::ranges::none_of(rule.rule->declared, [&](const auto& d) { return d.first == n.names[i]; }) &&
            std::ranges::none_of(rule.rule->patterns, [&](const auto& p) {
              const auto language = texts_.name_language(p.first, spelling::plain);
              return language && texts_.contains(*language, n.names[i]);
            });
      } else {
        const auto language = texts_.name_language(rule.pattern, spelling::plain);
        meant = language && texts_.contains(*language, n.names[i]);
      }
      found = meant && satisfies(n.items[i], rule.what);
    }
    if (!found) return false;
  }
  return names_satisfy(value, c);
}

// A name is judged as a string. Names have no nodes in the tree, so only these keywords are checked: types,
// lengths, patterns, constants, and their combinations by references, «and» and «or».
bool schema_validator::names_satisfy(json_node_id value, const constraints& c) {
  const auto satisfied = [&](auto& self, const std::string& name, const literal& l) -> bool {
    if (left_ == 0 || depth_ >= most_depth)
      refuse_schema(tree_.pointer(value), "checking these names against the schema takes too many steps");
    --left_;
    ++depth_;
    bool all = true;
    const auto equals = [&](json_node_id v) {
      return tree_[v].kind == json_kind::string && tree_[v].text == name;
    };
    for (const alternatives& some : said(l)) {
      all = std::ranges::any_of(some, [&](const alternative& a) {
        return (a.facts.types & type_string) && string_satisfies(name, a.facts) &&
               (!a.facts.values || std::ranges::any_of(a.facts.values->all(), equals)) &&
               std::ranges::none_of(a.facts.not_values, equals) &&
               std::ranges::all_of(a.also, [&](const literal& m) { return self(self, name, m); });
      });
      if (!all) break;
    }
    --depth_;
    return all;
  };
  for (const std::string& name : tree_[value].names)
    for (const literal& l : c.names)
      if (!satisfied(satisfied, name, l)) return false;
  return true;
}

}  // namespace weir::core::grammar
