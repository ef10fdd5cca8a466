#include "net/protocol/constraint_fields.h"

#include <algorithm>
#include <boost/json/serialize.hpp>

#include "core/grammar/accept.h"

namespace weir::net {
namespace {

using core::bad_param;
using core::result;
using core::grammar::constraint_text;
using kind = constraint_text::kind;

constexpr std::size_t longest_schema_name = 64;

// What the fields of a body say.
struct wish {
  std::optional<constraint_text> what;
  std::string param;  // the field that says it
  core::grammar::forcing force = core::grammar::forcing::canonical;

  result<void> set(const std::string& name, constraint_text c) {
    if (what) return bad_param(name, "a request has one constraint, not both {} and {}", param, name);
    what = std::move(c);
    param = name;
    return {};
  }
};

// The text of a schema: the string that with_schemas_as_text() made of it, or else the value as JSON.
std::string schema_text(const json::value& v) {
  return v.is_string() ? std::string(v.get_string()) : json::serialize(v);
}

result<void> read_schema(const std::string& name, const json::value& v, bool strict, wish& w) {
  constraint_text c{.what = kind::json_schema, .text = schema_text(v)};
  c.strict = strict;
  return w.set(name, std::move(c));
}

result<void> read_source(const std::string& name, kind what, const json::value& v, wish& w) {
  auto text = read_string(name, v);
  if (!text) return text.error();
  if (text->empty()) return {};
  return w.set(name, {.what = what, .text = std::move(*text)});
}

result<void> read_regex(const std::string& name, const json::value& v, wish& w) {
  return read_source(name, kind::regex, v, w);
}
result<void> read_grammar(const std::string& name, const json::value& v, wish& w) {
  return read_source(name, kind::grammar, v, w);
}
result<void> read_lenient_schema(const std::string& name, const json::value& v, wish& w) {
  return read_schema(name, v, false, w);
}

result<void> read_choice(const std::string& name, const json::value& v, wish& w) {
  if (!v.is_array()) return bad_param(name, "{} must be an array of strings, not {}", name, kind_of(v));
  constraint_text c{.what = kind::choice};
  for (const json::value& item : v.get_array()) {
    if (!item.is_string())
      return bad_param(name, "{}[{}] must be a string, not {}", name, c.choices.size(), kind_of(item));
    c.choices.emplace_back(item.get_string());
  }
  return w.set(name, std::move(c));
}

result<void> read_any_object(const std::string& name, const json::value& v, wish& w) {
  auto on = read_bool(name, v);
  if (!on) return on.error();
  return *on ? w.set(name, {.what = kind::json_object}) : result<void>();
}

struct field {
  std::string_view name;
  result<void> (*read)(const std::string& name, const json::value& v, wish& w);
};

constexpr field plain_fields[] = {
    {"json_schema", read_lenient_schema},
    {"guided_json", read_lenient_schema},
    {"regex", read_regex},
    {"guided_regex", read_regex},
    {"grammar", read_grammar},
    {"guided_grammar", read_grammar},
    {"choice", read_choice},
    {"guided_choice", read_choice},
};

constexpr field structured_outputs_members[] = {
    {"json", read_lenient_schema}, {"regex", read_regex},
    {"choice", read_choice},       {"grammar", read_grammar},
    {"json_object", read_any_object},
};

result<void> check_name(const std::string& name, const json::value& v) {
  constexpr std::string_view allowed = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-";
  const auto text = read_string(name, v);
  if (!text) return text.error();
  if (!text->empty() && text->size() <= longest_schema_name && text->find_first_not_of(allowed) == text->npos)
    return {};
  return bad_param(name, "{} must be 1 to {} of [A-Za-z0-9_-]", name, longest_schema_name);
}

// {"name", "schema", "strict", "description"}, as in OpenAI's API; `flat`: with a `type` beside them.
result<void> read_named_schema(const std::string& name, const json::value& v, wish& w, bool flat = false) {
  if (!v.is_object()) return bad_param(name, "{} must be an object, not {}", name, kind_of(v));
  const json::value any(true), *schema = &any;
  bool strict = false, named = false;
  for (const auto& [key, value] : v.get_object()) {
    const std::string member = fmt::format("{}.{}", name, shortened(key));
    result<void> read;
    if (key == "name") {
      named = true;
      read = check_name(member, value);
    } else if (key == "schema") {
      schema = &value;
    } else if (key == "strict") {
      if (value.is_null()) continue;
      const auto on = read_bool(member, value);
      if (!on) return on.error();
      strict = *on;
    } else if (key != "description" && !(key == "type" && flat)) {
      read = bad_param(member, "unknown field '{}'", member);
    }
    if (!read) return read;
  }
  if (!named) return bad_param(name + ".name", "{}.name is missing", name);
  return read_schema(name + ".schema", *schema, strict, w);
}

result<void> read_response_format(const json::value& v, wish& w) {
  const std::string name = "response_format";
  if (!v.is_object()) return bad_param(name, "{} must be an object, not {}", name, kind_of(v));
  const json::object& o = v.get_object();
  const json::value *type = o.if_contains("type"), *named = o.if_contains("json_schema"),
                    *schema = o.if_contains("schema");
  for (const auto& [key, value] : o)
    if (key != "type" && key != "json_schema" && key != "schema")
      return bad_param(name, "unknown field '{}.{}'", name, shortened(key));
  if (!type || !type->is_string()) return bad_param(name + ".type", "{}.type must be a string", name);
  if (*type == "text") return {};
  if (*type != "json_object" && *type != "json_schema")
    return bad_param(name + ".type", "{}.type must be text, json_object or json_schema, not '{}'", name,
                     shortened(type->get_string()));
  if (named && *type == "json_schema") return read_named_schema(name + ".json_schema", *named, w);
  if (schema) return read_lenient_schema(name + ".schema", *schema, w);
  if (*type == "json_object") return w.set(name, {.what = kind::json_object});
  return bad_param(name + ".json_schema", "{}.json_schema is missing", name);
}

result<void> read_structured_outputs(const json::value& v, wish& w) {
  const std::string name = "structured_outputs";
  if (!v.is_object()) return bad_param(name, "{} must be an object, not {}", name, kind_of(v));
  for (const auto& [key, value] : v.get_object()) {
    const std::string member = fmt::format("{}.{}", name, shortened(key));
    const auto known = std::ranges::find(structured_outputs_members, std::string_view(key), &field::name);
    if (known == std::end(structured_outputs_members))
      return bad_param(member, "unknown field '{}'", member);
    if (value.is_null()) continue;
    if (auto read = known->read(member, value, w); !read) return read;
  }
  return {};
}

// {"type": "json_schema", "schema"}, as in Anthropic's API, where every schema is strict.
result<void> read_output_format(const std::string& name, const json::value& v, wish& w) {
  if (!v.is_object()) return bad_param(name, "{} must be an object, not {}", name, kind_of(v));
  const json::object& o = v.get_object();
  for (const auto& [key, value] : o)
    if (key != "type" && key != "schema")
      return bad_param(name, "unknown field '{}.{}'", name, shortened(key));
  const json::value *type = o.if_contains("type"), *schema = o.if_contains("schema");
  if (!type || *type != "json_schema") return bad_param(name + ".type", "{}.type must be json_schema", name);
  if (!schema) return bad_param(name + ".schema", "{}.schema is missing", name);
  return read_schema(name + ".schema", *schema, true, w);
}

// {"type", "name", "schema", "strict", "description"}, as in OpenAI's Responses API.
result<void> read_flat_format(const json::value& v, wish& w) {
  const std::string name = "text.format";
  if (!v.is_object()) return bad_param(name, "{} must be an object, not {}", name, kind_of(v));
  const json::object& o = v.get_object();
  const json::value* type = o.if_contains("type");
  if (!type || !type->is_string()) return bad_param(name + ".type", "{}.type must be a string", name);
  if (*type == "json_schema") {
    if (!o.contains("schema")) return bad_param(name + ".schema", "{}.schema is missing", name);
    return read_named_schema(name, v, w, true);
  }
  for (const auto& [key, value] : o)
    if (key != "type") return bad_param(name, "unknown field '{}.{}'", name, shortened(key));
  if (*type == "text") return {};
  if (*type == "json_object") return w.set(name, {.what = kind::json_object});
  return bad_param(name + ".type", "{}.type must be text, json_object or json_schema, not '{}'", name,
                   shortened(type->get_string()));
}

// Reads the fields that say how the constraint is read and which tokens are forced.
result<void> read_manner(const json::object& body, wish& w) {
  if (const auto* v = body.if_contains("grammar_syntax"); v && !v->is_null()) {
    if (!v->is_string() || (*v != "gbnf" && *v != "lark"))
      return bad_param("grammar_syntax", "grammar_syntax must be gbnf or lark");
    if (!w.what || w.what->what != kind::grammar)
      return bad_param("grammar_syntax", "grammar_syntax goes with a grammar");
    w.what->syntax = std::string(v->get_string());
  }
  if (const auto* v = body.if_contains("whitespace"); v && !v->is_null()) {
    const auto text = read_string("whitespace", *v);
    if (!text) return text.error();
    const auto space = core::grammar::parse_json_space(*text);
    if (!space) return space.error();
    if (!w.what || (w.what->what != kind::json_schema && w.what->what != kind::json_object))
      return bad_param("whitespace", "whitespace goes with a JSON constraint");
    w.what->space = *space;
  }
  if (const auto* v = body.if_contains("force"); v && !v->is_null()) {
    const auto text = read_string("force", *v);
    if (!text) return text.error();
    const auto force = core::grammar::parse_forcing(*text);
    if (!force) return force.error();
    if (!w.what) return bad_param("force", "force goes with a constraint");
    w.force = *force;
  }
  return {};
}

constexpr std::string_view other_fields[] = {"response_format", "structured_outputs", "grammar_syntax",
                                             "whitespace", "force"};

}  // namespace

bool is_constraint_field(std::string_view name) {
  return std::ranges::find(plain_fields, name, &field::name) != std::end(plain_fields) ||
         std::ranges::find(other_fields, name) != std::end(other_fields);
}

namespace {

result<void> read_fields(const json::object& body, wish w, actors::request& r) {
  for (const auto& [key, value] : body) {
    if (value.is_null()) continue;
    result<void> read;
    if (key == "response_format") read = read_response_format(value, w);
    if (key == "structured_outputs") read = read_structured_outputs(value, w);
    if (const auto f = std::ranges::find(plain_fields, std::string_view(key), &field::name);
        f != std::end(plain_fields))
      read = f->read(std::string(key), value, w);
    if (!read) return read;
  }
  if (auto read = read_manner(body, w); !read) return read;
  r.constraint = std::move(w.what);
  r.constraint_param = std::move(w.param);
  r.force = w.force;
  return {};
}

}  // namespace

result<void> read_constraint_fields(const json::object& body, actors::request& r) {
  return read_fields(body, {}, r);
}

result<void> read_response_constraint(const json::object& body, actors::request& r) {
  wish w;
  const json::value* text = body.if_contains("text");
  const json::value* format = text && text->is_object() ? text->get_object().if_contains("format") : nullptr;
  if (format && !format->is_null())
    if (auto read = read_flat_format(*format, w); !read) return read;
  return read_fields(body, std::move(w), r);
}

result<void> read_anthropic_format(const json::object& body, actors::request& r) {
  wish w;
  if (const auto* v = body.if_contains("output_format"); v && !v->is_null())
    if (auto read = read_output_format("output_format", *v, w); !read) return read;
  if (const auto* v = body.if_contains("output_config"); v && !v->is_null()) {
    if (!v->is_object())
      return bad_param("output_config", "output_config must be an object, not {}", kind_of(*v));
    for (const auto& [key, value] : v->get_object()) {
      if (key == "effort") continue;  // read beside the messages
      if (key != "format")
        return bad_param("output_config", "output_config.{} is not supported yet", shortened(key));
      if (value.is_null()) continue;
      if (auto read = read_output_format("output_config.format", value, w); !read) return read;
    }
  }
  r.constraint = std::move(w.what);
  r.constraint_param = std::move(w.param);
  return {};
}

void append_warnings(std::string& out, std::span<const core::grammar::warning> warnings) {
  if (warnings.empty()) return;
  append_key(out, "warnings");
  out += '[';
  for (const auto& w : warnings) {
    append_object(out, [&] {
      append_text(out, "param", w.where);
      append_text(out, "message", w.message);
    });
  }
  out += ']';
}

void add_reading_warnings(std::vector<core::grammar::warning>& to, std::span<const std::string> sentences) {
  for (const std::string& s : sentences) to.push_back({"", s});
}

void append_reading_warnings(std::string& out, std::span<const std::string> sentences) {
  if (sentences.empty()) return;
  std::vector<core::grammar::warning> all;
  add_reading_warnings(all, sentences);
  append_warnings(out, all);
}

}  // namespace weir::net
