#include "net/protocol/anthropic.h"

#include <algorithm>

#include "net/protocol/constraint_fields.h"
#include "net/protocol/dynamic_temperature.h"
#include "net/protocol/json.h"
#include "net/protocol/planned.h"
#include "net/protocol/request_fields.h"
#include "net/protocol/tools.h"

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

// Claude Code begins its system prompt with a line that differs in every request. A constant in its place
// lets requests share what is computed of their prompts.
std::string without_billing(std::string said) {
  constexpr std::string_view header = "x-anthropic-billing-header:";
  if (!said.starts_with(header)) return said;
  const std::size_t end = std::min(said.find('\n'), said.size());
  return said.replace(header.size(), end - header.size(), " none");
}

void replace_billing(json::value& content) {
  json::value* first = &content;
  if (content.is_array())
    first = content.get_array().empty() ? nullptr : &content.get_array().front().at("text");
  if (first) *first = without_billing(std::string(first->as_string()));
}

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

// What the blocks of a content come to.
struct blocks {
  json::array parts;     // text, in the form of a template's content
  json::array calls;     // tool_use: of chat completions
  json::array results;   // tool_result: whole messages
  std::string thinking;  // of all thinking blocks

  json::value content() {
    if (parts.empty()) return json::value(json::string());
    return json::value(std::move(parts));
  }
};

struct block_place {
  std::string param;  // the field that an error blames
  std::string at;     // where the block stands
};

core::result<std::string> text_member(const block_place& p, const json::object& block, const char* name) {
  const json::value* v = block.if_contains(name);
  if (!v || !v->is_string()) return bad_param(p.param, "{} must have a string '{}'", p.at, name);
  return std::string(v->get_string());
}

core::result<json::value> read_content(const block_place& p, const json::value& v, parsed_request& to);

core::result<void> read_tool_use(const block_place& p, const json::object& block, blocks& out) {
  const auto id = text_member(p, block, "id"), name = text_member(p, block, "name");
  if (!id) return id.error();
  if (!name) return name.error();
  const json::value* input = block.if_contains("input");
  if (!input || !input->is_object()) return bad_param(p.param, "{} must have an object 'input'", p.at);
  out.calls.push_back(json::object{
      {"id", *id}, {"type", "function"}, {"function", json::object{{"name", *name}, {"arguments", *input}}}});
  return {};
}

// A result of a tool is a message of its own.
core::result<void> read_tool_result(const block_place& p, const json::object& block, blocks& out,
                                    parsed_request& to) {
  const auto id = text_member(p, block, "tool_use_id");
  if (!id) return id.error();
  json::value said = json::string();
  if (const json::value* content = block.if_contains("content"); content && !content->is_null()) {
    auto read = read_content({p.param, p.at + ".content"}, *content, to);
    if (!read) return read.error();
    said = std::move(*read);
  }
  out.results.push_back(json::object{{"role", "tool"}, {"tool_call_id", *id}, {"content", std::move(said)}});
  return {};
}

// The signature of a thinking block is taken back unread.
core::result<void> read_thinking(const block_place& p, const json::object& block, blocks& out) {
  const auto text = text_member(p, block, "thinking");
  if (!text) return text.error();
  out.thinking += *text;
  return {};
}

core::result<void> read_text(const block_place& p, const json::object& block, blocks& out,
                             parsed_request& to) {
  const auto said = text_member(p, block, "text");
  if (!said) return said.error();
  for (const auto& [name, value] : block)
    if (auto fine = check_block_member(p.param, p.at, name, value, to.ignored); !fine) return fine;
  out.parts.push_back(json::object{{"type", "text"}, {"text", *said}});
  return {};
}

core::result<void> read_block(const block_place& p, const json::value& v, blocks& out, parsed_request& to) {
  const json::object* block = v.if_object();
  if (!block) return bad_param(p.param, "{} must be an object, not {}", p.at, kind_of(v));
  const auto type = text_member(p, *block, "type");
  if (!type) return type.error();
  if (*type == "text") return read_text(p, *block, out, to);
  if (*type == "tool_use") return read_tool_use(p, *block, out);
  if (*type == "tool_result") return read_tool_result(p, *block, out, to);
  if (*type == "thinking") return read_thinking(p, *block, out);
  if (*type == "redacted_thinking") return {};
  if (*type == "image") {
    to.warnings.push_back({p.at, "images are not read: the block is left out"});
    return {};
  }
  return bad_param(p.param, "{}: blocks of type '{}' are not supported yet", p.at, shortened(*type));
}

