#include "core/grammar/calls/call_writer.h"

#include <algorithm>

#include "core/grammar/json_text.h"
#include "core/grammar/symbols.h"

namespace weir::core::grammar {

using kind = call_format::kind;

result<void> call_writer::take(const std::vector<tool_definition>& tools) {
  std::vector<part_id> arguments;
  for (const tool_definition& t : tools) {
    const auto made = arguments_.arguments_of(t);
    if (!made) return made.error();
    arguments.push_back(*made);
  }
  if (const auto failure = rules_.failure(); !failure.empty())
    return bad_param(tools.back().param, "the tools are too large together: {}", failure);
  const auto satisfiable = satisfiable_parts(rules_);
  std::map<part_id, std::size_t> places;
  for (std::size_t i = 0; i < tools.size(); ++i) {
    if (!satisfiable[arguments[i]]) {
      const auto instead = arguments_.instead_of(tools[i], bad_param("", "no arguments satisfy the schema"));
      if (!instead) return instead.error();
      arguments[i] = *instead;
    }
    const auto [at, made] = places.try_emplace(arguments[i], tools_.size());
    if (made) tools_.push_back({{}, arguments[i]});
    tools_[at->second].names.push_back(tools[i].name);
  }
  return {};
}

regex_id call_writer::names_of(const alike& a, spelling as) {
  std::vector<std::string> texts;
  for (const std::string& name : a.names) texts.push_back(spelled(name, as));
  return parts_.pool().literals(std::move(texts));
}

// Ids that the templates of these models take back.
regex_id call_writer::id_language() { return parts_.language("[A-Za-z0-9]{9}|[0-9]{1,4}"); }

part_id call_writer::object_id() {
  if (f_.id_key.empty()) return rules::empty;
  json_text json(rules_, json_space::bounded);
  return rules_.sequence(
      {json.name(parts_.pool().literal(f_.id_key)), rules_.terminal(json.string_of(id_language()))});
}

// The id may stand first, last, or nowhere.
part_id call_writer::object(const alike& a) {
  auto& pool = parts_.pool();
  json_text json(rules_, json_space::bounded);
  const regex_id names = names_of(a, spelling::json_string);
  if (f_.name_key.empty())
    return rules_.sequence({json.open('{'), json.name(names), a.arguments, json.close('}')});
  const part_id id = object_id();
  const bool has_id = id != rules::empty;
  const part_id first = has_id ? rules_.maybe(rules_.sequence({id, json.comma()})) : rules::empty;
  const part_id last = has_id ? rules_.maybe(rules_.sequence({json.comma(), id})) : rules::empty;
  return rules_.sequence({json.open('{'), first, json.name(pool.literal(f_.name_key)),
                          rules_.terminal(json.string_of(names)), json.comma(),
                          json.name(pool.literal(f_.arguments_key)), a.arguments, last, json.close('}')});
}

part_id call_writer::named(const alike& a) {
  auto& pool = parts_.pool();
  regex_id name = pool.concat(pool.literal(f_.name_prefix), names_of(a, spelling::plain));
  if (f_.counted) name = pool.concat(name, parts_.language(":(?:0|[1-9][0-9]{0,3})"));
  const part_id id = rules_.terminal(id_language());
  part_id before = rules::empty, behind = rules::empty;
  if (!f_.id_end.empty()) before = rules_.sequence({id, parts_.spelled(f_.id_end)});
  if (!f_.id_open.empty()) behind = rules_.maybe(rules_.sequence({parts_.spelled(f_.id_open), id}));
  return rules_.sequence({before, rules_.terminal(name), behind, parts_.spelled(f_.middle), a.arguments});
}

part_id call_writer::body() {
  std::vector<part_id> ways;
  for (const alike& a : tools_) {
    const part_id name = rules_.terminal(names_of(a, spelling::plain));
    switch (f_.how) {
      case kind::object:
        ways.push_back(object(a));
        break;
      case kind::named:
      case kind::harmony:
        ways.push_back(named(a));
        break;
      case kind::tagged:
        ways.push_back(rules_.sequence({name, parts_.spelled(f_.name_end), a.arguments}));
        break;
      case kind::pythonic:
        ways.push_back(rules_.sequence({name, rules_.literal("("), a.arguments, rules_.literal(")")}));
        break;
      case kind::gemma:
        ways.push_back(rules_.sequence({name, a.arguments}));
        break;
    }
  }
  return rules_.choice(ways);
}

part_id call_writer::one() {
  if (f_.list || f_.how == kind::pythonic) return body();
  return rules_.sequence({parts_.spelled(f_.open), body(), parts_.spelled(f_.close)});
}

part_id call_writer::group(bool several) {
  const auto with_more = [&](part_id between) {
    const part_id call = one();
    if (!several) return call;
    return rules_.sequence({call, rules_.any_number(rules_.sequence({between, call}))});
  };
  if (f_.how == kind::pythonic)
    return rules_.sequence(
        {parts_.spelled(f_.open), with_more(parts_.spelled(f_.between)), parts_.spelled(f_.close)});
  if (f_.list) {
    json_text json(rules_, json_space::bounded);
    return rules_.sequence({parts_.spelled(f_.open), json.open('['), with_more(json.comma()), json.close(']'),
                            parts_.spelled(f_.close)});
  }
  if (f_.section_open.empty()) return one();
  return rules_.sequence({parts_.spelled(f_.section_open), with_more(parts_.spelled(f_.between)),
                          parts_.spelled(f_.section_close)});
}

part_id call_writer::all(bool several) {
  const bool has_group = f_.how == kind::pythonic || f_.list || !f_.section_open.empty();
  const part_id first = group(several && has_group);
  if (!several || has_group) return first;
  return rules_.sequence({first, rules_.any_number(rules_.sequence({parts_.spelled(f_.between), first}))});
}

}  // namespace weir::core::grammar
