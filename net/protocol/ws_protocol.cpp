#include "net/protocol/ws_protocol.h"

#include <algorithm>
#include <boost/json/serialize.hpp>

#include "net/protocol/constraint_fields.h"
#include "net/protocol/dynamic_temperature.h"
#include "net/protocol/ignored_fields.h"
#include "net/protocol/planned.h"
#include "net/protocol/request_fields.h"
#include "net/protocol/tools.h"

namespace weir::net::ws {
namespace {

constexpr std::ptrdiff_t most_ts_digits = 32;
constexpr std::size_t most_metadata = 4096;  // bytes of JSON text
constexpr std::int64_t most_window = 1 << 24;

bool is_lane_id(std::string_view s) {
  constexpr std::string_view allowed = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_.-";
  return !s.empty() && s.size() <= max_lane_id && s.find_first_not_of(allowed) == s.npos;
}

std::string_view text_member(const json::object& o, std::string_view name) {
  const json::value* v = o.if_contains(name);
  return v && v->is_string() ? std::string_view(v->get_string()) : std::string_view();
}

// The lane's id in a frame that has an error; empty if the frame has no valid id.
std::string lane_of(const json::object& o) {
  std::string_view id = text_member(o, "id");
  return is_lane_id(id) ? std::string(id) : std::string();
}

protocol_error invalid(const json::object& o, core::error e) {
  return protocol_error{lane_of(o),         "invalid_param", std::move(e.message),
                        std::move(e.param), std::nullopt,    false};
}

core::result<void> read_input(const json::value& v, actors::request& r,
                              std::vector<core::grammar::warning>& dropped) {
  if (v.is_string()) {
    r.input = std::string(v.get_string());
    return {};
  }
  if (!v.is_array()) {
    return core::bad_param("input", "input must be a string, messages or token ids, not {}", kind_of(v));
  }
  if (!v.get_array().empty() && v.get_array().front().is_object()) {
    auto messages = read_messages("input", v, dropped);
    if (!messages) return messages.error();
    r.input = std::move(*messages);
    return {};
  }
  auto ids = read_token_ids("input", v);
  if (!ids) return ids.error();
  r.input = std::move(*ids);
  return {};
}

// A field of response.create that only weir.v1 has. All other fields are in request_fields.cpp.
struct create_field {
  std::string_view name;
  core::result<void> (*read)(std::string_view name, const json::value& v, response_create& c);
};

core::result<void> read_elsewhere(std::string_view, const json::value&, response_create&) { return {}; }

// One of two words; true: the second.
core::result<bool> read_choice(std::string_view name, const json::value& v, const char* first,
                               const char* second) {
  if (v == first) return false;
  if (v == second) return true;
  return core::bad_param(std::string(name), "{} must be \"{}\" or \"{}\"", name, first, second);
}

core::result<void> read_end_of_socket(std::string_view name, const json::value& v, response_create& c) {
  auto cancel = read_on_disconnect(name, v);
  if (!cancel) return cancel.error();
  c.cancel_on_disconnect = *cancel;
  return {};
}

core::result<void> read_on_lag(std::string_view name, const json::value& v, response_create& c) {
  auto pause = read_choice(name, v, "buffer", "pause");
  if (!pause) return pause.error();
  c.request.may_pause = *pause;
  return {};
}

core::result<void> read_metadata(std::string_view name, const json::value& v, response_create& c) {
  if (!v.is_object())
    return core::bad_param(std::string(name), "{} must be an object, not {}", name, kind_of(v));
  c.metadata = json::serialize(v);
  if (c.metadata.size() <= most_metadata) return {};
  return core::bad_param(std::string(name), "{} must be at most {} bytes of JSON", name, most_metadata);
}

// ---- fields that response.create and response.resume have

struct follow_field {
  std::string_view name;
  core::result<void> (*read)(std::string_view name, const json::value& v, follow_wishes& how);
};

template <auto member>
core::result<void> read_flag(std::string_view name, const json::value& v, follow_wishes& how) {
  auto value = read_bool(name, v);
  if (!value) return value.error();
  how.*member = *value;
  return {};
}

core::result<void> read_pace(std::string_view name, const json::value& v, follow_wishes& how) {
  auto even = read_choice(name, v, "live", "even");
  if (!even) return even.error();
  how.even = *even;
  return {};
}

core::result<void> read_window(std::string_view name, const json::value& v, follow_wishes& how) {
  auto tokens = read_integer(name, v);
  if (!tokens) return tokens.error();
  if (*tokens < 1 || *tokens > most_window)
    return core::bad_param(std::string(name), "{} must be 1 to {}, not {}", name, most_window, *tokens);
  how.window = static_cast<std::uint32_t>(*tokens);
  return {};
}

constexpr follow_field follow_fields[] = {
    {"timing", read_flag<&follow_wishes::timing>},
    {"return_token_ids", read_flag<&follow_wishes::return_token_ids>},
    {"pad", read_flag<&follow_wishes::pad>},
    {"pace", read_pace},
    {"window", read_window},
};

// Returns whether the name is one of follow_fields. A null is as if the field were not there.
core::result<bool> read_follow_field(std::string_view name, const json::value& v, follow_wishes& how) {
  for (const follow_field& f : follow_fields) {
    if (f.name != name) continue;
    if (v.is_null()) return true;
    if (auto read = f.read(name, v, how); !read) return read.error();
    return true;
  }
  return false;
}

core::result<void> read_reasoning(std::string_view name, const json::value& v, response_create& c) {
  auto separate = read_choice(name, v, "text", "separate");
  if (!separate) return separate.error();
  c.request.separate_reasoning = *separate;
  return {};
}

constexpr create_field create_fields[] = {
    {"type", read_elsewhere},      {"id", read_elsewhere},
    {"input", read_elsewhere},     {"on_disconnect", read_end_of_socket},
    {"on_lag", read_on_lag},       {"metadata", read_metadata},
    {"reasoning", read_reasoning},
};

core::result<void> read_create_field(std::string_view name, const json::value& v, response_create& c,
                                     ignored_fields& ignored) {
  for (const create_field& f : create_fields) {
    if (f.name != name) continue;
    if (v.is_null() && name != "input") return {};
    return f.read(name, v, c);
  }
  auto of_lane = read_follow_field(name, v, c.how);
  if (!of_lane) return of_lane.error();
  if (*of_lane) return {};
  if (const auto* planned = find_planned(place::create_field, name)) return judge_planned(*planned, v);
  auto known = read_request_field(name, v, c.request);
  if (!known) return known.error();
  if (!*known) ignored.add(name);
  return {};
}

core::error bad_lane_id() {
  return core::bad_param("id", "id must be a string of 1 to {} of [A-Za-z0-9_.-]", max_lane_id);
}

// A number of tokens.
core::result<std::uint64_t> read_seq(const json::object& o, const char* name) {
  const json::value* v = o.if_contains(name);
  if (!v) return core::bad_param(name, "{} is missing", name);
  const auto seq = read_integer(name, *v);
  if (!seq) return seq.error();
  if (*seq < 0) return core::bad_param(name, "{} must be at least 0, not {}", name, *seq);
  return static_cast<std::uint64_t>(*seq);
}

client_message parse_create(const json::object& o) {
  std::string_view id = text_member(o, "id");
  if (!is_lane_id(id)) return invalid(o, bad_lane_id());
  response_create c;
  c.id = id;
  c.request.input_param = "input";
  if (!o.if_contains("input")) return invalid(o, core::bad_param("input", "input is missing"));
  std::vector<core::grammar::warning> dropped;
  if (auto read = read_input(o.at("input"), c.request, dropped); !read) return invalid(o, read.error());
  ignored_fields ignored;
  for (const auto& [key, value] : o) {
    if (auto read = read_create_field(std::string_view(key), value, c, ignored); !read)
      return invalid(o, read.error());
  }
  if (auto read = read_dynamic_temperature(o, c.request); !read) return invalid(o, read.error());
  if (auto read = read_template_fields(o, c.request); !read) return invalid(o, read.error());
  if (auto read = read_tools(o, tool_dialect::chat, c.request, dropped); !read)
    return invalid(o, read.error());
  for (const auto& w : dropped) ignored.add(w.where);
  if (c.request.tools.any()) c.request.separate_reasoning = true;
  if (auto read = read_constraint_fields(o, c.request); !read) return invalid(o, read.error());
  if (auto read = read_logprobs_fields(o, logprobs_form::either, c.request); !read)
    return invalid(o, read.error());
  c.ignored = ignored.told();
  return c;
}

client_message parse_cancel(const json::object& o) {
  const json::value* id = o.if_contains("id");
  const json::value* response_id = o.if_contains("response_id");
  if ((id != nullptr) == (response_id != nullptr)) {
    return invalid(o, core::bad_param("id", "response.cancel needs either id or response_id"));
  }
  const char* name = id ? "id" : "response_id";
  auto text = read_string(name, id ? *id : *response_id);
  if (!text) return invalid(o, text.error());
  response_cancel c;
  (id ? c.id : c.response_id) = std::move(*text);
  return c;
}

client_message parse_resume(const json::object& o) {
  response_resume r;
  r.id = lane_of(o);
  if (r.id.empty()) return invalid(o, bad_lane_id());
  const json::value* response_id = o.if_contains("response_id");
  if (!response_id) return invalid(o, core::bad_param("response_id", "response_id is missing"));
  auto text = read_string("response_id", *response_id);
  if (!text) return invalid(o, text.error());
  r.response_id = std::move(*text);
  const auto after = read_seq(o, "after");
  if (!after) return invalid(o, after.error());
  r.after = *after;
  for (const auto& [key, value] : o) {
    if (auto read = read_follow_field(std::string_view(key), value, r.how); !read)
      return invalid(o, read.error());
  }
  return r;
}

client_message parse_ack(const json::object& o) {
  response_ack a;
  a.id = lane_of(o);
  if (a.id.empty()) return invalid(o, bad_lane_id());
  const auto seq = read_seq(o, "seq");
  if (!seq) return invalid(o, seq.error());
  a.seq = *seq;
  return a;
}

client_message parse_auth(const json::object& o) {
  const json::value* token = o.if_contains("token");
  if (!token) return invalid(o, core::bad_param("token", "token is missing"));
  auto text = read_string("token", *token);
  if (!text) return invalid(o, text.error());
  return session_auth{std::move(*text)};
}

client_message parse_ping(const json::object& o, std::string written) {
  const json::value* ts = o.if_contains("ts");
  const auto is_digit = [](char c) { return c >= '0' && c <= '9'; };
  if (ts && (!ts->is_number() || std::ranges::count_if(written, is_digit) > most_ts_digits))
    return protocol_error{
        {}, "bad_message", fmt::format("ts must be a number of at most {} digits", most_ts_digits), "ts",
        {}, false};
  return ping{std::move(written)};
}

protocol_error unknown_type(const json::object& o, std::string message) {
  return protocol_error{lane_of(o), "unknown_type", std::move(message), "type", {}, false};
}

}  // namespace

client_message parse(std::string_view frame, json_bounds most) {
  core::written_number ts{"ts", {}};
  auto parsed = read_json(with_schemas_as_text(frame), most, &ts);
  if (!parsed) return protocol_error{{}, "bad_json", parsed.error().message, parsed.error().param, {}, false};
  if (!parsed->is_object()) {
    return protocol_error{
        {}, "bad_message", fmt::format("a frame is an object, not {}", kind_of(*parsed)), {}, {}, false};
  }
  const json::object& o = parsed->get_object();
  const json::value* type_value = o.if_contains("type");
  if (!type_value || !type_value->is_string()) {
    return protocol_error{lane_of(o), "bad_message", "a frame must have a string 'type'", "type", {}, false};
  }
  std::string_view type(type_value->get_string());
  if (type == "response.create") return parse_create(o);
  if (type == "response.cancel") return parse_cancel(o);
  if (type == "response.resume") return parse_resume(o);
  if (type == "response.ack") return parse_ack(o);
  if (type == "session.auth") return parse_auth(o);
  if (type == "ping") return parse_ping(o, std::move(ts.text));
  if (type == "pong") return pong{};
  return unknown_type(o, fmt::format("unknown type '{}'", shortened(type)));
}

follow_options follow_wishes::over(follow_options otherwise) const {
  otherwise.timing = timing.value_or(otherwise.timing);
  otherwise.return_token_ids = return_token_ids.value_or(otherwise.return_token_ids);
  otherwise.pad = pad.value_or(otherwise.pad);
  otherwise.even = even.value_or(otherwise.even);
  otherwise.window = window.value_or(otherwise.window);
  return otherwise;
}

std::string_view code_of(core::errc code) {
  switch (code) {
    case core::errc::invalid_param:
    case core::errc::not_supported:
      return "invalid_param";
    case core::errc::prompt_too_long:
    case core::errc::does_not_fit:
      return "prompt_too_long";
    case core::errc::model_not_found:
      return "model_not_found";
    case core::errc::not_found:
      return "not_found";
    case core::errc::overloaded:
    case core::errc::unavailable:
      return "overloaded";
    case core::errc::busy:
      return "busy";
    case core::errc::already_there:
      return "already_there";
    case core::errc::adopted:
      return "adopted";
    case core::errc::handed_over:
      return "handed_over";
    case core::errc::class_changed:
      return "class_changed";
    case core::errc::bad_file:
    case core::errc::internal:
      break;
  }
  return "internal";
}

std::string_view code_of(const core::error& e) {
  if (e.param != "model") return code_of(e.code);
  switch (e.code) {
    case core::errc::unavailable:
      return "model_loading";
    case core::errc::does_not_fit:
      return "does_not_fit";
    case core::errc::overloaded:
      return "model_line_full";
    case core::errc::busy:
      return "other_model_loading";
    default:
      return code_of(e.code);
  }
}

protocol_error refusal(std::string_view id, const core::error& e) {
  protocol_error out{std::string(id), code_of(e), e.message, e.param, std::nullopt, false};
  // A model without room has a time only where its load is tried again.
  const bool passes =
      e.code == core::errc::overloaded || e.code == core::errc::unavailable || e.code == core::errc::busy;
  if (passes || (out.code == "does_not_fit" && e.retry_after_ms > 0))
    out.retry_after_ms = e.retry_after_ms > 0 ? e.retry_after_ms : 1000;
  return out;
}

}  // namespace weir::net::ws