core::result<blocks> read_blocks(const block_place& p, const json::value& v, parsed_request& to) {
  blocks out;
  if (!v.is_array())
    return bad_param(p.param, "{} must be a string or a list of blocks, not {}", p.at, kind_of(v));
  std::size_t i = 0;
  for (const json::value& block : v.get_array())
    if (auto read = read_block({p.param, fmt::format("{}[{}]", p.at, i++)}, block, out, to); !read)
      return read.error();
  return out;
}

// A content of text alone: a string, or a list of text blocks, which become the parts of a template's
// content.
core::result<json::value> read_content(const block_place& p, const json::value& v, parsed_request& to) {
  if (v.is_string()) return v;
  auto made = read_blocks(p, v, to);
  if (!made) return made.error();
  if (!made->calls.empty() || !made->results.empty() || !made->thinking.empty())
    return bad_param(p.param, "{} has text blocks only", p.at);
  return made->content();
}

json::value message_of(std::string_view role, json::value content) {
  return json::object{{"role", json::string_view(role.data(), role.size())}, {"content", std::move(content)}};
}

// The text of a content, or of its last part.
std::string_view last_text(const json::value& content) {
  return content.is_string() ? content.get_string() : content.get_array().back().at("text").get_string();
}

// A message of the assistant: what it thought, said and called.
void append_assistant(blocks& said, json::array& to) {
  json::value m = message_of("assistant", said.content());
  auto& o = m.get_object();
  if (!said.thinking.empty()) o["reasoning_content"] = said.thinking;
  if (!said.calls.empty()) o["tool_calls"] = std::move(said.calls);
  to.push_back(std::move(m));
}

// A message of the user: the results of tools come before what is said beside them.
void append_user(std::string_view role, blocks& said, json::array& to) {
  const bool results = !said.results.empty();
  for (json::value& m : said.results) to.push_back(std::move(m));
  if (!results || !said.parts.empty()) to.push_back(message_of(role, said.content()));
}

core::result<void> read_message(const std::string& at, const json::value& v, parsed_request& p,
                                json::array& to) {
  const std::string param = "messages";
  const json::object* o = v.if_object();
  if (!o) return bad_param(param, "{} must be an object, not {}", at, kind_of(v));
  for (const auto& [name, value] : *o)
    if (name != "role" && name != "content") p.ignored.add(fmt::format("{}.{}", at, shortened(name)));
  const json::value* role = o->if_contains("role");
  if (!role || !role->is_string()) return bad_param(param, "{} must have a string 'role'", at);
  const std::string_view who = role->get_string();
  if (who != "user" && who != "assistant" && who != "system") {
    return bad_param(param, "{}.role must be \"user\", \"assistant\" or \"system\", not \"{}\"", at,
                     shortened(who));
  }
  const json::value* content = o->if_contains("content");
  if (!content) return bad_param(param, "{} must have a 'content'", at);
  const std::string place = at + ".content";
  if (content->is_string()) {
    to.push_back(message_of(who, *content));
    return {};
  }
  auto said = read_blocks({param, place}, *content, p);
  if (!said) return said.error();
  const bool assistant = who == "assistant";
  if (!assistant && (!said->calls.empty() || !said->thinking.empty()))
    return bad_param(param, "{}: tool_use and thinking blocks are the assistant's", place);
  if (who != "user" && !said->results.empty())
    return bad_param(param, "{}: tool_result blocks are the user's", place);
  if (assistant)
    append_assistant(*said, to);
  else
    append_user(who, *said, to);
  return {};
}

bool is_blank(std::string_view text) { return text.find_first_not_of(" \t\n\r\f\v") == text.npos; }

// If the last message is the assistant's, the answer continues it.
core::result<void> leave_open(core::conversation& said) {
  const json::object& last = said.messages.back().get_object();
  if (last.at("role") != "assistant" || last.contains("tool_calls")) return {};
  if (is_blank(last_text(last.at("content"))))
    return bad_param("messages", "messages: the last one, of the assistant, has no text to go on with");
  said.continue_final_message = true;
  said.add_generation_prompt = false;
  return {};
}

