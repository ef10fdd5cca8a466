#include "net/protocol/request_fields.h"

#include <algorithm>
#include <charconv>
#include <limits>
#include <span>
#include <variant>

#include "net/protocol/constraint_fields.h"
#include "net/protocol/dynamic_temperature.h"
#include "net/protocol/history.h"
#include "net/protocol/planned.h"
#include "net/protocol/stay_field.h"

namespace weir::net {
namespace {

using actors::request;

core::error wrong(std::string_view name, std::string message) {
  return core::error{core::errc::invalid_param, std::move(message), std::string(name)};
}

// Reads a value with `read` and stores it in `to`.
template <auto read>
core::result<void> store_as(std::string_view name, const json::value& v, auto& to) {
  auto value = read(name, v);
  if (!value) return value.error();
  to = std::move(*value);
  return {};
}

// Reads a value with `read` and stores it in the `member` of the request.
template <auto read, auto member>
core::result<void> store(std::string_view name, const json::value& v, request& r) {
  return store_as<read>(name, v, r.*member);
}

// Reads the items of an array of strings.
core::result<void> store_strings(std::string_view name, const json::array& items,
                                 std::vector<std::string>& to) {
  std::vector<std::string> out;
  for (const json::value& item : items) {
    if (!item.is_string())
      return wrong(name, fmt::format("{}[{}] must be a string, not {}", name, out.size(), kind_of(item)));
    out.emplace_back(item.get_string());
  }
  to = std::move(out);
  return {};
}

// Stores a string, or the items of an array of strings.
core::result<void> store_texts(std::string_view name, const json::value& v, std::vector<std::string>& to) {
  if (v.is_string()) {
    to = {std::string(v.get_string())};
    return {};
  }
  if (v.is_array()) return store_strings(name, v.get_array(), to);
  return wrong(name, fmt::format("{} must be a string or an array of strings, not {}", name, kind_of(v)));
}

core::result<void> store_stop(std::string_view name, const json::value& v, request& r) {
  return store_texts(name, v, r.stop);
}

// An empty string bans nothing, as SillyTavern sends it.
core::result<void> store_banned(std::string_view name, const json::value& v, request& r) {
  auto& all = r.banned_strings.emplace();
  if (v.is_string() && v.get_string().empty()) return {};
  return store_texts(name, v, all);
}

core::result<void> store_sampling(std::string_view name, const json::value& v, std::optional<double>& to) {
  return store_as<read_number>(name, v, to);
}

core::result<void> store_sampling(std::string_view name, const json::value& v,
                                  std::optional<std::int64_t>& to) {
  return store_as<read_integer>(name, v, to);
}

// Reads a bool; 0 and 1 are the same, as some clients write them.
core::result<void> store_sampling(std::string_view name, const json::value& v, std::optional<bool>& to) {
  if (v == 0 || v == 1) {
    to = v == 1;
    return {};
  }
  return store_as<read_bool>(name, v, to);
}

// Reads an array of strings. Some clients send the array as a JSON text.
core::result<void> store_sampling(std::string_view name, const json::value& v,
                                  std::optional<std::vector<std::string>>& to) {
  if (v.is_array()) return store_strings(name, v.get_array(), to.emplace());
  if (!v.is_string()) return wrong(name, fmt::format("{} must be an array, not {}", name, kind_of(v)));
  const auto inner = read_json(std::string_view(v.get_string()), {.depth = 2});
  if (!inner || !inner->is_array())
    return wrong(name, fmt::format("{}: the text must be a JSON array of strings", name));
  return store_strings(name, inner->get_array(), to.emplace());
}

// Reads an array of texts and of arrays of token ids.
core::result<void> store_sampling(std::string_view name, const json::value& v,
                                  std::vector<std::variant<std::string, std::vector<std::int64_t>>>& to) {
  if (!v.is_array()) return wrong(name, fmt::format("{} must be an array, not {}", name, kind_of(v)));
  to.clear();
  for (const json::value& item : v.get_array()) {
    if (item.is_string()) {
      to.emplace_back(std::string(item.get_string()));
      continue;
    }
    if (!item.is_array())
      return wrong(name, fmt::format("{}[{}] must be a string or an array of token ids, not {}", name,
                                     to.size(), kind_of(item)));
    auto ids = read_integers(name, item);
    if (!ids) return ids.error();
    to.emplace_back(std::move(*ids));
  }
  return {};
}

// Reads token ids.
core::result<void> store_sampling(std::string_view name, const json::value& v,
                                  std::vector<std::int64_t>& to) {
  return store_as<read_integers>(name, v, to);
}

// Reads a 64-bit integer. -1 is as if the field were not there; any other negative one is converted to
// unsigned.
core::result<void> store_sampling(std::string_view name, const json::value& v,
                                  std::optional<std::uint64_t>& to) {
  if (v.is_uint64()) {
    to = v.get_uint64();
    return {};
  }
  auto value = read_integer(name, v);
  if (!value) return value.error();
  to.reset();
  if (*value != -1) to = static_cast<std::uint64_t>(*value);
  return {};
}

bool is_spelling(std::string_view text, std::int64_t of) {
  char spelled[std::numeric_limits<std::int64_t>::digits10 + 2];
  const auto end = std::to_chars(std::begin(spelled), std::end(spelled), of).ptr;
  return text == std::string_view(spelled, end);
}

// Reads {"token id": bias}, the form of OpenAI's API.
core::result<void> store_sampling(std::string_view name, const json::value& v,
                                  std::vector<std::pair<std::int64_t, double>>& to) {
  if (!v.is_object()) {
    return wrong(name,
                 fmt::format("{} must be an object of token ids and numbers, not {}", name, kind_of(v)));
  }
  std::vector<std::pair<std::int64_t, double>> biases;
  for (const auto& [key, value] : v.get_object()) {
    std::int64_t id = 0;
    auto parsed = std::from_chars(key.data(), key.data() + key.size(), id);
    // One id has one spelling, so that no object has it twice.
    if (parsed.ec != std::errc() || parsed.ptr != key.data() + key.size() || !is_spelling(key, id)) {
      return wrong(name, fmt::format("{}: \"{}\" is not a token id", name, shortened(key)));
    }
    auto bias = read_number(name, value);
    if (!bias) return bias.error();
    biases.emplace_back(id, *bias);
  }
  to = std::move(biases);
  return {};
}

// -1 is as if the field were not there.
core::result<void> store_max_tokens(std::string_view name, const json::value& v, request& r) {
  auto value = read_integer(name, v);
  if (!value) return value.error();
  r.max_tokens.reset();
  if (*value != -1) r.max_tokens = *value;
  return {};
}

core::result<void> store_priority(std::string_view name, const json::value& v, request& r) {
  auto value = read_integer(name, v);
  if (!value) return value.error();
  if (*value < std::numeric_limits<int>::min() || *value > std::numeric_limits<int>::max()) {
    return wrong(name, fmt::format("{}: {} is out of range", name, *value));
  }
  r.priority = static_cast<int>(*value);
  return {};
}

core::result<void> store_deadline(std::string_view name, const json::value& v, request& r) {
  auto value = read_integer(name, v);
  if (!value) return value.error();
  r.deadline = std::chrono::milliseconds(*value);
  return {};
}

core::result<void> store_overflow(std::string_view name, const json::value& v, request& r) {
  r.shifts = v == "shift";
  if (!r.shifts && v != "end") return wrong(name, fmt::format("{} must be \"end\" or \"shift\"", name));
  return {};
}

// Two names of one field, which both may be there only with the same value.
core::result<void> store_max_reasoning(std::string_view name, const json::value& v, request& r) {
  auto value = read_integer(name, v);
  if (!value) return value.error();
  if (*value < 0) return wrong(name, fmt::format("{} must be at least 0, not {}", name, *value));
  if (r.max_reasoning_tokens && *r.max_reasoning_tokens != *value)
    return wrong(name,
                 fmt::format("{} and {} are the same field: set one of them", name, r.max_reasoning_param));
  r.max_reasoning_tokens = *value;
  r.max_reasoning_param = name;
  return {};
}

// llama.cpp's name and values.
core::result<void> store_reasoning_format(std::string_view name, const json::value& v, request& r) {
  const bool separate = v == "separate" || v == "auto" || v == "deepseek";
  if (!separate && v != "none")
    return wrong(name, fmt::format("{} must be \"none\", \"separate\", \"auto\" or \"deepseek\"", name));
  r.separate_reasoning = separate;
  return {};
}

// A field that is not one of core::visit_sampling().
struct field {
  std::string_view name;
  core::result<void> (*read)(std::string_view, const json::value&, request&);
};

core::result<void> store_load(std::string_view name, const json::value& v, request& r) {
  if (v == "wait")
    r.when_not_loaded = request::load::wait;
  else if (v == "refuse")
    r.when_not_loaded = request::load::refuse;
  else
    return wrong(name, fmt::format("{} must be \"wait\" or \"refuse\"", name));
  return {};
}

core::result<void> store_stay(std::string_view name, const json::value& v, request& r) {
  const auto stay = read_stay(name, v);
  if (!stay) return stay.error();
  r.stay = std::max(r.stay, *stay);
  return {};
}

constexpr field fields[] = {
    {"model", store<read_string, &request::model>},
    {"preset", store<read_string, &request::preset>},
    {"max_tokens", store_max_tokens},
    {"min_tokens", store<read_integer, &request::min_tokens>},
    {"max_repeats", store<read_integer, &request::max_repeats>},
    {"context_overflow", store_overflow},
    {"ignore_eos", store<read_bool, &request::ignore_eos>},
    {"stop", store_stop},
    {"include_stop_str_in_output", store<read_bool, &request::shows_stop>},
    {"stop_token_ids", store<read_integers, &request::stop_token_ids>},
    {"add_special_tokens", store<read_bool, &request::add_special_tokens>},
    {"skip_special_tokens", store<read_bool, &request::skip_special_tokens>},
    {"cache_salt", store<read_string, &request::cache_salt>},
    {"priority", store_priority},
    {"deadline_ms", store_deadline},
    {"load", store_load},
    {"keep_alive", store_stay},
    {"ttl", store_stay},
    {"max_reasoning_tokens", store_max_reasoning},
    {"thinking_token_budget", store_max_reasoning},
    {"reasoning_format", store_reasoning_format},
    {"include_reasoning", store<read_bool, &request::show_reasoning>},
};

// Those of them that say how tokens are chosen, all the same.
constexpr field more_sampling[] = {
    {"banned_strings", store_banned},
    {"token_healing", store<read_bool, &request::token_healing>},
};

// Stores a member that one of the `known` fields has by its name. False: none has.
core::result<bool> read_known(std::span<const field> known, std::string_view name, const json::value& v,
                              request& r) {
  const auto f = std::ranges::find(known, name, &field::name);
  if (f == known.end()) return false;
  if (v.is_null()) return true;
  if (auto read = f->read(name, v, r); !read) return read.error();
  return true;
}

// Other servers' names of sampling fields, with the same values.
constexpr std::pair<std::string_view, std::string_view> sampling_aliases[] = {
    {"repeat_penalty", "repetition_penalty"},
    {"repeat_last_n", "repetition_range"},
    {"penalty_range", "repetition_range"},
    {"repetition_penalty_range", "repetition_range"},
    {"typical", "typical_p"},
    {"tfs_z", "tfs"},
    {"nsigma", "top_n_sigma"},
    {"dry_penalty_last_n", "dry_range"},
    {"mirostat", "mirostat_mode"},
    {"custom_token_bans", "disallow_tokens"},
};

// Reads the ids of a text such as "5,17". An empty one has none.
core::result<json::array> read_listed_ids(std::string_view name, std::string_view text) {
  json::array out;
  while (!text.empty()) {
    const std::size_t comma = std::min(text.find(','), text.size());
    std::string_view item = text.substr(0, comma);
    text.remove_prefix(std::min(comma + 1, text.size()));
    while (item.starts_with(' ')) item.remove_prefix(1);
    while (item.ends_with(' ')) item.remove_suffix(1);
    std::int64_t id = 0;
    const auto [end, fault] = std::from_chars(item.data(), item.data() + item.size(), id);
    if (item.empty() || fault != std::errc() || end != item.data() + item.size())
      return wrong(name, fmt::format("{} must have commas between its token ids, or be an array", name));
    out.emplace_back(id);
  }
  return out;
}

bool has_other_form(std::string_view name) { return name == "mirostat" || name == "custom_token_bans"; }

// The value of such a field as its own name has it.
core::result<json::value> usual_form(std::string_view name, const json::value& v) {
  if (name == "mirostat" && v == false) return json::value(0);
  if (name != "custom_token_bans" || !v.is_string()) return v;
  auto ids = read_listed_ids(name, v.get_string());
  if (!ids) return ids.error();
  return json::value(std::move(*ids));
}

// Checks the content of a message: a string, or a list of text parts as in OpenAI's API.
core::result<void> check_content(const std::string& name, const json::value& v) {
  if (v.is_string()) return {};
  if (!v.is_array())
    return wrong(name, fmt::format("{} must be a string or a list of parts, not {}", name, kind_of(v)));
  for (const json::value& part : v.get_array()) {
    const json::value* type = part.is_object() ? part.get_object().if_contains("type") : nullptr;
    if (!type || !type->is_string()) return wrong(name, name + ": each part must be an object with a type");
    if (type->get_string() != "text") {
      return wrong(name, fmt::format("{}: parts of type '{}' are not supported yet", name,
                                     shortened(type->get_string())));
    }
    const json::value* piece = part.get_object().if_contains("text");
    if (!piece || !piece->is_string()) return wrong(name, name + ": a text part must have a string 'text'");
  }
  return {};
}

bool calls_tools(const json::object& message) {
  const json::value* calls = message.if_contains("tool_calls");
  return calls && calls->is_array() && !calls->get_array().empty();
}

core::result<void> check_message(const std::string& name, const json::value& v) {
  if (!v.is_object()) return wrong(name, fmt::format("{} must be an object, not {}", name, kind_of(v)));
  const json::object& o = v.get_object();
  for (const planned_name& p : planned_names) {
    const json::value* found = p.where == place::message_member ? o.if_contains(p.name) : nullptr;
    if (found && !p.asks_nothing(*found)) return not_supported_yet(fmt::format("{}.{}", name, p.name));
  }
  const json::value* role = o.if_contains("role");
  if (!role || !role->is_string()) return wrong(name, name + " must have a string 'role'");
  const json::value* content = o.if_contains("content");
  if ((!content || content->is_null()) && calls_tools(o)) return {};
  if (!content) return wrong(name, name + " must have a 'content'");
  return check_content(name + ".content", *content);
}

// Stores a list of objects; an empty list is the same as none.
core::result<void> store_objects(const char* name, const json::value& v, json::value& to) {
  if (!v.is_array()) return wrong(name, fmt::format("{} must be an array, not {}", name, kind_of(v)));
  for (const json::value& item : v.get_array())
    if (!item.is_object())
      return wrong(name, fmt::format("{}: each item must be an object, not {}", name, kind_of(item)));
  if (!v.get_array().empty()) to = v;
  return {};
}

core::result<void> store_variables(const char* name, const json::value& v, core::conversation& to) {
  if (!v.is_object()) return wrong(name, fmt::format("{} must be an object, not {}", name, kind_of(v)));
  to.variables = v.get_object();
  return {};
}

core::result<void> store_documents(const char* name, const json::value& v, core::conversation& to) {
  return store_objects(name, v, to.documents);
}

template <bool core::conversation::*member>
core::result<void> store_flag(const char* name, const json::value& v, core::conversation& to) {
  return store_as<read_bool>(name, v, to.*member);
}

// A field of the chat template.
struct template_field {
  const char* name;
  core::result<void> (*read)(const char*, const json::value&, core::conversation&);
};

constexpr template_field template_fields[] = {
    {"documents", store_documents},
    {"chat_template_kwargs", store_variables},
    {"add_generation_prompt", store_flag<&core::conversation::add_generation_prompt>},
    {"continue_final_message", store_flag<&core::conversation::continue_final_message>},
};

bool changes_something(const core::conversation& c) {
  return !c.documents.is_null() || !c.variables.empty() || !c.add_generation_prompt ||
         c.continue_final_message;
}

bool is_template_field(std::string_view name) {
  if (name == "tools" || name == "tool_choice" || name == "parallel_tool_calls") return true;  // read_tools()
  return std::ranges::any_of(template_fields, [&](const template_field& f) { return name == f.name; });
}

}  // namespace

core::result<json::object> read_body(std::string_view body, std::size_t most_values) {
  const json_bounds most{max_body_depth, most_values};
  const std::string text = with_schemas_as_text(body);
  auto parsed = read_json(text, most);
  if (!parsed && text != body)  // the place of an error is told of what the client sent
    if (const auto sent = read_json(body, most); !sent) return sent.error();
  if (!parsed) return parsed.error();
  if (!parsed->is_object()) {
    return core::make_error(core::errc::invalid_param, "the body must be an object, not {}",
                            kind_of(*parsed));
  }
  return std::move(parsed->get_object());
}

core::error unknown_field(std::string_view name) {
  const std::string shown = shortened(name);
  return core::bad_param(shown, "unknown field '{}'", shown);
}

core::result<bool> read_sampling_field(std::string_view name, const json::value& sent_value, request& r) {
  if (auto known = read_known(more_sampling, name, sent_value, r); !known || *known) return known;
  const auto alias = std::ranges::find(sampling_aliases, name, [](const auto& a) { return a.first; });
  const std::string_view own = alias == std::end(sampling_aliases) ? name : alias->second;
  json::value other;
  if (has_other_form(name)) {
    auto read = usual_form(name, sent_value);
    if (!read) return read.error();
    other = std::move(*read);
  }
  const json::value& v = has_other_form(name) ? other : sent_value;
  core::result<bool> known = false;
  core::visit_sampling([&](const core::sampling_field& f, auto sent, auto) {
    if (own != f.name) return;
    known = true;
    if (v.is_null()) return;
    auto& to = r.sampling.*sent;
    const auto before = to;
    if (f.needs_items && v.is_array() && v.get_array().empty())
      known = wrong(name, fmt::format("{} is empty: no token could be drawn", name));
    else if (auto read = store_sampling(name, v, to); !read)
      known = read.error();
    else if (before != decltype(before)() && before != to)
      known = wrong(name, fmt::format("{} is there under two names, with different values", f.name));
    else if (to == decltype(before)())
      r.sampling_left_out.push_back(f.name);
  });
  return known;
}

core::result<bool> read_request_field(std::string_view name, const json::value& v, request& r) {
  if (auto known = read_sampling_field(name, v, r); !known || *known) return known;
  if (auto known = read_known(fields, name, v, r); !known || *known) return known;
  if (is_template_field(name)) return true;                       // read_template_fields()
  if (is_constraint_field(name)) return true;                     // read_constraint_fields()
  if (name == "logprobs" || name == "top_logprobs") return true;  // read_logprobs_fields()
  if (is_dynamic_temperature(name)) return true;                  // read_dynamic_temperature()
  const planned_name* planned = find_planned(place::request_field, name);
  if (!planned) return false;
  if (auto refused = judge_planned(*planned, v); !refused) return refused.error();
  return true;
}

core::result<core::conversation> read_messages(std::string_view name, const json::value& v,
                                               std::vector<core::grammar::warning>& dropped) {
  if (!v.is_array()) return wrong(name, fmt::format("{} must be an array, not {}", name, kind_of(v)));
  core::conversation out;
  out.messages = v.get_array();
  if (auto read = modernise_messages(name, out.messages, dropped); !read) return read.error();
  std::size_t at = 0;
  for (const json::value& item : out.messages) {
    if (auto fine = check_message(fmt::format("{}[{}]", name, at++), item); !fine)
      return wrong(name, fine.error().message);
  }
  if (at == 0) return wrong(name, fmt::format("{} is empty", name));
  return out;
}

core::result<void> read_template_fields(const json::object& o, actors::request& r) {
  auto* said = std::get_if<core::conversation>(&r.input);
  for (const template_field& f : template_fields) {
    const json::value* v = o.if_contains(f.name);
    if (!v || v->is_null()) continue;
    core::conversation none;  // reads the field where there is no conversation
    if (auto read = f.read(f.name, *v, said ? *said : none); !read) return read;
    if (!said && changes_something(none))
      return wrong(f.name, fmt::format("{} goes with messages only, not with a raw prompt", f.name));
  }
  if (!said || !said->continue_final_message) return {};
  if (o.contains("add_generation_prompt") && said->add_generation_prompt)
    return wrong("continue_final_message",
                 "continue_final_message and add_generation_prompt cannot both be true");
  said->add_generation_prompt = false;
  return {};
}

core::result<bool> read_on_disconnect(std::string_view name, const json::value& v) {
  if (v == "continue" || v == "cancel") return v == "cancel";
  return core::bad_param(std::string(name), "{} must be \"continue\" or \"cancel\"", name);
}

core::result<actors::prompt_ids> read_token_ids(std::string_view name, const json::value& v) {
  auto wide = read_integers(name, v);
  if (!wide) return wide.error();
  actors::prompt_ids ids;
  ids.reserve(wide->size());
  for (std::int64_t id : *wide) {
    if (id < 0 || id > std::numeric_limits<core::token_id>::max()) {
      return wrong(name, fmt::format("{}[{}]: {} is not a token id", name, ids.size(), id));
    }
    ids.push_back(static_cast<core::token_id>(id));
  }
  return ids;
}

}  // namespace weir::net
