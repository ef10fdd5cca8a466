// The opposite of a schema: one of its keywords does not hold.
#include <algorithm>

#include "core/grammar/schema/keywords.h"
#include "core/grammar/schema/refused.h"

namespace weir::core::grammar {
namespace {

alternative of_type(std::uint8_t types) {
  alternative a;
  a.facts.types = types;
  return a;
}

}  // namespace

alternatives schema_keywords::denies(json_node_id schema) {
  alternatives out;
  if (const auto reference = referred(schema)) {
    out.push_back({{}, {{*reference, true}}});
    if (document_.ref_stands_alone()) return out;
  }
  deny_scalars(schema, out);
  deny_array(schema, out);
  deny_object(schema, out);
  deny_applicators(schema, out);
  deny_dependencies(schema, out);
  deny_unevaluated(schema, out);
  return out;
}

void schema_keywords::deny_scalars(json_node_id schema, alternatives& out) {
  if (const auto types = get_types(schema)) {
    if (const auto others = static_cast<std::uint8_t>(type_any & ~*types)) out.push_back(of_type(others));
  }
  constraints c;
  number_facts(schema, c);
  if (c.low) out.push_back(of_type(type_number)), out.back().facts.high = {c.low->at, !c.low->exclusive};
  if (c.high) out.push_back(of_type(type_number)), out.back().facts.low = {c.high->at, !c.high->exclusive};
  if (!c.multiples.empty()) out.push_back(of_type(type_number)), out.back().facts.not_multiples = c.multiples;
  string_facts(schema, c);
  if (c.min_length > 0) out.push_back(of_type(type_string)), out.back().facts.max_length = c.min_length - 1;
  if (c.max_length < unbounded - 1)
    out.push_back(of_type(type_string)), out.back().facts.min_length = c.max_length + 1;
  for (text_rule t : c.texts) {
    t.negated = true;
    out.push_back(of_type(type_string));
    out.back().facts.texts.push_back(t);
  }
  value_facts(schema, c);
  if (c.values) out.emplace_back().facts.not_values = c.values->all();
}

void schema_keywords::deny_array(json_node_id schema, alternatives& out) {
  constraints c;
  array_facts(schema, c);
  if (c.min_items > 0) out.push_back(of_type(type_array)), out.back().facts.max_items = c.min_items - 1;
  if (c.max_items < unbounded - 1)
    out.push_back(of_type(type_array)), out.back().facts.min_items = c.max_items + 1;
  for (const auto& rule : c.items) {
    for (std::size_t i = 0; i < rule->first.size(); ++i) {  // item i is the first to violate its schema
      auto wrong = std::make_shared<item_rule>();
      wrong->first.assign(rule->first.begin(), rule->first.begin() + static_cast<std::ptrdiff_t>(i));
      wrong->first.push_back(!rule->first[i]);
      out.push_back(of_type(type_array));
      out.back().facts.min_items = static_cast<std::uint32_t>(i + 1);
      out.back().facts.items.push_back(std::move(wrong));
    }
    if (rule->rest) {
      out.push_back(of_type(type_array));
      if (rule->first.empty()) {
        out.back().facts.contains.push_back({{!*rule->rest}});
      } else {
        relax(rule->rest->schema, "the opposite of items behind prefixItems is not supported");
      }
    }
  }
  if (c.unique) {
    relax(*c.unique, "the opposite of uniqueItems is not supported");
    out.push_back(of_type(type_array));
  }
  for (const contains_rule& k : c.contains) {
    if (k.min > 0) out.push_back(of_type(type_array)), out.back().facts.contains = {{k.what, 0, k.min - 1}};
    if (k.max < unbounded - 1)
      out.push_back(of_type(type_array)), out.back().facts.contains = {{k.what, k.max + 1, unbounded}};
  }
}

void schema_keywords::deny_object(json_node_id schema, alternatives& out) {
  constraints c;
  object_facts(schema, c);
  for (const std::string& n : c.required) out.push_back(of_type(type_object)), out.back().facts.absent = {n};
  if (c.min_members > 0)
    out.push_back(of_type(type_object)), out.back().facts.max_members = c.min_members - 1;
  if (c.max_members < unbounded - 1)
    out.push_back(of_type(type_object)), out.back().facts.min_members = c.max_members + 1;
  for (const auto& rule : c.members) {
    for (const auto& [name, what] : rule->declared) {
      auto one = std::make_shared<member_rule>();
      one->declared.emplace_back(name, !what);
      out.push_back(of_type(type_object));
      out.back().facts.required.push_back(name);
      out.back().facts.members.push_back(one);
    }
    for (const auto& [pattern, what] : rule->patterns) {
      out.push_back(of_type(type_object));
      out.back().facts.some_members.push_back({nullptr, pattern, {!what}});
    }
    if (rule->others) {
      out.push_back(of_type(type_object));
      out.back().facts.some_members.push_back({rule, 0, {!*rule->others}});
    }
  }
  for (const literal& n : c.names) {
    relax(n.schema, "the opposite of propertyNames is not supported");
    out.push_back(of_type(type_object));
  }
}

void schema_keywords::deny_applicators(json_node_id schema, alternatives& out) {
  for (const literal& l : get_schemas(schema, "allOf")) out.push_back({{}, {!l}});
  if (const auto at = get_schema(schema, "not")) out.push_back({{}, {{*at, false}}});
  if (const auto any = get_schemas(schema, "anyOf"); !any.empty()) {
    alternative none;
    for (const literal& l : any) none.also.push_back(!l);
    out.push_back(std::move(none));
  }
  if (const auto at = get(schema, "oneOf", json_kind::array); at && !tree_[*at].items.empty()) {
    const auto& all = tree_[*at].items;
    alternative none;
    for (json_node_id s : all) none.also.push_back({s, true});
    out.push_back(std::move(none));
    for (std::size_t i = 0; i < all.size(); ++i)
      for (std::size_t k = i + 1; k < all.size(); ++k)
        if (!disjoint(all[i], all[k])) out.push_back({{}, {{all[i], false}, {all[k], false}}});
  }
  if (const auto condition = has(schema_draft::d7) ? get_schema(schema, "if") : std::nullopt) {
    if (const auto then = get_schema(schema, "then"))
      out.push_back({{}, {{*condition, false}, {*then, true}}});
    if (const auto other = get_schema(schema, "else"))
      out.push_back({{}, {{*condition, true}, {*other, true}}});
  }
}

void schema_keywords::deny_dependencies(json_node_id schema, alternatives& out) {
  for (const char* keyword : {"dependencies", "dependentRequired", "dependentSchemas"}) {
    const auto at = document_.keyword(schema, keyword);
    if (!at || tree_[*at].kind != json_kind::object) continue;
    if (std::string_view(keyword) != "dependencies" && !has(schema_draft::d2019)) continue;
    const json_node& n = tree_[*at];
    for (std::size_t i = 0; i < n.items.size(); ++i) {
      alternative a = of_type(type_object);
      a.facts.required.push_back(n.names[i]);
      if (tree_[n.items[i]].kind != json_kind::array) {
        a.also.push_back({n.items[i], true});
        out.push_back(std::move(a));
        continue;
      }
      for (const std::string& needed : get_names(n.items[i])) {
        out.push_back(a);
        out.back().facts.absent.insert(needed);
      }
    }
  }
}

}  // namespace weir::core::grammar
