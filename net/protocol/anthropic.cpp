#include "net/protocol/anthropic.h"

#include <algorithm>

#include "net/protocol/constraint_fields.h"
#include "net/protocol/json.h"
#include "net/protocol/planned.h"
#include "net/protocol/request_fields.h"

namespace weir::net::anthropic {
namespace {

using core::bad_param;

// Names of other dialects for fields that have another name here, and would change the answer. They are
// refused, because an object with both names would have two meanings.
constexpr std::string_view named_otherwise[] = {"stop", "add_generation_prompt", "continue_final_message"};

// A hint of what to cache. Whatever was computed of a prompt is cached here, so the hint changes nothing.
core::result<void> check_cache_control(const std::string& param, const std::string& name,
                                       const json::value& v) {
  if (v.is_null() || v.is_object()) return {};
  return bad_param(param, "{} must be an object, not {}", name, kind_of(v));
}

// ---- the conversation

// Checks a member of a text block beside `type` and `text`. `at`: where the block stands.
core::result<void> check_block_member(const std::string& param, const std::string& at, std::string_view name,
                                      const json::value& v, ignored_fields& ignored) {
  if (name == "type" || name == "text") return {};
  const std::string full = fmt::format("{}.{}", at, shortened(name));
  if (name == "cache_control") return check_cache_control(param, full, v);
  if (name == "citations") {
    if (is_neutral(v, "[]")) return {};
    return bad_param(param, "{} is not supported yet", full);
  }
  ignored.add(full);
  return {};
}

core::result<void> append_block(const std::string& param, const std::string& at, const json::value& v,
                                json::array& parts, ignored_fields& ignored) {
  const json::object* block = v.if_object();
  if (!block) return bad_param(param, "{} must be an object, not {}", at, kind_of(v));
  const json::value* type = block->if_contains("type");
  if (!type || !type->is_string()) return bad_param(param, "{} must have a string 'type'", at);
  if (type->get_string() != "text") {
    return bad_param(param, "{}: blocks of type '{}' are not supported yet", at,
                     shortened(type->get_string()));
  }
  const json::value* said = block->if_contains("text");
  if (!said || !said->is_string()) return bad_param(param, "{} must have a string 'text'", at);
  for (const auto& [name, value] : *block)
    if (auto fine = check_block_member(param, at, name, value, ignored); !fine) return fine;
  parts.push_back(json::object{{"type", "text"}, {"text", *said}});
  return {};
}

// Reads a content: a string, or a list of text blocks, which become the parts of a template's content.
// `param`: the field that an error blames. `at`: where the value stands.
core::result<json::value> read_content(const std::string& param, const std::string& at, const json::value& v,
                                       ignored_fields& ignored) {
  if (v.is_string()) return v;
  if (!v.is_array())
    return bad_param(param, "{} must be a string or a list of blocks, not {}", at, kind_of(v));
  json::array parts;
  std::size_t i = 0;
  for (const json::value& block : v.get_array()) {
    if (auto read = append_block(param, fmt::format("{}[{}]", at, i++), block, parts, ignored); !read)
      return read.error();
  }
  if (parts.empty()) return json::value(json::string());
  return json::value(std::move(parts));
}

json::value message_of(std::string_view role, json::value content) {
  return json::object{{"role", json::string_view(role.data(), role.size())}, {"content", std::move(content)}};
}

// The text of a content, or of its last part.
std::string_view last_text(const json::value& content) {
  return content.is_string() ? content.get_string() : content.get_array().back().at("text").get_string();
}

core::result<json::value> read_message(const std::string& at, const json::value& v, ignored_fields& ignored) {
  const std::string param = "messages";
  const json::object* o = v.if_object();
  if (!o) return bad_param(param, "{} must be an object, not {}", at, kind_of(v));
  for (const auto& [name, value] : *o)
    if (name != "role" && name != "content") ignored.add(fmt::format("{}.{}", at, shortened(name)));
  const json::value* role = o->if_contains("role");
  if (!role || !role->is_string()) return bad_param(param, "{} must have a string 'role'", at);
  const std::string_view who = role->get_string();
  if (who != "user" && who != "assistant" && who != "system") {
    return bad_param(param, "{}.role must be \"user\", \"assistant\" or \"system\", not \"{}\"", at,
                     shortened(who));
  }
  const json::value* content = o->if_contains("content");
  if (!content) return bad_param(param, "{} must have a 'content'", at);
  auto said = read_content(param, at + ".content", *content, ignored);
  if (!said) return said.error();
  return message_of(who, std::move(*said));
}

bool is_blank(std::string_view text) { return text.find_first_not_of(" \t\n\r\f\v") == text.npos; }

// If the last message is the assistant's, the answer continues it.
core::result<void> leave_open(core::conversation& said) {
  const json::object& last = said.messages.back().get_object();
  if (last.at("role") != "assistant") return {};
  if (is_blank(last_text(last.at("content"))))
    return bad_param("messages", "messages: the last one, of the assistant, has no text to go on with");
  said.continue_final_message = true;
  said.add_generation_prompt = false;
  return {};
}

core::result<core::conversation> read_conversation(const json::object& body, ignored_fields& ignored) {
  core::conversation said;
  if (const json::value* system = body.if_contains("system"); system && !system->is_null()) {
    auto content = read_content("system", "system", *system, ignored);
    if (!content) return content.error();
    const bool empty = content->is_string() && content->get_string().empty();
    if (!empty) said.messages.push_back(message_of("system", std::move(*content)));
  }
  const json::value* messages = body.if_contains("messages");
  if (!messages) return bad_param("messages", "messages is missing");
  if (!messages->is_array())
    return bad_param("messages", "messages must be an array, not {}", kind_of(*messages));
  if (messages->get_array().empty()) return bad_param("messages", "messages is empty");
  std::size_t i = 0;
  for (const json::value& m : messages->get_array()) {
    auto message = read_message(fmt::format("messages[{}]", i++), m, ignored);
    if (!message) return message.error();
    said.messages.push_back(std::move(*message));
  }
  if (auto fine = leave_open(said); !fine) return fine.error();
  return said;
}

// ---- the other fields

core::result<void> read_stream(const std::string& name, const json::value& v, parsed_request& p) {
  auto value = read_bool(name, v);
  if (!value) return value.error();
  p.stream = *value;
  return {};
}

core::result<void> read_end_of_client(const std::string& name, const json::value& v, parsed_request& p) {
  auto cancel = read_on_disconnect(name, v);
  if (!cancel) return cancel.error();
  p.outlives = !*cancel;
  return {};
}

core::result<void> read_stop_sequences(const std::string& name, const json::value& v, parsed_request& p) {
  if (!v.is_array()) return bad_param(name, "{} must be an array of strings, not {}", name, kind_of(v));
  for (const json::value& item : v.get_array()) {
    if (!item.is_string()) {
      return bad_param(name, "{}[{}] must be a string, not {}", name, p.request.stop.size(), kind_of(item));
    }
    p.request.stop.emplace_back(item.get_string());
  }
  return {};
}

core::result<void> check_metadata(const std::string& name, const json::value& v, parsed_request& p) {
  if (!v.is_object()) return bad_param(name, "{} must be an object, not {}", name, kind_of(v));
  for (const auto& [key, value] : v.get_object()) {
    if (key != "user_id") {
      p.ignored.add(fmt::format("{}.{}", name, shortened(key)));
    } else if (!value.is_null() && !value.is_string()) {
      return bad_param(name, "{}.user_id must be a string, not {}", name, kind_of(value));
    }
  }
  return {};
}

core::result<void> check_service_tier(const std::string& name, const json::value& v, parsed_request&) {
  if (v == "auto" || v == "standard_only") return {};
  return bad_param(name, "{} must be \"auto\" or \"standard_only\"", name);
}

core::result<void> check_hint(const std::string& name, const json::value& v, parsed_request&) {
  return check_cache_control(name, name, v);
}

// A field of Anthropic's that no other dialect has.
struct own_field {
  std::string_view name;
  core::result<void> (*read)(const std::string& name, const json::value&, parsed_request&);
};

constexpr own_field own_fields[] = {
    {"stream", read_stream},       {"stop_sequences", read_stop_sequences},
    {"metadata", check_metadata},  {"service_tier", check_service_tier},
    {"cache_control", check_hint}, {"on_disconnect", read_end_of_client},
};

core::result<void> read_field(std::string_view name, const json::value& v, parsed_request& p) {
  if (name == "messages" || name == "system") return {};  // read_conversation()
  if (const auto* planned = find_planned(place::anthropic_field, name)) return judge_planned(*planned, v);
  for (const own_field& f : own_fields) {
    if (f.name != name) continue;
    return v.is_null() ? core::result<void>() : f.read(std::string(name), v, p);
  }
  if (name == "output_format" || name == "output_config") return {};  // read_anthropic_format()
  if (is_constraint_field(name)) return unknown_field(name);
  if (std::ranges::find(named_otherwise, name) != std::end(named_otherwise)) return unknown_field(name);
  auto known = read_request_field(name, v, p.request);
  if (!known) return known.error();
  if (!*known) p.ignored.add(name);
  return {};
}

}  // namespace

core::result<parsed_request> parse(route to, std::string_view body, std::size_t most_values, bool strict) {
  auto object = read_body(body, most_values);
  if (!object) return object.error();
  parsed_request p;
  p.request.input_param = "messages";
  p.request.separate_reasoning = true;
  p.request.stop_param = "stop_sequences";
  auto said = read_conversation(*object, p.ignored);
  if (!said) return said.error();
  p.request.input = std::move(*said);
  for (const auto& [name, value] : *object)
    if (auto read = read_field(name, value, p); !read) return read.error();
  if (strict && !p.ignored.empty()) return p.ignored.refusal();
  if (to == route::messages && !p.request.max_tokens) return bad_param("max_tokens", "max_tokens is missing");
  object->erase("tools");  // neutral, and in a form of Anthropic's own
  object->erase("tool_choice");
  if (auto read = read_template_fields(*object, p.request); !read) return read.error();
  if (auto read = read_anthropic_format(*object, p.request); !read) return read.error();
  return p;
}

// The router forgives doubled slashes and a missing /v1.
bool is_path(std::string_view path) {
  std::string plain;
  for (const char c : path)
    if (c != '/' || plain.empty() || plain.back() != '/') plain += c;
  constexpr std::string_view version = "/v1", base = "/messages";
  std::string_view rest = plain;
  if (rest.starts_with("/v1/")) rest.remove_prefix(version.size());
  return rest == base || (rest.starts_with(base) && rest[base.size()] == '/');
}

}  // namespace weir::net::anthropic