core::result<core::conversation> read_conversation(const json::object& body, parsed_request& p) {
  core::conversation said;
  if (const json::value* system = body.if_contains("system"); system && !system->is_null()) {
    auto content = read_content({"system", "system"}, *system, p);
    if (!content) return content.error();
    replace_billing(*content);
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
    if (auto read = read_message(fmt::format("messages[{}]", i++), m, p, said.messages); !read)
      return read.error();
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

// Whether the model thinks is a matter of its template; the budget is a bound of the reasoning.
core::result<void> read_thinking_field(const std::string& name, const json::value& v, parsed_request& p) {
  if (!v.is_object()) return bad_param(name, "{} must be an object, not {}", name, kind_of(v));
  const json::value* type = v.get_object().if_contains("type");
  const bool on = type && (*type == "enabled" || *type == "adaptive");
  if (!on && (!type || *type != "disabled"))
    return bad_param(name, "{}.type must be \"enabled\", \"adaptive\" or \"disabled\"", name);
  p.thinks = on;
  const json::value* budget = v.get_object().if_contains("budget_tokens");
  if (!on || !budget || budget->is_null()) return {};
  const std::string param = name + ".budget_tokens";
  const auto tokens = read_integer(param, *budget);
  if (!tokens) return tokens.error();
  if (*tokens < 0) return bad_param(param, "{} must be at least 0, not {}", param, *tokens);
  const auto& other = p.request.max_reasoning_tokens;
  if (other && *other != *tokens)
    return bad_param(param, "{} and {} are the same field: set one of them", param,
                     p.request.max_reasoning_param);
  p.request.max_reasoning_tokens = *tokens;
  p.request.max_reasoning_param = param;
  return {};
}

// A budget that is all of the answer leaves nothing for what is said.
core::result<void> judge_budget(const actors::request& r) {
  const auto &budget = r.max_reasoning_tokens, &most = r.max_tokens;
  if (!budget || !most || r.max_reasoning_param != "thinking.budget_tokens" || *budget < *most) return {};
  return bad_param(r.max_reasoning_param, "{} must be below max_tokens, {}, not {}", r.max_reasoning_param,
                   *most, *budget);
}

// How much the model is to think: a hint, for templates that have the word.
core::result<void> read_effort(const json::object& body, parsed_request& p) {
  const json::value* config = body.if_contains("output_config");
  const json::value* v = config && config->is_object() ? config->get_object().if_contains("effort") : nullptr;
  if (!v || v->is_null()) return {};
  const auto effort = read_string("output_config.effort", *v);
  if (!effort) return effort.error();
  auto& variables = std::get<core::conversation>(p.request.input).variables;
  if (!variables.contains("reasoning_effort")) variables["reasoning_effort"] = *effort;
  return {};
}

// The client forgets parts of the history by itself where no server does it.
core::result<void> leave_context(const std::string& name, const json::value& v, parsed_request& p) {
  if (!v.is_object()) return bad_param(name, "{} must be an object, not {}", name, kind_of(v));
  if (!v.get_object().empty())
    p.warnings.push_back({name, name + ": nothing is left out of the history here"});
  return {};
}

// Tells the template whether the model thinks, unless the client has told it otherwise.
void tell_template(parsed_request& p) {
  if (!p.thinks) return;
  auto& variables = std::get<core::conversation>(p.request.input).variables;
  for (const char* name : {"enable_thinking", "thinking"})
    if (!variables.contains(name)) variables[name] = *p.thinks;
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
    {"stream", read_stream},           {"stop_sequences", read_stop_sequences},
    {"metadata", check_metadata},      {"service_tier", check_service_tier},
    {"cache_control", check_hint},     {"on_disconnect", read_end_of_client},
    {"thinking", read_thinking_field}, {"context_management", leave_context},
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
  auto said = read_conversation(*object, p);
  if (!said) return said.error();
  p.request.input = std::move(*said);
  for (const auto& [name, value] : *object)
    if (auto read = read_field(name, value, p); !read) return read.error();
  if (strict && !p.ignored.empty()) return p.ignored.refusal();
  if (to == route::messages && !p.request.max_tokens) return bad_param("max_tokens", "max_tokens is missing");
  if (auto read = read_tools(*object, tool_dialect::messages, p.request, p.warnings); !read)
    return read.error();
  if (auto read = read_dynamic_temperature(*object, p.request); !read) return read.error();
  if (auto read = read_template_fields(*object, p.request); !read) return read.error();
  tell_template(p);
  if (auto fine = judge_budget(p.request); !fine) return fine.error();
  if (auto read = read_effort(*object, p); !read) return read.error();
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
