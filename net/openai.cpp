#include "net/openai.h"

#include "net/json.h"
#include "net/planned.h"
#include "net/request_fields.h"

namespace weir::net::openai {
namespace {

// Fields of OpenAI's that are accepted with any value and have no effect.
constexpr std::string_view without_effect[] = {
    "user",
    "metadata",
    "store",
    "service_tier",
    "safety_identifier",
    "prompt_cache_key",
    "prompt_cache_retention",
    "parallel_tool_calls",
};

core::result<json::object> parse_body(std::string_view body, std::size_t most_values) {
  auto parsed = read_json(body, {max_depth, most_values});
  if (!parsed) return parsed.error();
  if (!parsed->is_object()) {
    return core::make_error(core::errc::invalid_param, "the body must be an object, not {}",
                            kind_of(*parsed));
  }
  return std::move(parsed->get_object());
}

core::result<void> read_flag(bool& target, std::string_view name, const json::value& v) {
  auto value = read_bool(name, v);
  if (!value) return value.error();
  target = *value;
  return {};
}

core::result<void> read_prompt(const json::value& v, actors::request& r) {
  if (v.is_string()) {
    r.input = std::string(v.get_string());
    return {};
  }
  if (!v.is_array())
    return core::bad_param("prompt", "prompt must be a string or token ids, not {}", kind_of(v));
  const json::array& list = v.get_array();
  if (list.size() == 1 && !list.front().is_number()) return read_prompt(list.front(), r);  // one, in a list
  if (!list.empty() && !list.front().is_number()) {
    return core::bad_param("prompt", "prompt: several prompts in one request are not supported yet");
  }
  auto ids = read_token_ids("prompt", v);
  if (!ids) return ids.error();
  r.input = std::move(*ids);
  return {};
}

core::result<void> read_stream_options(const json::value& v, parsed_request& p) {
  if (!v.is_object())
    return core::bad_param("stream_options", "stream_options must be an object, not {}", kind_of(v));
  for (const auto& [key, value] : v.get_object()) {
    std::string_view name(key);
    if (name == "include_usage" && !value.is_null()) {
      if (auto read = read_flag(p.include_usage, "stream_options.include_usage", value); !read)
        return read.error();
    } else if (!is_neutral(value, "false")) {
      return not_supported_yet(fmt::format("stream_options.{}", shortened(name)));
    }
  }
  return {};
}

core::result<void> read_max_tokens(std::string_view name, const json::value& v, parsed_request& p) {
  auto value = read_integer(name, v);
  if (!value) return value.error();
  p.request.max_tokens = *value;
  return {};
}

core::result<void> read_prompt_logprobs(std::string_view name, const json::value& v, parsed_request& p) {
  auto value = read_integer(name, v);
  if (!value) return value.error();
  p.request.prompt_logprobs = *value;
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

core::error unknown_field(std::string_view name) {
  const std::string shown = shortened(name);
  return core::bad_param(shown, "unknown field '{}'", shown);
}

core::result<void> read_foreign(std::string_view name, const json::value& v) {
  for (std::string_view known : without_effect) {
    if (known == name) return {};
  }
  if (const auto* planned = find_planned(place::openai_field, name)) return judge_planned(*planned, v);
  return unknown_field(name);
}

core::result<void> read_field(dialect d, std::string_view name, const json::value& v, parsed_request& p) {
  const bool chat = d == dialect::chat;
  if (name == "prompt" && !chat) return read_prompt(v, p.request);
  if (name == "messages" && chat) {
    auto messages = read_messages(name, v);
    if (!messages) return messages.error();
    p.request.input = std::move(*messages);
    return {};
  }
  if (name == "n") return read_choices(v, p);
  auto known = read_request_field(name, v, p.request);
  if (!known) return known.error();
  if (*known || v.is_null()) return {};
  if (name == "stream") return read_flag(p.stream, name, v);
  if (name == "stream_options") return read_stream_options(v, p);
  if (name == "return_token_ids") return read_flag(p.return_token_ids, name, v);
  if (name == "prompt_logprobs") return read_prompt_logprobs(name, v, p);
  if (name == "max_completion_tokens" && chat) return read_max_tokens(name, v, p);
  return read_foreign(name, v);
}

// Parses an object and calls `read` for each member. `read` returns false for an unknown name, which is an
// error.
template <class F>
core::result<void> read_members(std::string_view body, std::size_t most_values, std::string_view required,
                                F read) {
  auto parsed = parse_body(body, most_values);
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

core::result<parsed_request> parse(dialect d, std::string_view body, std::size_t most_values) {
  auto object = parse_body(body, most_values);
  if (!object) return object.error();
  parsed_request p;
  p.request.input_param = d == dialect::chat ? "messages" : "prompt";
  if (!object->if_contains(p.request.input_param)) {
    return core::bad_param(p.request.input_param, "{} is missing", p.request.input_param);
  }
  for (const auto& [key, value] : *object) {
    if (auto read = read_field(d, std::string_view(key), value, p); !read) return read.error();
  }
  if (auto read = read_template_fields(*object, p.request); !read) return read.error();
  const auto form = d == dialect::chat ? logprobs_form::flag : logprobs_form::number;
  if (auto read = read_logprobs_fields(*object, form, p.request); !read) return read.error();
  if (p.stream && p.request.prompt_logprobs)
    return core::bad_param("prompt_logprobs", "prompt_logprobs goes with an answer that is not streamed");
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
