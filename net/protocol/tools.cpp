#include "net/protocol/tools.h"

#include <algorithm>
#include <boost/json/serialize.hpp>

#include "core/read_json.h"
#include "net/protocol/request_fields.h"

namespace weir::net {
namespace {

using core::bad_param;
using core::tool_definition;
using choice = core::tool_wishes::choice;

// Tools that their providers run. No answer here calls them.
constexpr std::string_view hosted[] = {
    "web_search",       "web_search_preview",   "web_fetch",
    "file_search",      "code_interpreter",     "code_execution",
    "image_generation", "computer_use_preview", "mcp",
    "local_shell",      "tool_search_tool",
};

bool is_hosted(std::string_view type) {
  return std::ranges::any_of(hosted, [&](std::string_view h) {
    return type == h || (type.starts_with(h) && type.size() > h.size() && type[h.size()] == '_');
  });
}

bool is_name(std::string_view s) {
  constexpr std::string_view allowed = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-.:/";
  return !s.empty() && s.size() <= longest_tool_name && s.find_first_not_of(allowed) == s.npos;
}

const json::value* given(const json::object& o, std::string_view name) {
  const auto* v = o.if_contains(name);
  return v && !v->is_null() ? v : nullptr;
}

core::result<std::string> text_of(const json::object& o, const char* name, const std::string& at) {
  const auto* v = given(o, name);
  if (!v) return std::string();
  if (v->is_string()) return std::string(v->get_string());
  return bad_param(at, "{}.{} must be a string, not {}", at, name, kind_of(*v));
}

struct read_tool {
  tool_definition what;
  json::object shown;  // to the template
};

// How the tools of one request are read.
struct reading {
  tool_dialect d;
  std::vector<core::grammar::warning>& dropped;
  std::size_t values_left = most_schema_values;
};

struct tool_schema {
  std::string text;  // empty: any object
  json::value value;
};

// A schema, which read_body() made a text (with_schemas_as_text()).
core::result<tool_schema> schema_in(const json::value& v, const std::string& at, reading& by) {
  const auto no_object = [&](const json::value& is) {
    return bad_param(at, "{} must be an object, not {}", at, kind_of(is));
  };
  if (v.is_object()) return tool_schema{v.get_object().empty() ? "" : json::serialize(v), v};
  if (!v.is_string()) return no_object(v);
  auto parsed = read_json(v.get_string(), {.depth = deepest_schema, .values = by.values_left});
  if (!parsed) return bad_param(at, "{}: {}", at, parsed.error().message);
  if (!parsed->is_object()) return no_object(*parsed);
  by.values_left -= std::min(by.values_left, core::values_in(*parsed));
  std::string text(parsed->get_object().empty() ? "" : v.get_string());
  return tool_schema{std::move(text), std::move(*parsed)};
}

json::object function_of(std::string_view name, std::string_view description, json::value parameters) {
  json::object function{{"name", name}};
  if (!description.empty()) function["description"] = description;
  if (!parameters.is_null()) function["parameters"] = std::move(parameters);
  return {{"type", "function"}, {"function", std::move(function)}};
}

// {"name","description","parameters","strict"} at `at`; Anthropic calls the third input_schema.
core::result<read_tool> read_function(const json::object& o, const std::string& at, reading& by) {
  const char* const schema_name = by.d == tool_dialect::messages ? "input_schema" : "parameters";
  read_tool out;
  auto name = text_of(o, "name", at);
  if (!name) return name.error();
  out.what.name = std::move(*name);
  auto description = text_of(o, "description", at);
  if (!description) return description.error();
  out.what.param = at + "." + schema_name;
  json::value schema;
  if (const auto* v = given(o, schema_name)) {
    auto read = schema_in(*v, out.what.param, by);
    if (!read) return read.error();
    schema = std::move(read->value);
    out.what.parameters = std::move(read->text);
  }
  if (const auto* v = given(o, "strict")) {
    const auto strict = read_bool(at + ".strict", *v);
    if (!strict) return strict.error();
    out.what.strict = *strict;
  } else {
    out.what.enforced = by.d == tool_dialect::responses;  // as OpenAI's Responses have it
  }
  // Anthropic's clients send no type of a tool, and chat templates read `parameters` alone.
  out.shown = function_of(out.what.name, *description, std::move(schema));
  return out;
}

// A tool in the form that templates read: as it was sent, with its schema as a value.
json::object as_sent(const json::object& o, json::object shown) {
  json::object out = o;
  if (json::value* schema = shown.at("function").as_object().if_contains("parameters"))
    out.at("function").as_object()["parameters"] = std::move(*schema);
  return out;
}

core::result<void> read_custom_format(const json::object& o, const std::string& at, tool_definition& to) {
  const auto* v = given(o, "format");
  if (!v) return {};
  to.param = at + ".format";
  const auto* format = v->if_object();
  if (!format) return bad_param(to.param, "{} must be an object, not {}", to.param, kind_of(*v));
  const auto* type = given(*format, "type");
  if (type && *type == "text") return {};
  if (!type || *type != "grammar")
    return bad_param(to.param, "{}.type must be \"text\" or \"grammar\"", to.param);
  const auto* inner = given(*format, "grammar");
  const json::object& grammar = inner && inner->is_object() ? inner->get_object() : *format;
  auto syntax = text_of(grammar, "syntax", to.param), definition = text_of(grammar, "definition", to.param);
  if (!syntax) return syntax.error();
  if (!definition) return definition.error();
  if (*syntax != "lark" && *syntax != "regex")
    return bad_param(to.param, "{}: the syntax of a grammar is \"lark\" or \"regex\"", to.param);
  to.syntax = std::move(*syntax);
  to.grammar = std::move(*definition);
  return {};
}

core::result<read_tool> read_custom(const json::object& o, const std::string& at) {
  read_tool out;
  auto name = text_of(o, "name", at), description = text_of(o, "description", at);
  if (!name) return name.error();
  if (!description) return description.error();
  out.what.name = std::move(*name);
  out.what.what = tool_definition::kind::custom;
  out.what.param = at;
  if (auto read = read_custom_format(o, at, out.what); !read) return read.error();
  json::object schema{{"type", "object"},
                      {"properties", json::object{{"input", json::object{{"type", "string"}}}}},
                      {"required", json::array{"input"}}};
  out.what.parameters = json::serialize(schema);
  out.shown = function_of(out.what.name, *description, std::move(schema));
  return out;
}

// nullopt: a tool that its provider runs.
core::result<std::optional<read_tool>> read_one(const json::value& v, const std::string& at, reading& by) {
  const auto* o = v.if_object();
  if (!o) return bad_param("tools", "{} must be an object, not {}", at, kind_of(v));
  auto type = text_of(*o, "type", at);
  if (!type) return type.error();
  const bool anthropic = by.d == tool_dialect::messages;
  if (is_hosted(*type)) {
    by.dropped.push_back(
        {at, fmt::format("tools of type {} are not here: the tool is left out", shortened(*type))});
    return std::optional<read_tool>();
  }
  const auto finish = [&](core::result<read_tool> made) -> core::result<std::optional<read_tool>> {
    if (!made) return made.error();
    if (!is_name(made->what.name))
      return bad_param("tools", "{}.name must be 1 to {} of A-Z a-z 0-9 _ - . : /, not '{}'", at,
                       longest_tool_name, shortened(made->what.name));
    return std::optional<read_tool>(std::move(*made));
  };
  if (anthropic && (type->empty() || *type == "custom")) return finish(read_function(*o, at, by));
  if (*type == "function" || (type->empty() && o->contains("function"))) {
    const auto* inner = given(*o, "function");
    if (inner && !inner->is_object())
      return bad_param("tools", "{}.function must be an object, not {}", at, kind_of(*inner));
    if (!inner) return finish(read_function(*o, at, by));
    auto made = read_function(inner->get_object(), at + ".function", by);
    if (made && !type->empty()) made->shown = as_sent(*o, std::move(made->shown));
    return finish(std::move(made));
  }
  if (*type == "custom") {
    const auto* inner = given(*o, "custom");
    return finish(inner && inner->is_object() ? read_custom(inner->get_object(), at + ".custom")
                                              : read_custom(*o, at));
  }
  return bad_param("tools", "{}: tools of type '{}' are not supported yet", at, shortened(*type));
}

core::result<json::array> read_list(const json::value& v, reading by, core::tool_wishes& to) {
  if (!v.is_array()) return bad_param("tools", "tools must be an array, not {}", kind_of(v));
  const auto& list = v.get_array();
  if (list.size() > most_tools)
    return bad_param("tools", "tools has {} tools; at most {} are taken", list.size(), most_tools);
  json::array shown;
  std::vector<std::string_view> names;
  to.tools.reserve(list.size());
  for (std::size_t i = 0; i < list.size(); ++i) {
    auto tool = read_one(list[i], fmt::format("tools[{}]", i), by);
    if (!tool) return tool.error();
    if (!*tool) continue;
    shown.push_back(std::move((*tool)->shown));
    names.push_back(to.tools.emplace_back(std::move((*tool)->what)).name);
  }
  std::ranges::sort(names);
  if (const auto twice = std::ranges::adjacent_find(names); twice != names.end())
    return bad_param("tools", "tools: two tools are called '{}'", shortened(*twice));
  return shown;
}

// Keeps the tools of these names alone.
core::result<void> keep(core::tool_wishes& w, const std::vector<std::string>& names) {
  std::vector<tool_definition> kept;
  for (const auto& name : names) {
    const auto at = std::ranges::find(w.tools, name, &tool_definition::name);
    if (at == w.tools.end())
      return bad_param("tool_choice", "tool_choice: there is no tool called '{}'", shortened(name));
    kept.push_back(*at);
  }
  w.tools = std::move(kept);
  return {};
}

// The name in {"type":"function","function":{"name"}}, {"type":"function","name"} and their kin.
core::result<std::string> named_in(const json::object& o) {
  for (const char* inner : {"function", "custom"})
    if (const auto* v = given(o, inner); v && v->is_object())
      return text_of(v->get_object(), "name", "tool_choice");
  return text_of(o, "name", "tool_choice");
}

core::result<void> read_allowed(const json::object& choice_object, core::tool_wishes& w) {
  const auto* inner = given(choice_object, "allowed_tools");
  const json::object& o = inner && inner->is_object() ? inner->get_object() : choice_object;
  auto mode = text_of(o, "mode", "tool_choice");
  if (!mode) return mode.error();
  if (*mode != "auto" && *mode != "required")
    return bad_param("tool_choice",
                     "tool_choice: the mode of allowed_tools must be \"auto\" or \"required\"");
  const auto* list = given(o, "tools");
  if (!list || !list->is_array() || list->get_array().empty())
    return bad_param("tool_choice", "tool_choice: allowed_tools has no list of tools");
  std::vector<std::string> names;
  for (const auto& v : list->get_array()) {
    if (!v.is_object()) return bad_param("tool_choice", "tool_choice: a tool must be an object");
    auto name = named_in(v.get_object());
    if (!name) return name.error();
    names.push_back(std::move(*name));
  }
  w.how = *mode == "auto" ? choice::automatic : choice::required;
  return keep(w, names);
}

core::result<void> read_word(std::string_view word, core::tool_wishes& w) {
  if (word == "auto") {
    w.how = choice::automatic;
  } else if (word == "none") {
    w.how = choice::none;
  } else if (word == "required" || word == "any") {
    w.how = choice::required;
  } else {
    return bad_param("tool_choice", "tool_choice must be auto, none, required or an object, not '{}'",
                     shortened(word));
  }
  return {};
}

core::result<void> read_choice(const json::value& v, core::tool_wishes& w) {
  if (v.is_string()) return read_word(v.get_string(), w);
  const auto* o = v.if_object();
  if (!o) return bad_param("tool_choice", "tool_choice must be a string or an object, not {}", kind_of(v));
  if (const auto* one_only = given(*o, "disable_parallel_tool_use")) {
    const auto read = read_bool("tool_choice.disable_parallel_tool_use", *one_only);
    if (!read) return read.error();
    w.parallel = !*read;
  }
  auto type = text_of(*o, "type", "tool_choice");
  if (!type) return type.error();
  if (*type == "allowed_tools") return read_allowed(*o, w);
  if (*type != "function" && *type != "custom" && *type != "tool") return read_word(*type, w);
  const auto name = named_in(*o);
  if (!name) return name.error();
  w.how = choice::required;
  w.parallel = false;  // this call, and no other
  return keep(w, {*name});
}

}  // namespace

core::result<void> read_tools(const json::object& body, tool_dialect d, actors::request& r,
                              std::vector<core::grammar::warning>& dropped) {
  core::tool_wishes wishes;
  json::array shown;
  if (const auto* v = given(body, "tools")) {
    auto list = read_list(*v, {d, dropped}, wishes);
    if (!list) return list.error();
    shown = std::move(*list);
  }
  if (const auto* v = given(body, "parallel_tool_calls")) {
    const auto parallel = read_bool("parallel_tool_calls", *v);
    if (!parallel) return parallel.error();
    wishes.parallel = *parallel;
  }
  if (const auto* v = given(body, "tool_choice"))
    if (auto read = read_choice(*v, wishes); !read) return read.error();
  if (shown.empty()) {
    if (wishes.how == choice::required) return bad_param("tool_choice", "tool_choice: there are no tools");
    return {};
  }
  auto* said = std::get_if<core::conversation>(&r.input);
  if (!said) return bad_param("tools", "tools goes with messages only, not with a raw prompt");
  if (wishes.how != choice::none) said->tools = std::move(shown);
  r.tools = std::move(wishes);
  return {};
}

}  // namespace weir::net
