// Objects as lists of parameters, for notations that write the members of an object one by one.
#include <algorithm>

#include "core/grammar/schema/writer.h"

namespace weir::core::grammar {

std::vector<schema_parameters> schema_writer::write_parameters(bool texts_apart) {
  const goal g{{json_tree::root, false}};
  std::vector<schema_parameters> out;
  for (const constraints& c : normal_form_.cases(g)) {
    if (!(c.types & type_object)) continue;
    if (auto one = parameters(c, g, texts_apart)) out.push_back(std::move(*one));
  }
  write_waiting();
  return out;
}

// nullopt: a required member is impossible.
std::optional<schema_parameters> schema_writer::parameters(constraints c, const goal& g, bool texts_apart) {
  if (c.values) keywords_.relax(blamed(g), "enum and const of all parameters together are not supported");
  for (json_node_id v : c.not_values)
    if (tree_[v].kind == json_kind::object)
      keywords_.relax(v, "an object among the values that are not allowed is not supported");
  if (!c.some_members.empty())
    keywords_.relax(blamed(g),
                    "opposites of additionalProperties and patternProperties are not supported in a list of "
                    "parameters");
  c.some_members.clear();
  object_plan plan;
  if (!plan_known(c, plan)) return std::nullopt;
  plan_others(c, plan, g);
  const auto needed =
      static_cast<std::size_t>(std::ranges::count_if(plan.known, [](const auto& m) { return m.required; }));
  const bool bounded = plan.others.empty() && c.max_members >= plan.known.size();
  if (c.min_members > needed || (c.max_members != unbounded && !bounded))
    keywords_.relax(blamed(g), "minProperties and maxProperties are not supported in a list of parameters");
  schema_parameters out;
  for (const auto& m : plan.known) out.known.push_back({m.name, m.required, parameter(m.value, texts_apart)});
  for (const cell& k : plan.others) out.others.push_back({k.names, parameter(k.value, texts_apart)});
  return out;
}

schema_parameters::value schema_writer::parameter(const goal& g, bool texts_apart) {
  if (!texts_apart) return {value_of(g), regex_pool::nothing};
  schema_parameters::value out;
  std::vector<regex_id> texts;
  std::vector<part_id> written;
  for (constraints& c : normal_form_.cases(g)) {
    texts.push_back(this->texts(c, g));
    c.types &= static_cast<std::uint8_t>(~type_string);
    written.push_back(c.values ? constants(*c.values, g, true) : case_of(c, g));
  }
  out.text = pool_.either(texts);
  out.written = rules_.choice(written);
  return out;
}

// The strings of a case as plain text.
regex_id schema_writer::texts(const constraints& c, const goal& g) {
  if (c.values) {
    std::vector<std::string> constants;
    for (json_node_id v : c.values->all())
      if (tree_[v].kind == json_kind::string && validator_.satisfies(v, g))
        constants.push_back(tree_[v].text);
    return pool_.literals(std::move(constants));
  }
  if (!(c.types & type_string) || c.min_length > c.max_length) return regex_pool::nothing;
  return strings(c, spelling::plain);
}

}  // namespace weir::core::grammar
