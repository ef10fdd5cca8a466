#include "net/protocol/openai.h"

#include <algorithm>

#include "net/protocol/constraint_fields.h"
#include "net/protocol/dynamic_temperature.h"
#include "net/protocol/json.h"
#include "net/protocol/planned.h"
#include "net/protocol/request_fields.h"
#include "net/protocol/tools.h"

namespace weir::net::openai {
namespace {

// Fields of OpenAI's that are accepted with any value of this kind and have no effect here.
constexpr struct {
  std::string_view name;
  json::kind kind;
} without_effect[] = {
    {"user", json::kind::string},
    {"metadata", json::kind::object},
    {"safety_identifier", json::kind::string},
    {"prompt_cache_key", json::kind::string},
    {"prompt_cache_retention", json::kind::string},
};

// Fields of one route that would change its answer if the other route had them.
constexpr std::string_view of_one_route[] = {"prompt", "messages", "echo", "max_completion_tokens"};

// Tiers that promise no more than what every request gets. `flex` may wait longer.
constexpr std::string_view service_tiers[] = {"auto", "default", "flex"};

constexpr std::string_view roles[] = {"system", "developer", "user", "assistant", "tool"};

core::result<void> read_flag(bool& target, std::string_view name, const json::value& v) {
  auto value = read_bool(name, v);
  if (!value) return value.error();
  target = *value;
  return {};
}

core::result<actors::prompt_input> read_one_prompt(std::string_view name, const json::value& v) {
  if (v.is_string()) return actors::prompt_input(std::string(v.get_string()));
  if (!v.is_array())
    return core::bad_param(std::string(name), "{} must be a string or token ids, not {}", name, kind_of(v));
  auto ids = read_token_ids(name, v);
  if (!ids) return ids.error();
  return actors::prompt_input(std::move(*ids));
}

bool is_list_of_prompts(const json::value& v) {
  return v.is_array() && !v.get_array().empty() && !v.get_array().front().is_number();
}

// One prompt, which is a string or a list of token ids, or a list of prompts.
core::result<void> read_prompt(const json::value& v, actors::request& r) {
  if (!is_list_of_prompts(v)) {
    auto only = read_one_prompt("prompt", v);
    if (!only) return only.error();
    r.input = std::move(*only);
    return {};
  }
  std::size_t at = 0;
  for (const json::value& item : v.get_array()) {
    auto one = read_one_prompt(fmt::format("prompt[{}]", at), item);
    if (!one) return one.error();
    if (at++ == 0) {
      r.input = std::move(*one);
    } else {
      r.more_inputs.push_back(std::move(*one));
    }
  }
  return {};
}

core::result<void> read_conversation(const json::value& v, parsed_request& p) {
  auto said = read_messages("messages", v, p.warnings);
  if (!said) return said.error();
  for (std::size_t i = 0; i < said->messages.size(); ++i) {
    const std::string_view role(said->messages[i].at("role").get_string());
    if (std::ranges::find(roles, role) == std::end(roles))
      return core::bad_param("messages",
                             "messages[{}].role must be system, developer, user, assistant or tool, not '{}'",
                             i, shortened(role));
  }
  p.request.input = std::move(*said);
  return {};
}

core::result<void> read_stream_options(const json::value& v, parsed_request& p) {
  if (!v.is_object())
    return core::bad_param("stream_options", "stream_options must be an object, not {}", kind_of(v));
  for (const auto& [key, value] : v.get_object()) {
    const std::string name = fmt::format("stream_options.{}", shortened(key));
    const auto* planned = find_planned(place::stream_option, std::string_view(key));
    if (key == "include_usage") {
      if (value.is_null()) continue;
      if (auto read = read_flag(p.include_usage, name, value); !read) return read.error();
    } else if (!planned) {
      p.ignored.add(name);
    } else if (!planned->asks_nothing(value)) {
      return not_supported_yet(name);
    }
  }
  return {};
}

core::result<void> read_max_completion_tokens(std::string_view name, const json::value& v,
                                              actors::request& r) {
  auto value = read_integer(name, v);
  if (!value) return value.error();
  r.max_tokens.reset();
  if (*value != -1) r.max_tokens = *value;
  return {};
}

core::result<void> read_prompt_logprobs(std::string_view name, const json::value& v, parsed_request& p) {
  auto value = read_integer(name, v);
  if (!value) return value.error();
  p.request.prompt_logprobs = *value;
  p.prompt_logprobs = true;
  return {};
}

core::result<void> read_choices(const json::value& v, parsed_request& p) {
  if (v.is_null()) return {};
  auto value = read_integer("n", v);
  if (!value) return value.error();
  if (*value < 1 || *value > most_choices)
    return core::bad_param("n", "n must be in [1, {}], not {}", most_choices, *value);
  p.n = static_cast<std::uint32_t>(*value);
  return {};
}

// Refuses a best_of other than `n`. To keep the best of more choices would need the probabilities of their
// tokens.
core::result<void> check_best_of(const json::object& o, std::uint32_t n) {
  const json::value* v = o.if_contains("best_of");
  if (!v || v->is_null()) return {};
  const auto best_of = read_integer("best_of", *v);
  if (!best_of) return best_of.error();
  if (*best_of < 1) return core::bad_param("best_of", "best_of must be at least 1, not {}", *best_of);
  if (*best_of == n) return {};
  return core::bad_param("best_of", "best_of is not supported yet, unless it is n, which is {}", n);
}

core::result<void> check_max_tokens(const json::object& o) {
  const json::value* old_name = o.if_contains("max_tokens");
  const json::value* v = o.if_contains("max_completion_tokens");
  if (!old_name || !v || old_name->is_null() || v->is_null() || *old_name == *v) return {};
  return core::bad_param("max_completion_tokens",
                         "max_completion_tokens and max_tokens are the same field: set one of them");
}

core::result<void> check_number_of_choices(const parsed_request& p) {
  const std::size_t prompts = 1 + p.request.more_inputs.size();
  if (prompts * p.n <= most_choices_in_all) return {};
  return core::bad_param(p.request.input_param, "{} prompts with {} choices each are over {} choices",
                         prompts, p.n, most_choices_in_all);
}

core::result<void> read_end_of_client(std::string_view name, const json::value& v, parsed_request& p) {
  auto cancel = read_on_disconnect(name, v);
  if (!cancel) return cancel.error();
  p.outlives = !*cancel;
  return {};
}

// An answer that outlives its client is read again as events, which have nothing of the prompt's logprobs.
core::result<void> judge_outlives(const parsed_request& p) {
  if (!p.outlives || (!p.request.prompt_logprobs && !p.prompt_alone)) return {};
  return core::bad_param("on_disconnect",
                         "on_disconnect \"continue\" goes with an answer that can be streamed: without "
                         "prompt_logprobs, echo beside logprobs, and max_tokens 0");
}

core::result<void> read_service_tier(std::string_view name, const json::value& v) {
  auto tier = read_string(name, v);
  if (!tier) return tier.error();
  if (std::ranges::find(service_tiers, *tier) != std::end(service_tiers)) return {};
  return core::bad_param(std::string(name), "{} \"{}\" is not supported: there is one tier", name,
                         shortened(*tier));
}

core::result<void> read_effort(std::string_view name, const json::value& v, actors::request& r) {
  auto effort = read_string(name, v);
  if (!effort) return effort.error();
  auto* said = std::get_if<core::conversation>(&r.input);
  if (said && *effort != "none") said->reasoning_effort = std::move(*effort);
  return {};
}

core::result<void> read_foreign(std::string_view name, const json::value& v, parsed_request& p) {
  for (const auto& known : without_effect) {
    if (known.name != name) continue;
    if (v.kind() == known.kind) return {};
    return core::bad_param(std::string(name), "{} must be {}, not {}", name,
                           known.kind == json::kind::string ? "a string" : "an object", kind_of(v));
  }
  if (name == "service_tier") return read_service_tier(name, v);
  if (name == "reasoning_effort") return {};  // read_beside_messages()
  if (const auto* planned = find_planned(place::openai_field, name)) return judge_planned(*planned, v);
  if (std::ranges::find(of_one_route, name) != std::end(of_one_route)) return unknown_field(name);
  p.ignored.add(name);
  return {};
}

// Fields whose meaning depends on the messages, or on the tools, wherever these stand in the body.
core::result<void> read_beside_messages(const json::object& o, actors::request& r) {
  const json::value* effort = o.if_contains("reasoning_effort");
  return effort && !effort->is_null() ? read_effort("reasoning_effort", *effort, r) : core::result<void>();
}

core::result<void> read_field(dialect d, std::string_view name, const json::value& v, parsed_request& p) {
  const bool chat = d == dialect::chat;
  if (name == "prompt" && !chat) return read_prompt(v, p.request);
  if (name == "messages" && chat) return read_conversation(v, p);
  if (name == "n") return read_choices(v, p);
  if (name == "best_of") return {};  // check_best_of()
  auto known = read_request_field(name, v, p.request);
  if (!known) return known.error();
  if (*known || v.is_null()) return {};
  if (name == "stream") return read_flag(p.stream, name, v);
  if (name == "stream_options") return read_stream_options(v, p);
  if (name == "return_token_ids") return read_flag(p.return_token_ids, name, v);
  if (name == "echo" && !chat) return read_flag(p.request.echo, name, v);
  if (name == "on_disconnect") return read_end_of_client(name, v, p);
  if (name == "prompt_logprobs") return read_prompt_logprobs(name, v, p);
  if (name == "max_completion_tokens" && chat) return read_max_completion_tokens(name, v, p.request);
  return read_foreign(name, v, p);
}

// What `echo` and logprobs ask of the prompt, in OpenAI's older shape.
core::result<void> read_echo(parsed_request& p) {
  actors::request& r = p.request;
  if (!r.echo) return {};
  if (r.max_tokens == 0) {
    if (p.stream)
      return core::bad_param("max_tokens", "max_tokens 0 goes with an answer that is not streamed");
    p.prompt_alone = true;
    r.max_tokens = 1;
  }
  if (!r.top_logprobs) return {};
  if (p.stream)
    return core::bad_param("echo", "echo beside logprobs goes with an answer that is not streamed");
  if (r.prompt_logprobs.value_or(-1) >= *r.top_logprobs) return {};
  r.prompt_logprobs = r.top_logprobs;
  r.prompt_logprobs_param = "logprobs";
  return {};
}

// Parses an object and calls `read` for each member. `read` returns false for an unknown name, which is an
// error.
template <class F>
core::result<void> read_members(std::string_view body, std::size_t most_values, std::string_view required,
                                F read) {
  auto parsed = read_body(body, most_values);
  if (!parsed) return parsed.error();
  if (!parsed->if_contains(required)) {
    return core::bad_param(std::string(required), "{} is missing", required);
  }
  for (const auto& [key, value] : *parsed) {
    core::result<bool> known = read(std::string_view(key), value);
    if (!known) return known.error();
    if (!*known) return unknown_field(key);
  }
  return {};
}

template <class T>
core::result<bool> take(core::result<T> value, T& target) {
  if (!value) return value.error();
  target = std::move(*value);
  return true;
}

}  // namespace

core::result<parsed_request> parse(dialect d, std::string_view body, std::size_t most_values, bool strict) {
  auto object = read_body(body, most_values);
  if (!object) return object.error();
  parsed_request p;
  p.request.input_param = d == dialect::chat ? "messages" : "prompt";
  p.request.separate_reasoning = d == dialect::chat;
  if (!object->if_contains(p.request.input_param)) {
    return core::bad_param(p.request.input_param, "{} is missing", p.request.input_param);
  }
  for (const auto& [key, value] : *object) {
    if (auto read = read_field(d, std::string_view(key), value, p); !read) return read.error();
  }
  if (strict && !p.ignored.empty()) return p.ignored.refusal();
  if (auto read = read_dynamic_temperature(*object, p.request); !read) return read.error();
  if (auto read = read_template_fields(*object, p.request); !read) return read.error();
  if (auto read = read_tools(*object, tool_dialect::chat, p.request, p.warnings); !read) return read.error();
  if (auto read = read_beside_messages(*object, p.request); !read) return read.error();
  if (auto read = read_constraint_fields(*object, p.request); !read) return read.error();
  if (auto fine = check_best_of(*object, p.n); !fine) return fine.error();
  if (auto fine = check_max_tokens(*object); !fine) return fine.error();
  if (auto fine = check_number_of_choices(p); !fine) return fine.error();
  const auto form = d == dialect::chat ? logprobs_form::flag : logprobs_form::number;
  if (auto read = read_logprobs_fields(*object, form, p.request); !read) return read.error();
  if (p.stream && p.request.prompt_logprobs)
    return core::bad_param("prompt_logprobs", "prompt_logprobs goes with an answer that is not streamed");
  if (auto read = read_echo(p); !read) return read.error();
  if (auto fine = judge_outlives(p); !fine) return fine.error();
  if (!p.stream && object->if_contains("stream_options") && !object->at("stream_options").is_null()) {
    return core::bad_param("stream_options", "stream_options goes with stream:true only");
  }
  return p;
}

core::result<text_to_tokenize> parse_tokenize(std::string_view body, std::size_t most_values) {
  text_to_tokenize out;
  auto read = read_members(body, most_values, "text",
                           [&](std::string_view name, const json::value& v) -> core::result<bool> {
                             if (name == "text") return take(read_string(name, v), out.text);
                             if (name == "model")
                               return v.is_null() ? true : take(read_string(name, v), out.model);
                             if (name == "add_special")
                               return v.is_null() ? true : take(read_bool(name, v), out.add_special);
                             return false;
                           });
  if (!read) return read.error();
  return out;
}

core::result<ids_to_detokenize> parse_detokenize(std::string_view body, std::size_t most_values) {
  ids_to_detokenize out;
  auto read = read_members(body, most_values, "ids",
                           [&](std::string_view name, const json::value& v) -> core::result<bool> {
                             if (name == "ids") return take(read_integers(name, v), out.ids);
                             if (name == "model")
                               return v.is_null() ? true : take(read_string(name, v), out.model);
                             return false;
                           });
  if (!read) return read.error();
  return out;
}

}  // namespace weir::net::openai
