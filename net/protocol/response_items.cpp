// Makes a conversation of the items of the Responses API.
#include <algorithm>
#include <boost/json/serialize.hpp>

#include "net/protocol/json.h"
#include "net/protocol/responses.h"

namespace weir::net::responses {
namespace {

using core::bad_param;
using core::result;

constexpr std::string_view roles[] = {"user", "assistant", "system", "developer"};

class conversation_maker {
 public:
  conversation_maker(json::array& out, const std::vector<flat_name>& names) : out_(out), names_(names) {}

  std::size_t pictures() const { return pictures_; }

  result<void> add(const std::string& at, const json::object& item) {
    const json::value* t = item.if_contains("type");
    const std::string_view type = t && t->is_string() ? std::string_view(t->get_string()) : "message";
    if (type == "message") return message(at, item);
    if (type == "reasoning") return reasoning(at, item);
    if (type == "function_call") return call(at, item, false);
    if (type == "custom_tool_call") return call(at, item, true);
    if (type == "function_call_output" || type == "custom_tool_call_output") return output(at, item);
    return bad_param(at + ".type", "{}: items of type '{}' are not supported", at, shortened(type));
  }

 private:
  static result<std::string> text(const std::string& at, const json::object& o, const char* key) {
    const json::value* v = o.if_contains(key);
    const std::string name = fmt::format("{}.{}", at, key);
    if (!v) return bad_param(name, "{} is missing", name);
    return read_string(name, *v);
  }

  // A content of parts: a text, or a list of text parts where there are several.
  result<json::value> content(const std::string& name, const json::value& v) {
    if (v.is_string()) return v;
    if (!v.is_array())
      return bad_param(name, "{} must be a string or an array of parts, not {}", name, kind_of(v));
    json::array parts;
    std::size_t i = 0;
    for (const json::value& p : v.get_array()) {
      const std::string at = fmt::format("{}[{}]", name, i++);
      if (!p.is_object()) return bad_param(at, "{} must be an object, not {}", at, kind_of(p));
      auto type = text(at, p.get_object(), "type");
      if (!type) return type.error();
      if (*type == "input_image") {
        ++pictures_;
        continue;
      }
      const bool is_text = *type == "input_text" || *type == "output_text" || *type == "text";
      if (!is_text && *type != "refusal")
        return bad_param(at + ".type", "{}: parts of type '{}' are not supported", at, shortened(*type));
      auto said = text(at, p.get_object(), is_text ? "text" : "refusal");
      if (!said) return said.error();
      parts.push_back(json::object{{"type", "text"}, {"text", std::move(*said)}});
    }
    if (parts.empty()) return json::value("");
    if (parts.size() == 1) return json::value(parts.front().at("text"));
    return json::value(std::move(parts));
  }

  // A new message. Reasoning that came before belongs to a message of the assistant.
  json::object& begin(std::string_view role) {
    json::object m{{"role", role}};
    if (role == "assistant" && !reasoning_.empty()) m["reasoning_content"] = reasoning_;
    reasoning_.clear();
    out_.push_back(std::move(m));
    return out_.back().get_object();
  }

  result<void> message(const std::string& at, const json::object& item) {
    auto role = text(at, item, "role");
    if (!role) return role.error();
    if (std::ranges::find(roles, *role) == std::end(roles))
      return bad_param(at + ".role", "{}.role must be user, assistant, system or developer, not '{}'", at,
                       shortened(*role));
    const json::value* v = item.if_contains("content");
    if (!v) return bad_param(at + ".content", "{}.content is missing", at);
    auto said = content(at + ".content", *v);
    if (!said) return said.error();
    begin(*role)["content"] = std::move(*said);
    return {};
  }

  result<void> add_texts(const std::string& at, const json::value* list, std::string& to) {
    if (!list || list->is_null()) return {};
    if (!list->is_array()) return bad_param(at, "{} must be an array, not {}", at, kind_of(*list));
    std::size_t i = 0;
    for (const json::value& p : list->get_array()) {
      const std::string name = fmt::format("{}[{}]", at, i++);
      if (!p.is_object()) return bad_param(name, "{} must be an object, not {}", name, kind_of(p));
      auto said = text(name, p.get_object(), "text");
      if (!said) return said.error();
      if (!to.empty()) to += '\n';
      to += *said;
    }
    return {};
  }

