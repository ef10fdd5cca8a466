#include "net/protocol/response_tools.h"

#include <algorithm>
#include <boost/json/serialize.hpp>

#include "net/protocol/json.h"

namespace weir::net::responses {
namespace {

using core::bad_param;
using core::result;
using core::tool_definition;

// Tools that a server carries out by itself, and not the client.
constexpr std::string_view hosted_tools[] = {
    "web_search", "file_search", "code_interpreter",     "image_generation",
    "computer",   "mcp",         "computer_use_preview", "local_shell",
};

bool is_hosted(std::string_view type) {
  return type.starts_with("web_search") ||
         std::ranges::find(hosted_tools, type) != std::end(hosted_tools);
}

result<std::string> text_member(const std::string& name, const json::object& o, const char* key) {
  const json::value* v = o.if_contains(key);
  const std::string member = fmt::format("{}.{}", name, key);
  if (!v || v->is_null()) return bad_param(member, "{} is missing", member);
  return read_string(member, *v);
}

result<std::string> optional_text(const std::string& name, const json::object& o, const char* key) {
  const json::value* v = o.if_contains(key);
  if (!v || v->is_null()) return std::string();
  return read_string(fmt::format("{}.{}", name, key), *v);
}

struct list_reader {
  read_tools out;

  bool is_taken(std::string_view name) const {
    return std::ranges::find(out.wishes.tools, name, &tool_definition::name) != out.wishes.tools.end();
  }

  std::string name_for(const std::string& space, const std::string& name) {
    if (space.empty()) return name;
    const std::string base = flat_name_of(space, name);
    std::string flat = base;
    for (int n = 2; is_taken(flat); ++n) flat = fmt::format("{}_{}", base, n);
    out.names.push_back({flat, space, name});
    return flat;
  }

  result<void> add(const std::string& at, const json::object& tool, const std::string& space,
                   tool_definition::kind what) {
    if (out.wishes.tools.size() == most_tools)
      return bad_param("tools", "tools has over {} tools", most_tools);
    auto name = text_member(at, tool, "name");
    if (!name) return name.error();
    const bool twice = space.empty() ? is_taken(*name)
                                     : std::ranges::any_of(out.names, [&](const flat_name& n) {
                                         return n.space == space && n.name == *name;
                                       });
    if (twice) return bad_param(at + ".name", "{}.name: there are two tools '{}'", at, shortened(*name));
    auto said = optional_text(at, tool, "description");
    if (!said) return said.error();
    tool_definition t;
    t.name = name_for(space, *name);
    t.what = what;
    json::object function{{"name", t.name}};
    if (!said->empty()) function["description"] = *said;
    auto read = what == tool_definition::kind::function ? read_function(at, tool, t, function)
                                                        : read_custom(at, tool, t, function);
    if (!read) return read;
    out.wishes.tools.push_back(std::move(t));
    out.shown.push_back(json::object{{"type", "function"}, {"function", std::move(function)}});
    return {};
  }

  static result<void> read_function(const std::string& at, const json::object& tool, tool_definition& t,
                                    json::object& function) {
    t.param = at + ".parameters";
    if (const json::value* v = tool.if_contains("strict"); v && !v->is_null()) {
      auto strict = read_bool(at + ".strict", *v);
      if (!strict) return strict.error();
      t.strict = *strict;
    }
    const json::value* v = tool.if_contains("parameters");
    if (!v || v->is_null()) return {};
    if (!v->is_object()) return bad_param(t.param, "{} must be an object, not {}", t.param, kind_of(*v));
    t.parameters = json::serialize(*v);
    function["parameters"] = *v;
    return {};
  }

  // A custom tool: the model is told of a function with one text.
  static result<void> read_custom(const std::string& at, const json::object& tool, tool_definition& t,
                                  json::object& function) {
    t.param = at + ".format";
    function["parameters"] = json::object{{"type", "object"},
                                          {"properties", {{"input", {{"type", "string"}}}}},
                                          {"required", json::array{"input"}},
                                          {"additionalProperties", false}};
    const json::value* v = tool.if_contains("format");
    if (!v || v->is_null()) return {};
    if (!v->is_object()) return bad_param(t.param, "{} must be an object, not {}", t.param, kind_of(*v));
    auto type = text_member(t.param, v->get_object(), "type");
    if (!type) return type.error();
    if (*type == "text") return {};
    if (*type != "grammar")
      return bad_param(t.param + ".type", "{}.type must be text or grammar, not '{}'", t.param,
                       shortened(*type));
    auto definition = text_member(t.param, v->get_object(), "definition");
    if (!definition) return definition.error();
    auto syntax = text_member(t.param, v->get_object(), "syntax");
    if (!syntax) return syntax.error();
    if (*syntax != "lark" && *syntax != "regex")
      return bad_param(t.param + ".syntax", "{}.syntax must be lark or regex, not '{}'", t.param,
                       shortened(*syntax));
    t.grammar = std::move(*definition);
    t.syntax = std::move(*syntax);
    t.param += ".definition";
    return {};
  }

  result<void> add_space(const std::string& at, const json::object& space) {
    auto name = text_member(at, space, "name");
    if (!name) return name.error();
    const json::value* list = space.if_contains("tools");
    if (!list || !list->is_array())
      return bad_param(at + ".tools", "{}.tools must be an array of tools", at);
    std::size_t i = 0;
    for (const json::value& v : list->get_array()) {
      const std::string inner = fmt::format("{}.tools[{}]", at, i++);
      if (!v.is_object()) return bad_param(inner, "{} must be an object, not {}", inner, kind_of(v));
      auto type = text_member(inner, v.get_object(), "type");
      if (!type) return type.error();
      if (*type != "function" && *type != "custom")
        return bad_param(inner + ".type", "{}.type must be function or custom, not '{}'", inner,
                         shortened(*type));
      const auto what = *type == "custom" ? tool_definition::kind::custom : tool_definition::kind::function;
      if (auto read = add(inner, v.get_object(), *name, what); !read) return read;
    }
    return {};
  }

