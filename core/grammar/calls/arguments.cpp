#include "core/grammar/calls/arguments.h"

#include <algorithm>
#include <array>
#include <utility>

#include "core/grammar/regex/regex.h"

namespace weir::core::grammar {
namespace {

using kind = call_format::kind;

constexpr std::string_view cdata_open = "<![CDATA[", cdata_close = "]]>";

bool lists_parameters(const call_format& f) { return f.how == kind::tagged || f.how == kind::pythonic; }

// A custom tool is a function with one text.
std::string schema_of_input(std::string_view text_schema) {
  return fmt::format(R"({{"type":"object","properties":{{"input":{}}},"required":["input"],)"
                     R"("additionalProperties":false}})",
                     text_schema);
}

bool contains(regex_pool& pool, regex_id language, std::string_view text) {
  for (const char c : text) {
    language = pool.transition(language, static_cast<unsigned char>(c));
    if (language == regex_pool::nothing) return false;
  }
  return pool.nullable(language);
}

// The place of a parameter in its schema, as a JSON pointer.
std::string pointer_to(std::string_view parameter) {
  std::string out = "/properties/";
  for (const char c : parameter) {
    if (c == '~' || c == '/') out += c == '~' ? "~0" : "~1";
    if (c != '~' && c != '/') out += c;
  }
  return out;
}

}  // namespace

argument_writer::argument_writer(answer_parts& parts, const call_format& f, std::vector<warning>& warnings,
                                 fuel* budget)
    : parts_(parts), rules_(parts.out()), f_(f), warnings_(warnings), budget_(budget) {}

schema_options argument_writer::options(bool strict) {
  schema_options out{.strict = strict, .only_objects = true};
  switch (f_.how) {
    case kind::gemma:
      out.space = json_space::compact;
      out.notation = {value_notation::kind::quoted, parts_.spelled(f_.quote), std::string(f_.quote)};
      break;
    case kind::pythonic:
      out.notation.what = value_notation::kind::python;
      break;
    case kind::tagged:
      out.notation.never = without_white(f_.value_close);
      break;
    case kind::object:
    case kind::named:
    case kind::harmony:
      break;
  }
  return out;
}

void argument_writer::warn(const tool_definition& t, const std::string& pointer, std::string_view message) {
  warnings_.push_back({t.param + pointer, fmt::format("tool {}: {}", t.name, message)});
}

result<argument_writer::input> argument_writer::input_of(const tool_definition& t) {
  if (t.what == tool_definition::kind::function) return input{t.parameters, false};
  const input any{schema_of_input(R"({"type":"string"})"), true};
  if (t.grammar.empty()) return any;
  std::string why;
  if (t.syntax != "regex") {
    why = fmt::format(
        "a grammar in {} inside the arguments of a call is not supported: use a regular expression",
        t.syntax);
  } else {
    const std::string pattern = fmt::format("^(?:{})$", t.grammar);
    const auto alone = parse_regex(parts_.pool(), t.grammar);
    const auto inside = parse_regex(parts_.pool(), pattern, {.how = regex_options::match::search});
    if (alone && inside)
      return input{schema_of_input(fmt::format(R"({{"type":"string","pattern":{}}})", json_string(pattern))),
                   true};
    const auto& e = alone ? inside.error() : alone.error();
    why = fmt::format("not a supported regular expression: {}, at byte {}", e.message, e.offset);
  }
  if (t.strict) return error{errc::not_supported, why, t.param};
  warn(t, {}, fmt::format("its grammar is not enforced: {}", why));
  return any;
}

result<part_id> argument_writer::arguments_of(const tool_definition& t) {
  const auto what = input_of(t);
  if (!what) return what.error();
  const bool strict = t.strict || what->custom;
  const std::pair key{what->schema, strict};
  const auto pointer = [&](const std::string& p) { return what->custom ? std::string() : p; };
  if (const auto known = known_.find(key); known != known_.end()) {
    for (const warning& w : known_warnings_[key]) warn(t, pointer(w.where), w.message);
    return known->second;
  }
  std::vector<warning> warnings;
  auto made = write(what->schema, strict, warnings);
  if (made && *made == rules::nothing) made = bad_param("", "no arguments satisfy the schema");
  if (!made) {
    error e = made.error();
    e.param = pointer(e.param);
    return instead_of(t, e);
  }
  for (const warning& w : warnings) warn(t, pointer(w.where), w.message);
  known_warnings_[key] = std::move(warnings);
  return known_[key] = *made;
}

result<part_id> argument_writer::instead_of(const tool_definition& t, const error& why) {
  if (t.strict) {
    error e = why;
    e.param.insert(0, t.param);
    e.message = fmt::format("tool {}: {}", t.name, e.message);
    return e;
  }
  warn(t, why.param, fmt::format("its parameters are not enforced: {}", why.message));
  std::vector<warning> none;
  return write({}, false, none);
}

result<part_id> argument_writer::write(std::string_view schema, bool strict, std::vector<warning>& warnings) {
  if (lists_parameters(f_)) return write_list(schema, strict, warnings);
  const schema_options how = options(strict);
  if (schema.empty()) return json_text(rules_, how.space, how.notation).object();
  return write_schema(rules_, schema, how, warnings, budget_);
}

// ---- parameters one by one

result<part_id> argument_writer::write_list(std::string_view schema, bool strict,
                                            std::vector<warning>& warnings) {
  const auto cases = write_parameters(rules_, schema.empty() ? "{}" : schema, options(strict),
                                      f_.how == kind::tagged, warnings, budget_);
  if (!cases) return cases.error();
  const parameter_types types(schema);
  std::vector<part_id> ways;
  for (const schema_parameters& p : *cases) {
    const auto one = one_list(p, types, strict, warnings);
    if (!one) return one.error();
    ways.push_back(*one);
  }
  return rules_.choice(ways);
}

// Names that a parameter can have in the notation.
regex_id argument_writer::parameter_names() {
  return parts_.language(f_.how == kind::tagged ? R"([^\x00-\x1F\s<>"\\]{1,64})"
                                                : R"([^\x00-\x1F\s<>"'{}()\[\]=,:\\]{1,64})");
}