  // The text itself where it is there, else its summary. What is encrypted is not read.
  result<void> reasoning(const std::string& at, const json::object& item) {
    std::string whole, summary;
    if (auto read = add_texts(at + ".content", item.if_contains("content"), whole); !read) return read;
    if (auto read = add_texts(at + ".summary", item.if_contains("summary"), summary); !read) return read;
    if (whole.empty()) whole = std::move(summary);
    if (whole.empty()) return {};
    if (!reasoning_.empty()) reasoning_ += '\n';
    reasoning_ += whole;
    return {};
  }

  // Calls that follow one another, or a text of the assistant, are of one message.
  json::object& message_of_calls() {
    if (reasoning_.empty() && !out_.empty() && out_.back().at("role") == "assistant")
      return out_.back().get_object();
    json::object& m = begin("assistant");
    m["content"] = nullptr;
    return m;
  }

  result<void> call(const std::string& at, const json::object& item, bool custom) {
    auto id = text(at, item, "call_id");
    if (!id) return id.error();
    auto name = text(at, item, "name");
    if (!name) return name.error();
    auto said = text(at, item, custom ? "input" : "arguments");
    if (!said) return said.error();
    std::string space;
    if (const json::value* v = item.if_contains("namespace"); v && !v->is_null()) {
      auto read = read_string(at + ".namespace", *v);
      if (!read) return read.error();
      space = std::move(*read);
    }
    if (custom) *said = json::serialize(json::object{{"input", *said}});
    json::object function{{"name", model_name(names_, space, *name)}, {"arguments", std::move(*said)}};
    json::object& m = message_of_calls();
    if (!m.contains("tool_calls")) m["tool_calls"] = json::array();
    m["tool_calls"].get_array().push_back(
        json::object{{"id", std::move(*id)}, {"type", "function"}, {"function", std::move(function)}});
    return {};
  }

  result<void> output(const std::string& at, const json::object& item) {
    auto id = text(at, item, "call_id");
    if (!id) return id.error();
    const json::value* v = item.if_contains("output");
    if (!v) return bad_param(at + ".output", "{}.output is missing", at);
    auto said = content(at + ".output", *v);
    if (!said) return said.error();
    json::object& m = begin("tool");
    m["tool_call_id"] = std::move(*id);
    m["content"] = std::move(*said);
    return {};
  }

  json::array& out_;
  const std::vector<flat_name>& names_;
  std::string reasoning_;  // for the next message of the assistant
  std::size_t pictures_ = 0;
};

// The item that a reference names; the item itself if it is none.
result<const json::object*> resolved(const std::string& at, const json::object& item,
                                     const item_finder& find) {
  const json::value* type = item.if_contains("type");
  if (!type || *type != "item_reference") return &item;
  const std::string_view id(item.at("id").get_string());  // parse() has checked it
  const json::value* found = find ? find(id) : nullptr;
  if (!found || !found->is_object())
    return bad_param(at + ".id", "{}.id: there is no item '{}'", at, shortened(id));
  return &found->get_object();
}

}  // namespace

result<void> converse(parsed_request& p, std::span<const json::array> earlier, const item_finder& find) {
  auto& said = std::get<core::conversation>(p.request.input);
  if (!p.instructions.empty())
    said.messages.push_back(json::object{{"role", "system"}, {"content", p.instructions}});
  conversation_maker make(said.messages, p.names);
  for (const json::array& items : earlier) {
    for (const json::value& item : items) {
      if (!item.is_object()) continue;
      if (auto added = make.add("previous_response_id", item.get_object()); !added) return added;
    }
  }
  std::size_t i = 0;
  for (json::value& item : p.items) {
    const std::string at = fmt::format("input[{}]", i++);
    auto is = resolved(at, item.get_object(), find);
    if (!is) return is.error();
    if (*is != &item.get_object()) item = json::value(**is);
    if (auto added = make.add(at, item.get_object()); !added) return added;
  }
  if (said.messages.empty() && p.generate) return bad_param("input", "input has no message");
  if (make.pictures() > 0)
    p.warnings.push_back(
        {"input", fmt::format("{} images are left out: models here read text alone", make.pictures())});
  return {};
}

}  // namespace weir::net::responses