  result<void> read(const json::value& list) {
    if (!list.is_array()) return bad_param("tools", "tools must be an array, not {}", kind_of(list));
    std::size_t i = 0;
    for (const json::value& v : list.get_array()) {
      const std::string at = fmt::format("tools[{}]", i++);
      if (!v.is_object()) return bad_param(at, "{} must be an object, not {}", at, kind_of(v));
      const json::object& tool = v.get_object();
      auto type = text_member(at, tool, "type");
      if (!type) return type.error();
      if (is_hosted(*type)) {
        if (out.warnings.size() < most_warnings)
          out.warnings.push_back({at, fmt::format("tools of type '{}' are left out: the server carries out "
                                                  "no tools",
                                                  shortened(*type))});
        continue;
      }
      result<void> read;
      if (*type == "function")
        read = add(at, tool, {}, tool_definition::kind::function);
      else if (*type == "custom")
        read = add(at, tool, {}, tool_definition::kind::custom);
      else if (*type == "namespace")
        read = add_space(at, tool);
      else
        read = bad_param(at + ".type", "{}.type '{}' is not supported", at, shortened(*type));
      if (!read) return read;
      out.kept.push_back(v);
    }
    return {};
  }

  // Keeps only the tools with these names.
  void only(const std::vector<std::string>& names) {
    std::erase_if(out.wishes.tools, [&](const tool_definition& t) {
      return std::ranges::find(names, t.name) == names.end();
    });
  }

  // The tool that a choice names.
  result<std::string> chosen(const std::string& at, const json::object& o) {
    auto name = text_member(at, o, "name");
    if (!name) return name;
    auto space = optional_text(at, o, "namespace");
    if (!space) return space;
    const std::string flat = model_name(out.names, *space, *name);
    if (is_taken(flat)) return flat;
    return bad_param(at + ".name", "{}.name: there is no tool '{}'", at, shortened(*name));
  }

  result<void> read_allowed(const json::object& o) {
    auto mode = text_member("tool_choice", o, "mode");
    if (!mode) return mode.error();
    if (*mode != "auto" && *mode != "required")
      return bad_param("tool_choice.mode", "tool_choice.mode must be auto or required, not '{}'",
                       shortened(*mode));
    const json::value* list = o.if_contains("tools");
    if (!list || !list->is_array())
      return bad_param("tool_choice.tools", "tool_choice.tools must be an array of tools");
    std::vector<std::string> names;
    std::size_t i = 0;
    for (const json::value& v : list->get_array()) {
      const std::string at = fmt::format("tool_choice.tools[{}]", i++);
      if (!v.is_object()) return bad_param(at, "{} must be an object, not {}", at, kind_of(v));
      auto type = text_member(at, v.get_object(), "type");
      if (!type) return type.error();
      if (is_hosted(*type)) continue;  // as the tools themselves
      auto name = chosen(at, v.get_object());
      if (!name) return name.error();
      names.push_back(std::move(*name));
    }
    only(names);
    if (*mode == "required") out.wishes.how = core::tool_wishes::choice::required;
    return {};
  }

  result<void> read_choice(const json::value& v) {
    using choice = core::tool_wishes::choice;
    if (v == "auto") return {};
    if (v == "none") return out.wishes.how = choice::none, result<void>();
    if (v == "required") {
      if (out.wishes.tools.empty())
        return bad_param("tool_choice", "tool_choice \"required\" goes with tools");
      out.wishes.how = choice::required;
      return {};
    }
    if (!v.is_object())
      return bad_param("tool_choice", "tool_choice must be none, auto, required or an object");
    const json::object& o = v.get_object();
    auto type = text_member("tool_choice", o, "type");
    if (!type) return type.error();
    if (*type == "allowed_tools") return read_allowed(o);
    if (*type != "function" && *type != "custom")
      return bad_param("tool_choice.type", "tool_choice.type '{}' is not supported", shortened(*type));
    auto name = chosen("tool_choice", o);
    if (!name) return name.error();
    only({*name});
    out.wishes.how = choice::required;
    return {};
  }

  static constexpr std::size_t most_warnings = 16;
};

}  // namespace

std::string flat_name_of(std::string_view space, std::string_view name) {
  return fmt::format("{}{}{}", space, space.ends_with("__") ? "" : "__", name);
}

std::string model_name(const std::vector<flat_name>& names, std::string_view space, std::string_view name) {
  if (space.empty()) return std::string(name);
  for (const flat_name& n : names)
    if (n.space == space && n.name == name) return n.flat;
  return flat_name_of(space, name);
}

result<read_tools> read_response_tools(const json::object& body) {
  list_reader all;
  if (const json::value* v = body.if_contains("tools"); v && !v->is_null())
    if (auto read = all.read(*v); !read) return read.error();
  if (const json::value* v = body.if_contains("tool_choice"); v && !v->is_null())
    if (auto read = all.read_choice(*v); !read) return read.error();
  if (const json::value* v = body.if_contains("parallel_tool_calls"); v && !v->is_null()) {
    auto parallel = read_bool("parallel_tool_calls", *v);
    if (!parallel) return parallel.error();
    all.out.wishes.parallel = *parallel;
  }
  return std::move(all.out);
}

}  // namespace weir::net::responses