result<part_id> argument_writer::one_list(const schema_parameters& p, const parameter_types& types,
                                          bool strict, std::vector<warning>& warnings) {
  const regex_id names = parameter_names();
  std::vector<std::pair<part_id, bool>> members;
  for (const auto& m : p.known) {
    if (!contains(parts_.pool(), names, m.name)) {
      const std::string pointer = pointer_to(m.name);
      if (strict || m.required)
        return bad_param(pointer, "a call of this model cannot have a parameter of this name");
      warnings.push_back({pointer, "a call of this model cannot have a parameter of this name"});
      continue;
    }
    members.emplace_back(member(m.name, m.what, types), m.required);
  }
  std::vector<part_id> others;
  for (const auto& o : p.others) others.push_back(other_member(o));
  return in_order(members, rules_.choice(others));
}

// The members in their order, those that are not required perhaps missing, then others in any number.
part_id argument_writer::in_order(const std::vector<std::pair<part_id, bool>>& members, part_id other) {
  const part_id comma = f_.how == kind::pythonic ? rules_.literal(", ") : rules::empty;
  const part_id more = rules_.any_number(rules_.sequence({comma, other}));
  // Behind no member, and behind some.
  if (comma == rules::empty) {
    part_id rest = more;
    for (auto m = members.rbegin(); m != members.rend(); ++m)
      rest = rules_.named("", rules_.sequence({m->second ? m->first : rules_.maybe(m->first), rest}));
    return rest;
  }
  std::array<part_id, 2> rest{rules_.choice({rules::empty, rules_.sequence({other, more})}), more};
  for (auto m = members.rbegin(); m != members.rend(); ++m) {
    const auto& [part, required] = *m;
    std::array<part_id, 2> here{};
    for (const std::size_t some : {0u, 1u}) {
      const part_id with = rules_.sequence({some ? comma : rules::empty, part, rest[1]});
      here[some] = rules_.named("", rules_.choice({with, required ? rules::nothing : rest[some]}));
    }
    rest = here;
  }
  return rest[0];
}

part_id argument_writer::member(std::string_view name, const schema_parameters::value& v,
                                const parameter_types& types) {
  if (f_.how == kind::pythonic) return rules_.sequence({rules_.literal(fmt::format("{}=", name)), v.written});
  const part_id key = parts_.spelled(fmt::format("{}{}", f_.key_open, name));
  return tagged(key, v, types.of(name));
}

part_id argument_writer::other_member(const schema_parameters::other& o) {
  const auto names = parts_.pool().both(o.names, parameter_names());
  if (f_.how == kind::pythonic)
    return rules_.sequence({rules_.terminal(names), rules_.literal("="), o.what.written});
  return tagged(rules_.sequence({parts_.spelled(f_.key_open), rules_.terminal(names)}), o.what, 0);
}

// A value as the reader will read it: as text where its schema says so, else as text that is no JSON, or
// JSON.
part_id argument_writer::tagged(part_id key, const schema_parameters::value& v, json_types wanted) {
  auto& pool = parts_.pool();
  const bool only_text = wanted == json_text_type;
  std::vector<part_id> texts;
  texts.push_back(rules_.terminal(raw_text(v.text, wanted)));
  if (f_.cdata) {
    const std::array found{regex_pool::anything, pool.literal(cdata_close), regex_pool::anything};
    regex_id inside = pool.both(v.text, pool.complement(pool.concat(found)));
    if (!only_text && wanted != 0) inside = pool.both(inside, pool.complement(looks_like_json()));
    texts.push_back(
        rules_.sequence({rules_.literal(cdata_open), rules_.terminal(inside), rules_.literal(cdata_close)}));
  }
  const part_id text = rules_.choice(texts), json = only_text ? rules::nothing : v.written;
  const part_id end = parts_.spelled(f_.key_end), close = parts_.spelled(f_.value_close);
  if (!f_.says_string) return rules_.sequence({key, end, rules_.choice({text, json}), close});
  const part_id is_text = rules_.literal("\" string=\"true"), is_json = rules_.literal("\" string=\"false");
  return rules_.sequence(
      {key, rules_.choice({rules_.sequence({is_text, end, text}), rules_.sequence({is_json, end, json})}),
       close});
}

regex_id argument_writer::raw_text(regex_id texts, json_types wanted) {
  auto& pool = parts_.pool();
  if (texts == regex_pool::nothing) return texts;
  const std::array closes{f_.value_close};
  regex_id out = pool.both(texts, parts_.characters_without(closes));
  if (wanted != json_text_type && !f_.says_string) out = pool.both(out, pool.complement(looks_like_json()));
  if (f_.cdata)
    out = pool.both(out, pool.complement(pool.concat(pool.literal(cdata_open), regex_pool::anything)));
  return out;
}

// What the reader takes for another value than a text.
regex_id argument_writer::looks_like_json() {
  return parts_.language(R"([ \t\r\n]*(?:[{\[][^]*|-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+\-]?[0-9]+)?|)"
                         R"(true|false|null|True|False|None)[ \t\r\n]*)");
}

}  // namespace weir::core::grammar
