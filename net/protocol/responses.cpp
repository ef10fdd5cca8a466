// Makes requests of the bodies of the Responses API.
#include "net/protocol/responses.h"

#include <algorithm>
#include <boost/json/serialize.hpp>

#include "net/protocol/constraint_fields.h"
#include "net/protocol/dynamic_temperature.h"
#include "net/protocol/json.h"
#include "net/protocol/request_fields.h"
#include "net/protocol/tools.h"

namespace weir::net::responses {
namespace {

using core::bad_param;
using core::result;

// Fields that are accepted with any value of this kind and have no effect here.
constexpr struct {
  std::string_view name;
  json::kind kind;
  bool echoed;  // the response object repeats them
} without_effect[] = {
    {"user", json::kind::string, true},
    {"safety_identifier", json::kind::string, true},
    {"prompt_cache_key", json::kind::string, true},
    {"prompt_cache_retention", json::kind::string, true},
    {"prompt_cache_options", json::kind::object, false},
    {"client_metadata", json::kind::object, false},  // Codex: its session, turn and window
};

// Fields of OpenAI's that are refused unless they are null.
constexpr std::string_view not_here[] = {"prompt", "conversation", "context_management", "moderation"};

constexpr std::string_view service_tiers[] = {"auto", "default", "flex"};
constexpr std::string_view verbosities[] = {"low", "medium", "high"};
constexpr std::string_view summaries[] = {"auto", "concise", "detailed"};
constexpr std::string_view logprobs_wish = "message.output_text.logprobs";
// What a client may ask to be included. None of it is here but what is there anyway.
constexpr std::string_view includable[] = {
    "file_search_call.results",       "web_search_call.results",
    "web_search_call.action.sources", "message.input_image.image_url",
    "code_interpreter_call.outputs",  "computer_call_output.output.image_url",
    "reasoning.encrypted_content",    logprobs_wish,
};
constexpr std::string_view item_types[] = {
    "message",   "function_call",  "function_call_output", "custom_tool_call", "custom_tool_call_output",
    "reasoning", "item_reference",
};

template <class List>
bool is_one_of(const List& list, std::string_view text) {
  return std::ranges::find(list, text) != std::end(list);
}

template <class List>
result<void> check_word(std::string_view name, const json::value& v, const List& words) {
  auto text = read_string(name, v);
  if (!text) return text.error();
  if (is_one_of(words, *text)) return {};
  return bad_param(std::string(name), "{} \"{}\" is not supported", name, shortened(*text));
}

result<void> read_flag(bool& target, std::string_view name, const json::value& v) {
  auto value = read_bool(name, v);
  if (!value) return value.error();
  target = *value;
  return {};
}

result<void> read_text(std::string& target, std::string_view name, const json::value& v) {
  auto value = read_string(name, v);
  if (!value) return value.error();
  target = std::move(*value);
  return {};
}

std::string item_place(std::size_t i) { return fmt::format("input[{}]", i); }

// The type of an item; a message may leave it out. Null: it has none.
std::string_view type_of(const json::object& item) {
  const json::value* type = item.if_contains("type");
  if (!type || type->is_null()) return item.contains("role") ? "message" : "";
  return type->is_string() ? std::string_view(type->get_string()) : "";
}

result<void> read_items(const json::value& v, parsed_request& p) {
  if (v.is_string()) {
    p.items.push_back(json::object{{"type", "message"},
                                   {"role", "user"},
                                   {"content", json::array{{{"type", "input_text"}, {"text", v}}}}});
    return {};
  }
  if (!v.is_array()) return bad_param("input", "input must be a string or an array, not {}", kind_of(v));
  for (const json::value& item : v.get_array()) {
    const std::string at = item_place(p.items.size());
    if (!item.is_object()) return bad_param(at, "{} must be an object, not {}", at, kind_of(item));
    const std::string_view type = type_of(item.get_object());
    if (type.empty()) return bad_param(at + ".type", "{} must have a string 'type'", at);
    if (!is_one_of(item_types, type))
      return bad_param(at + ".type", "{}: items of type '{}' are not supported", at, shortened(type));
    if (type == "item_reference") {
      const json::value* id = item.get_object().if_contains("id");
      if (!id || !id->is_string()) return bad_param(at + ".id", "{}.id must be a string", at);
      p.referred.emplace_back(id->get_string());
    }
    p.items.push_back(item);
  }
  return {};
}

result<void> read_reasoning(const json::value& v, parsed_request& p, std::string& effort) {
  if (!v.is_object()) return bad_param("reasoning", "reasoning must be an object, not {}", kind_of(v));
  for (const auto& [key, value] : v.get_object()) {
    const std::string name = fmt::format("reasoning.{}", shortened(key));
    result<void> read;
    if (value.is_null()) continue;
    if (key == "effort")
      read = read_text(effort, name, value);
    else if (key == "summary" || key == "generate_summary")
      read = check_word(name, value, summaries);
    else
      p.ignored.add(name);
    if (!read) return read;
  }
  return {};
}

result<void> read_text_field(const json::value& v, parsed_request& p) {
  if (!v.is_object()) return bad_param("text", "text must be an object, not {}", kind_of(v));
  for (const auto& [key, value] : v.get_object()) {
    if (key == "format" || value.is_null()) continue;  // read_text_format()
    const std::string name = fmt::format("text.{}", shortened(key));
    if (key != "verbosity") {
      p.ignored.add(name);
    } else if (auto fine = check_word(name, value, verbosities); !fine) {
      return fine;
    }
  }
  return {};
}

result<void> read_include(const json::value& v, parsed_request& p) {
  if (!v.is_array()) return bad_param("include", "include must be an array of strings, not {}", kind_of(v));
  std::size_t i = 0;
  for (const json::value& item : v.get_array()) {
    const std::string name = fmt::format("include[{}]", i++);
    if (auto fine = check_word(name, item, includable); !fine) return fine;
    if (std::string_view(item.get_string()) == logprobs_wish && i <= std::size(includable))
      p.warnings.push_back({name, "logprobs of a response are not there yet"});
  }
  return {};
}

result<void> check_metadata(const json::value& v) {
  if (!v.is_object()) return bad_param("metadata", "metadata must be an object, not {}", kind_of(v));
  const json::object& o = v.get_object();
  if (o.size() > most_metadata)
    return bad_param("metadata", "metadata has {} pairs, over {}", o.size(), most_metadata);
  for (const auto& [key, value] : o) {
    const std::string name = fmt::format("metadata.{}", shortened(key));
    if (key.size() > longest_metadata_key)
      return bad_param("metadata", "metadata: a key has {} bytes, over {}", key.size(), longest_metadata_key);
    if (!value.is_string()) return bad_param(name, "{} must be a string, not {}", name, kind_of(value));
    if (value.get_string().size() > longest_metadata)
      return bad_param(name, "{} has over {} bytes", name, longest_metadata);
  }
  return {};
}

result<void> check_stream_options(const json::value& v, parsed_request& p) {
  if (!v.is_object())
    return bad_param("stream_options", "stream_options must be an object, not {}", kind_of(v));
  for (const auto& [key, value] : v.get_object()) {
    const std::string name = fmt::format("stream_options.{}", shortened(key));
    bool any = false;
    if (key != "include_obfuscation") {
      p.ignored.add(name);
    } else if (auto fine = read_flag(any, name, value); !fine) {
      return fine;
    }
  }
  return {};
}

result<void> check_top_logprobs(const json::value& v) {
  auto n = read_integer("top_logprobs", v);
  if (!n) return n.error();
  if (*n == 0) return {};
  return bad_param("top_logprobs", "top_logprobs of a response is not supported yet");
}

result<void> read_most_tokens(const json::value& v, parsed_request& p) {
  auto n = read_integer("max_output_tokens", v);
  if (!n) return n.error();
  if (*n < 1) return bad_param("max_output_tokens", "max_output_tokens must be at least 1, not {}", *n);
  p.request.max_tokens = *n;
  return {};
}

result<void> read_end_of_client(std::string_view name, const json::value& v, parsed_request& p) {
  auto cancel = read_on_disconnect(name, v);
  if (!cancel) return cancel.error();
  p.outlives = !*cancel;
  return {};
}

result<void> read_other(std::string_view name, const json::value& v, parsed_request& p) {
  if (is_one_of(not_here, name)) return bad_param(std::string(name), "{} is not supported", name);
  for (const auto& known : without_effect) {
    if (known.name != name) continue;
    if (v.kind() == known.kind) return {};
    return bad_param(std::string(name), "{} must be {}, not {}", name,
                     known.kind == json::kind::string ? "a string" : "an object", kind_of(v));
  }
  auto known = read_request_field(name, v, p.request);
  if (!known) return known.error();
  if (!*known) p.ignored.add(name);
  return {};
}

// A field that is not null.
result<void> read_field(std::string_view name, const json::value& v, parsed_request& p, std::string& effort) {
  if (name == "input") return read_items(v, p);
  if (name == "instructions") return read_text(p.instructions, name, v);
  if (name == "previous_response_id") return read_text(p.previous_response_id, name, v);
  if (name == "max_output_tokens") return read_most_tokens(v, p);
  if (name == "stream") return read_flag(p.stream, name, v);
  if (name == "store") return read_flag(p.store, name, v);
  if (name == "background") return read_flag(p.background, name, v);
  if (name == "stream_options") return check_stream_options(v, p);
  if (name == "reasoning") return read_reasoning(v, p, effort);
  if (name == "text") return read_text_field(v, p);
  if (name == "include") return read_include(v, p);
  if (name == "metadata") return check_metadata(v);
  if (name == "truncation") {
    constexpr std::string_view only[] = {"disabled"};
    return check_word(name, v, only);
  }
  if (name == "service_tier") return check_word(name, v, service_tiers);
  if (name == "top_logprobs") return check_top_logprobs(v);
  if (name == "max_tool_calls") {  // bounds calls that a server makes by itself
    auto n = read_integer(name, v);
    return n ? result<void>() : n.error();
  }
  if (name == "on_disconnect") return read_end_of_client(name, v, p);
  if (name == "tools" || name == "tool_choice" || name == "parallel_tool_calls")
    return {};  // read_response_tools()
  return read_other(name, v, p);
}

// A field of a response.create message that is none of a body, or has another meaning there. false: it is as
// in a body.
result<bool> read_socket_field(std::string_view name, const json::value& v, parsed_request& p) {
  if (name == "generate") {
    if (auto read = read_flag(p.generate, name, v); !read) return read.error();
    return true;
  }
  if (name == "stream") {  // a socket always streams
    bool any = false;
    if (auto read = read_flag(any, name, v); !read) return read.error();
    return true;
  }
  if (name == "background" && v.is_bool() && v.get_bool())
    return bad_param("background",
                     "background is not supported over a WebSocket: send it to POST /v1/responses");
  return name == "type";
}

// What of the request the response object repeats.
std::string echo_of(const json::object& body, const parsed_request& p) {
  std::string out = "{";  // so that append_key() knows where an object begins
  const auto put = [&](const char* key, const json::value& without) {
    const json::value* v = body.if_contains(key);
    append_key(out, key);
    out += json::serialize(v && !v->is_null() ? *v : without);
  };
  for (const char* key : {"instructions", "max_output_tokens", "max_tool_calls", "previous_response_id",
                          "temperature", "top_p"})
    put(key, nullptr);
  put("metadata", json::object());
  put("parallel_tool_calls", true);
  put("tool_choice", "auto");
  put("tools", json::array());
  put("text", json::object{{"format", json::object{{"type", "text"}}}});
  put("reasoning", json::object{{"effort", nullptr}, {"summary", nullptr}});
  put("truncation", "disabled");
  put("service_tier", "default");
  put("top_logprobs", 0);
  for (const auto& known : without_effect)
    if (known.echoed && body.contains(known.name)) put(known.name.data(), nullptr);
  append_key(out, "store");
  out += p.store ? "true" : "false";
  append_key(out, "background");
  out += p.background ? "true" : "false";
  return out.substr(1);
}

// The member of an object; null: there is none, or `v` is no object.
json::value* member_of(json::value* v, const char* name) {
  return v && v->is_object() ? v->get_object().if_contains(name) : nullptr;
}

void restore_schema(json::value* schema) {
  if (!schema || !schema->is_string()) return;
  auto parsed = read_json(schema->get_string(), {.depth = deepest_schema, .values = most_schema_values});
  if (parsed) *schema = std::move(*parsed);
}

void restore_schemas_of(json::value* tools, bool inside = false) {
  if (!tools || !tools->is_array()) return;
  for (json::value& tool : tools->get_array()) {
    restore_schema(member_of(&tool, "parameters"));
    restore_schema(member_of(member_of(&tool, "function"), "parameters"));
    if (!inside) restore_schemas_of(member_of(&tool, "tools"), true);
  }
}

// The body with its schemas as values again, which read_body() made texts.
json::object with_schemas(json::object body) {
  json::value* text = body.if_contains("text");
  restore_schema(member_of(member_of(text, "format"), "schema"));
  restore_schemas_of(body.if_contains("tools"));
  return body;
}

result<void> judge(const json::object& body, const parsed_request& p) {
  if (p.background && !p.store) return bad_param("background", "background goes with store:true only");
  if (p.outlives && !p.store)
    return bad_param("on_disconnect", "on_disconnect \"continue\" goes with store:true only");
  if (const json::value* v = body.if_contains("stream_options"); v && !v->is_null() && !p.stream)
    return bad_param("stream_options", "stream_options goes with stream:true only");
  const auto* most = body.if_contains("max_tokens");
  const auto* same = body.if_contains("max_output_tokens");
  if (most && same && !most->is_null() && !same->is_null())
    return bad_param("max_output_tokens",
                     "max_output_tokens and max_tokens are the same field: set one of them");
  return {};
}

}  // namespace

result<parsed_request> parse(std::string_view body, std::size_t most_values, bool strict, bool of_socket) {
  auto object = read_body(body, most_values);
  if (!object) return object.error();
  parsed_request p;
  if (of_socket) {
    const json::value* type = object->if_contains("type");
    if (!type || *type != "response.create") return bad_param("type", "type must be response.create");
    p.stream = true;
  }
  p.request.input_param = "input";
  p.request.separate_reasoning = true;
  std::string effort;
  for (const auto& [key, value] : *object) {
    if (value.is_null()) continue;
    if (of_socket) {
      auto known = read_socket_field(std::string_view(key), value, p);
      if (!known) return known.error();
      if (*known) continue;
    }
    if (auto read = read_field(std::string_view(key), value, p, effort); !read) return read.error();
  }
  if (strict && !p.ignored.empty()) return p.ignored.refusal();
  if (p.items.empty() && p.previous_response_id.empty() && p.generate) {
    const bool there = object->contains("input");
    return bad_param("input", "input is {}", there ? "empty" : "missing");
  }
  if (auto fine = judge(*object, p); !fine) return fine.error();
  core::conversation said;
  if (!effort.empty() && effort != "none") said.reasoning_effort = effort;
  p.request.input = std::move(said);
  json::object of_template;
  for (const char* key :
       {"documents", "chat_template_kwargs", "add_generation_prompt", "continue_final_message"})
    if (const json::value* v = object->if_contains(key)) of_template[key] = *v;
  if (auto read = read_dynamic_temperature(*object, p.request); !read) return read.error();
  if (auto read = read_template_fields(of_template, p.request); !read) return read.error();
  if (auto read = read_response_constraint(*object, p.request); !read) return read.error();
  if (auto read = read_response_tools(*object, p.request, p.names, p.warnings); !read) return read.error();
  p.echo = echo_of(with_schemas(std::move(*object)), p);
  if (p.background) p.outlives = true;
  return p;
}

core::error previous_not_found(std::string_view id) {
  core::error e =
      bad_param("previous_response_id", "Previous response with id '{}' not found.", shortened(id));
  e.code = core::errc::not_found;
  return e;
}

bool is_previous_not_found(const core::error& e) {
  return e.code == core::errc::not_found && e.param == "previous_response_id";
}

std::string response_id(const core::job_id& job) { return "resp_" + job.text(); }

void name_items(json::array& items, std::string_view tag) {
  std::size_t i = 0;
  for (json::value& item : items) {
    const std::size_t number = i++;
    if (!item.is_object()) continue;
    json::object& o = item.get_object();
    if (!o.contains("type")) o["type"] = "message";
    if (const json::value* id = o.if_contains("id"); id && id->is_string()) continue;
    o["id"] = fmt::format("msg_{}_in{}", tag, number);
  }
}

std::optional<core::job_id> job_of_item(std::string_view id) {
  const auto begin = id.find('_'), end = id.rfind('_');
  if (begin == id.npos || begin == end) return std::nullopt;
  return core::job_id::parse(id.substr(begin + 1, end - begin - 1));
}

}  // namespace weir::net::responses
