#include "net/protocol/response_tools.h"

#include <charconv>
#include <unordered_set>

#include "net/protocol/json.h"
#include "net/protocol/tools.h"

namespace weir::net::responses {
namespace {

using core::bad_param;
using core::result;

std::string_view text_or_empty(const json::object& o, std::string_view key) {
  const json::value* v = o.if_contains(key);
  return v && v->is_string() ? std::string_view(v->get_string()) : std::string_view();
}

class flattener {
 public:
  explicit flattener(std::vector<flat_name>& names) : names_(names) {}

  // The list with the tools of its namespaces in their places. What is no tool stays as it is: read_tools()
  // refuses it.
  result<json::array> list(const json::array& tools) {
    for (const json::value& v : tools)
      if (v.is_object() && !is_space(v)) taken_.emplace(text_or_empty(v.get_object(), "name"));
    json::array out;
    for (std::size_t i = 0; i < tools.size(); ++i) {
      const std::string at = fmt::format("tools[{}]", i);
      if (!tools[i].is_object() || !is_space(tools[i])) {
        places_.push_back(at);
        out.push_back(tools[i]);
      } else if (auto read = space(at, tools[i].get_object(), out); !read) {
        return read.error();
      }
    }
    return out;
  }

  // A choice that names tools by their names for the model.
  json::value choice(json::value v) const {
    if (!v.is_object()) return v;
    json::object& o = v.get_object();
    rename(o);
    json::value* list = o.if_contains("tools");
    if (!list || !list->is_array()) return v;
    json::array named;
    for (json::value& tool : list->get_array()) {
      const bool here = !tool.is_object() || text_or_empty(tool.get_object(), "type") == "function" ||
                        text_or_empty(tool.get_object(), "type") == "custom";
      if (!here) continue;  // left out, as the tools themselves are
      if (tool.is_object()) rename(tool.get_object());
      named.push_back(std::move(tool));
    }
    *list = std::move(named);
    return v;
  }

  // Changes a text that begins with the place of a tool in the flat list to the place in the client's.
  void restore_place(std::string& text) const {
    constexpr std::string_view begin = "tools[";
    if (!text.starts_with(begin)) return;
    std::size_t number = 0;
    const char* const last = text.data() + text.size();
    const auto [end, wrong] = std::from_chars(text.data() + begin.size(), last, number);
    if (wrong != std::errc() || end == last || *end != ']' || number >= places_.size()) return;
    text.replace(0, static_cast<std::size_t>(end + 1 - text.data()), places_[number]);
  }

 private:
  static bool is_space(const json::value& v) { return text_or_empty(v.as_object(), "type") == "namespace"; }

  result<void> space(const std::string& at, const json::object& o, json::array& out) {
    const std::string name(text_or_empty(o, "name"));
    if (name.empty()) return bad_param(at + ".name", "{}.name must be a string with a character", at);
    const json::value* list = o.if_contains("tools");
    if (!list || !list->is_array()) return bad_param(at + ".tools", "{}.tools must be an array of tools", at);
    std::unordered_set<std::string> here;
    std::size_t i = 0;
    for (const json::value& v : list->get_array()) {
      const std::string inner = fmt::format("{}.tools[{}]", at, i++);
      if (!v.is_object()) return bad_param(inner, "{} must be an object, not {}", inner, kind_of(v));
      const auto type = text_or_empty(v.get_object(), "type");
      if (type != "function" && type != "custom")
        return bad_param(inner + ".type", "{}.type must be function or custom", inner);
      const std::string tool(text_or_empty(v.get_object(), "name"));
      if (tool.empty()) return bad_param(inner + ".name", "{}.name must be a string with a character", inner);
      if (!here.insert(tool).second)
        return bad_param(inner + ".name", "{}.name: two tools are called '{}'", inner, shortened(tool));
      json::object flat = v.get_object();
      flat["name"] = add_name(name, tool);
      places_.push_back(inner);
      out.push_back(std::move(flat));
    }
    return {};
  }

  const std::string& add_name(const std::string& space, const std::string& name) {
    const std::string base = flat_name_of(space, name);
    std::string flat = base;
    for (int n = 2; !taken_.insert(flat).second; ++n) flat = fmt::format("{}_{}", base, n);
    names_.push_back({std::move(flat), space, name});
    return names_.back().flat;
  }

  void rename(json::object& o) const {
    const auto space = text_or_empty(o, "namespace");
    if (!space.empty()) o["name"] = model_name(names_, space, text_or_empty(o, "name"));
  }

  std::vector<flat_name>& names_;
  std::unordered_set<std::string> taken_;
  std::vector<std::string> places_;  // of each tool of the flat list in the client's
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

result<void> read_response_tools(const json::object& body, actors::request& r, std::vector<flat_name>& names,
                                 std::vector<core::grammar::warning>& dropped) {
  flattener flat(names);
  json::object fields;
  for (const char* key : {"tools", "tool_choice", "parallel_tool_calls"})
    if (const json::value* v = body.if_contains(key)) fields[key] = *v;
  if (json::value* v = fields.if_contains("tools"); v && v->is_array()) {
    auto list = flat.list(v->get_array());
    if (!list) return list.error();
    *v = std::move(*list);
  }
  if (json::value* v = fields.if_contains("tool_choice")) *v = flat.choice(std::move(*v));
  if (auto read = read_tools(fields, tool_dialect::responses, r, dropped); !read) {
    core::error e = read.error();
    flat.restore_place(e.param);
    flat.restore_place(e.message);
    return e;
  }
  for (auto& tool : r.tools.tools) flat.restore_place(tool.param);
  for (auto& w : dropped) flat.restore_place(w.where);
  return {};
}

}  // namespace weir::net::responses
