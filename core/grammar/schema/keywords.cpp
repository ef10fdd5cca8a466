// What a schema says. Its opposite is in keywords_denied.cpp.
#include "core/grammar/schema/keywords.h"

#include <algorithm>
#include <set>

#include "core/grammar/schema/refused.h"

namespace weir::core::grammar {
namespace {

constexpr std::pair<std::string_view, std::uint8_t> type_names[] = {
    {"null", type_null},     {"boolean", type_boolean}, {"integer", type_integer}, {"number", type_number},
    {"string", type_string}, {"array", type_array},     {"object", type_object},
};

std::uint8_t type_of(std::string_view name) {
  for (const auto& [n, bits] : type_names)
    if (n == name) return bits;
  return 0;
}

}  // namespace

void schema_keywords::relax(json_node_id where, const std::string& message) {
  if (strict_) refuse_schema(tree_.pointer(where), "{}", message);
  warn(where, message + "; it is not enforced");
}

void schema_keywords::warn(json_node_id where, const std::string& message) {
  if (warned_.emplace(where, message).second) warnings_.push_back({tree_.pointer(where), message});
}

std::vector<alternatives> schema_keywords::say(const literal& l, bool evaluated) {
  const json_node& n = tree_[l.schema];
  tree_.burn(1 + n.items.size());
  if (n.kind == json_kind::boolean) {
    if (n.truth != l.negated) return {};
    return {alternatives()};  // none of no alternatives holds
  }
  if (n.kind != json_kind::object)
    refuse_schema(tree_.pointer(l.schema), "a schema must be an object or a boolean, not {}", name(n.kind));
  if (checked_.insert(l.schema).second) check(l.schema);
  if (!l.negated) return says(l.schema, evaluated);
  return {denies(l.schema)};
}

// Refuses a keyword that no part of this front end enforces. Called once for each schema.
void schema_keywords::check(json_node_id schema) {
  if (document_.ref_stands_alone() && document_.keyword(schema, "$ref")) return;
  if (const auto at = document_.keyword(schema, "$vocabulary"))
    refuse_schema(tree_.pointer(*at), "$vocabulary is not supported");
}

std::optional<json_node_id> schema_keywords::get(json_node_id schema, std::string_view name, json_kind kind) {
  const auto at = document_.keyword(schema, name);
  if (!at) return std::nullopt;
  if (tree_[*at].kind == kind) return at;
  refuse_schema(tree_.pointer(*at), "{} must be {}, not {}", name, grammar::name(kind),
                grammar::name(tree_[*at].kind));
}

std::optional<json_node_id> schema_keywords::get_schema(json_node_id schema, std::string_view name) {
  const auto at = document_.keyword(schema, name);
  if (!at) return std::nullopt;
  const json_kind kind = tree_[*at].kind;
  if (kind == json_kind::object || kind == json_kind::boolean) return at;
  refuse_schema(tree_.pointer(*at), "{} must be a schema, not {}", name, grammar::name(kind));
}

std::vector<literal> schema_keywords::get_schemas(json_node_id schema, std::string_view name) {
  std::vector<literal> out;
  if (const auto list = get(schema, name, json_kind::array))
    for (json_node_id s : tree_[*list].items) out.push_back({s, false});
  return out;
}

// Larger counts become 2^32 - 2, which no text of tokens reaches.
std::optional<std::uint32_t> schema_keywords::get_count(json_node_id schema, std::string_view name) {
  const auto at = get(schema, name, json_kind::number);
  if (!at) return std::nullopt;
  const decimal d = decimal::of(tree_[*at].text);
  if (d.negative || !d.integer())
    refuse_schema(tree_.pointer(*at), "{} must be a whole number of at least 0, not {}", name,
                  tree_[*at].text.substr(0, 40));
  if (d > decimal::of(std::int64_t{unbounded - 1})) return unbounded - 1;
  return static_cast<std::uint32_t>(std::stoul(d.whole_digits()));
}

std::optional<decimal> schema_keywords::get_number(json_node_id schema, std::string_view name) {
  const auto at = get(schema, name, json_kind::number);
  if (!at) return std::nullopt;
  return decimal::of(tree_[*at].text);
}

std::vector<std::string> schema_keywords::get_names(json_node_id list) {
  std::vector<std::string> out;
  for (json_node_id item : tree_[list].items) {
    if (tree_[item].kind != json_kind::string)
      refuse_schema(tree_.pointer(item), "a list of names holds {}", name(tree_[item].kind));
    out.push_back(tree_[item].text);
  }
  return out;
}

std::optional<std::uint8_t> schema_keywords::get_types(json_node_id schema) {
  const auto at = document_.keyword(schema, "type");
  if (!at) return std::nullopt;
  std::vector<json_node_id> names{*at};
  if (tree_[*at].kind == json_kind::array) names = tree_[*at].items;
  std::uint8_t types = 0;
  for (json_node_id n : names) {
    const std::uint8_t bits = tree_[n].kind == json_kind::string ? type_of(tree_[n].text) : 0;
    if (bits == 0) {
      const bool text = tree_[n].kind == json_kind::string;
      refuse_schema(tree_.pointer(n),
                    "type {} is not one of null, boolean, integer, number, string, array, object",
                    text ? fmt::format("\"{}\"", tree_[n].text.substr(0, 40)) : name(tree_[n].kind));
    }
    types |= bits;
  }
  return types;
}

// Draft 4 has a boolean beside the bound; later drafts have a bound of its own.
std::optional<number_bound> schema_keywords::get_bound(json_node_id schema, std::string_view inclusive,
                                                       std::string_view exclusive, bool low) {
  std::optional<number_bound> bound;
  if (const auto d = get_number(schema, inclusive)) bound = {*d, false};
  const auto at = document_.keyword(schema, exclusive);
  if (!at) return bound;
  if (tree_[*at].kind == json_kind::boolean) {
    if (bound) bound->exclusive = tree_[*at].truth;
    return bound;
  }
  const auto d = get_number(schema, exclusive);
  if (!d) return bound;
  if (!bound || (low ? bound->at <= *d : *d <= bound->at)) bound = {*d, true};
  return bound;
}

std::optional<json_node_id> schema_keywords::referred(json_node_id schema) {
  const auto to = next_reference(schema);
  std::set<json_node_id> passed{schema};
  for (auto next = to; next; next = next_reference(*next)) {
    tree_.burn();
    if (!passed.insert(*next).second)
      refuse_schema(tree_.pointer(schema), "the reference leads only to itself, through references alone");
  }
  return to;
}

std::optional<json_node_id> schema_keywords::next_reference(json_node_id schema) {
  if (const auto at = get(schema, "$ref", json_kind::string))
    return document_.target(schema, tree_[*at].text, "$ref");
  for (const char* keyword : {"$dynamicRef", "$recursiveRef"}) {
    if (!has(schema_draft::d2019)) continue;
    if (const auto at = get(schema, keyword, json_kind::string))
      return document_.dynamic_target(schema, tree_[*at].text, keyword);
  }
  return std::nullopt;
}

std::shared_ptr<const member_rule> schema_keywords::members_of(json_node_id schema) {
  auto& known = member_rules_[schema];
  if (known) return known;
  auto rule = std::make_shared<member_rule>();
  if (const auto at = get(schema, "properties", json_kind::object)) {
    const json_node& n = tree_[*at];
    for (std::size_t i = 0; i < n.items.size(); ++i)
      rule->declared.emplace_back(n.names[i], literal{n.items[i]});
  }
  if (const auto at = get(schema, "patternProperties", json_kind::object))
    for (json_node_id s : tree_[*at].items) rule->patterns.emplace_back(s, literal{s});
  if (const auto at = get_schema(schema, "additionalProperties")) rule->others = literal{*at};
  return known = rule;
}

// `prefixItems` and `items` of 2020-12; `items` as a list and `additionalItems` of the drafts before.
std::shared_ptr<const item_rule> schema_keywords::items_of(json_node_id schema) {
  auto& known = item_rules_[schema];
  if (known) return known;
  auto rule = std::make_shared<item_rule>();
  const auto items = document_.keyword(schema, "items");
  if (items && tree_[*items].kind == json_kind::array) {
    rule->first = get_schemas(schema, "items");
    if (const auto rest = get_schema(schema, "additionalItems")) rule->rest = literal{*rest};
  } else {
    if (has(schema_draft::d2020)) rule->first = get_schemas(schema, "prefixItems");
    if (const auto rest = get_schema(schema, "items")) rule->rest = literal{*rest};
  }
  return known = rule;
}

void schema_keywords::number_facts(json_node_id schema, constraints& c) {
  c.low = get_bound(schema, "minimum", "exclusiveMinimum", true);
  c.high = get_bound(schema, "maximum", "exclusiveMaximum", false);
  if (const auto at = get(schema, "multipleOf", json_kind::number)) {
    const decimal of = decimal::of(tree_[*at].text);
    if (of.zero() || of.negative) refuse_schema(tree_.pointer(*at), "multipleOf must be above 0");
    c.multiples.push_back(*at);
  }
}

void schema_keywords::string_facts(json_node_id schema, constraints& c) {
  if (const auto n = get_count(schema, "minLength")) c.min_length = *n;
  if (const auto n = get_count(schema, "maxLength")) c.max_length = *n;
  if (const auto at = get(schema, "pattern", json_kind::string)) c.texts.push_back({*at, false, false});
  if (const auto at = get(schema, "format", json_kind::string)) c.texts.push_back({*at, true, false});
}

void schema_keywords::array_facts(json_node_id schema, constraints& c) {
  const auto rule = items_of(schema);
  if (!rule->first.empty() || rule->rest) c.items.push_back(rule);
  if (const auto n = get_count(schema, "minItems")) c.min_items = *n;
  if (const auto n = get_count(schema, "maxItems")) c.max_items = *n;
  if (const auto at = get(schema, "uniqueItems", json_kind::boolean); at && tree_[*at].truth) c.unique = *at;
  const auto what = has(schema_draft::d6) ? get_schema(schema, "contains") : std::nullopt;
  if (!what) return;
  contains_rule contains{{{*what, false}}};
  if (has(schema_draft::d2019)) {
    if (const auto n = get_count(schema, "minContains")) contains.min = *n;
    if (const auto n = get_count(schema, "maxContains")) contains.max = *n;
  }
  c.contains.push_back(contains);
}

void schema_keywords::object_facts(json_node_id schema, constraints& c) {
  const auto rule = members_of(schema);
  if (!rule->declared.empty() || !rule->patterns.empty() || rule->others) c.members.push_back(rule);
  if (const auto at = get(schema, "required", json_kind::array)) c.required = get_names(*at);
  if (const auto n = get_count(schema, "minProperties")) c.min_members = *n;
  if (const auto n = get_count(schema, "maxProperties")) c.max_members = *n;
  if (has(schema_draft::d6))
    if (const auto at = get_schema(schema, "propertyNames")) c.names.push_back({*at, false});
}

std::shared_ptr<const value_set> schema_keywords::values_of(json_node_id where,
                                                            std::span<const json_node_id> values) {
  auto& known = value_sets_[where];
  if (!known) known = std::make_shared<const value_set>(tree_, values);
  return known;
}

void schema_keywords::value_facts(json_node_id schema, constraints& c) {
  if (const auto at = get(schema, "enum", json_kind::array)) c.values = values_of(*at, tree_[*at].items);
  const auto only = has(schema_draft::d6) ? document_.keyword(schema, "const") : std::nullopt;
  if (!only) return;
  constraints one;
  one.values = values_of(*only, std::span(&*only, 1));
  intersect(c, one, tree_);
}

std::vector<alternatives> schema_keywords::says(json_node_id schema, bool evaluated) {
  alternative all;
  const auto reference = referred(schema);
  if (reference) all.also.push_back({*reference, false});
  if (reference && document_.ref_stands_alone()) return {{all}};
  if (const auto types = get_types(schema)) all.facts.types = *types;
  if (const auto at = document_.keyword(schema, "nullable");
      at && tree_[*at].truth && all.facts.types != type_any && !(all.facts.types & type_null)) {
    all.facts.types |= type_null;
    warn(*at, "nullable is a word of OpenAPI; null is allowed");
  }
  number_facts(schema, all.facts);
  string_facts(schema, all.facts);
  array_facts(schema, all.facts);
  object_facts(schema, all.facts);
  value_facts(schema, all.facts);
  for (const literal& l : get_schemas(schema, "allOf")) all.also.push_back(l);
  if (const auto at = get_schema(schema, "not")) all.also.push_back({*at, true});
  std::vector<alternatives> out{{std::move(all)}};
  add_choices(schema, evaluated, out);
  add_dependencies(schema, out);
  return out;
}

// Keywords that say «one of these».
void schema_keywords::add_choices(json_node_id schema, bool evaluated, std::vector<alternatives>& out) {
  add_any(schema, evaluated, out);
  if (const auto at = get(schema, "oneOf", json_kind::array); at && !tree_[*at].items.empty())
    out.push_back(exactly_one(*at));
  add_if(schema, evaluated, out);
}

// One alternative for each schema of the list: the schema holds, and no other that a value could satisfy as
// well holds.
alternatives schema_keywords::exactly_one(json_node_id list) {
  const auto& schemas = tree_[list].items;
  alternatives out;
  for (json_node_id s : schemas) {
    alternative one{{}, {{s, false}}};
    tree_.burn(schemas.size());
    for (json_node_id other : schemas)
      if (other != s && !disjoint(s, other)) one.also.push_back({other, true});
    out.push_back(std::move(one));
  }
  return out;
}

// Whether it is plain to see that no value satisfies both: by their types, by enum or const, or by a member
// that both require with different constants.
bool schema_keywords::disjoint(json_node_id a, json_node_id b) {
  const auto plain = [&](json_node_id s) {  // behind references that stand for the whole schema
    for (int steps = 0; steps < 8; ++steps) {
      const auto at = document_.keyword(s, "$ref");
      if (!at || tree_[*at].kind != json_kind::string ||
          !(tree_[s].items.size() == 1 || document_.ref_stands_alone()))
        break;
      s = document_.target(s, tree_[*at].text, "$ref");
    }
    return s;
  };
  a = plain(a);
  b = plain(b);
  if (tree_[a].kind != json_kind::object || tree_[b].kind != json_kind::object) return false;
  const auto types_a = get_types(a), types_b = get_types(b);
  if (types_a && types_b && !(*types_a & *types_b)) return true;
  const auto values = [&](json_node_id s) {
    constraints c;
    if (tree_[s].kind == json_kind::object) value_facts(s, c);
    return c.values;
  };
  const auto apart = [&](json_node_id s, json_node_id t) {
    const auto x = values(s), y = values(t);
    return x && y && !x->meets(*y);
  };
  if (apart(a, b)) return true;
  if (!types_a || !types_b || *types_a != type_object || *types_b != type_object) return false;
  const auto required_a = get(a, "required", json_kind::array),
             required_b = get(b, "required", json_kind::array);
  if (!required_a || !required_b) return false;
  const auto names = get_names(*required_b);
  for (const std::string& n : get_names(*required_a)) {
    tree_.burn(names.size() / 16);
    if (std::ranges::find(names, n) == names.end()) continue;
    const auto of = [&](json_node_id s) {
      const auto properties = document_.keyword(s, "properties");
      return properties ? tree_.member(*properties, n) : std::nullopt;
    };
    const auto x = of(a), y = of(b);
    if (x && y && apart(*x, *y)) return true;
  }
  return false;
}

// For each dependency: the member is absent, or what depends on it holds.
void schema_keywords::add_dependencies(json_node_id schema, std::vector<alternatives>& out) {
  const auto add = [&](const std::string& name, alternative then) {
    alternative without;
    without.facts.absent.insert(name);
    then.facts.types = type_object;
    then.facts.required.insert(then.facts.required.begin(), name);
    out.push_back({std::move(without), std::move(then)});
  };
  const auto each = [&](const char* keyword) {
    const auto at = get(schema, keyword, json_kind::object);
    if (!at) return;
    const json_node& n = tree_[*at];
    for (std::size_t i = 0; i < n.items.size(); ++i) {
      alternative then;
      if (tree_[n.items[i]].kind == json_kind::array) {
        then.facts.required = get_names(n.items[i]);
      } else {
        then.also.push_back({n.items[i], false});
      }
      add(n.names[i], std::move(then));
    }
  };
  each("dependencies");
  if (!has(schema_draft::d2019)) return;
  each("dependentRequired");
  each("dependentSchemas");
}

}  // namespace weir::core::grammar
