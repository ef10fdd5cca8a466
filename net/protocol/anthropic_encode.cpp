// Makes message objects and the events of a stream, as Anthropic's clients read them. Members that stand for
// what the server does not have are null, as they are in Anthropic's API where they do not apply.
#include <cassert>
#include <utility>

#include "core/text/answer/foreign_value.h"
#include "net/http/reply.h"
#include "net/protocol/anthropic.h"
#include "net/protocol/constraint_fields.h"
#include "net/protocol/json.h"

namespace weir::net::anthropic {
namespace {

template <class... Keys>
void append_nulls(std::string& out, Keys... keys) {
  ((append_key(out, keys), out += "null"), ...);
}

// Appends the counts that a message and a message_delta both have. input_tokens does not include the cached
// ones. cache_creation_input_tokens is always 0, since every computed prompt is cached.
void append_counts(std::string& out, std::uint32_t prompt, std::uint32_t cached, std::uint32_t output) {
  append_int(out, "input_tokens", std::int64_t{prompt} - cached);
  append_int(out, "cache_creation_input_tokens", 0);
  append_int(out, "cache_read_input_tokens", cached);
  append_int(out, "output_tokens", output);
  append_nulls(out, "output_tokens_details", "server_tool_use");
}

// Appends stop_reason and stop_sequence. `how`: null in the message of a message_start.
void append_stop(std::string& out, const actors::outcome* how, const limits& asked) {
  append_nulls(out, "container", "stop_details");
  if (!how) return append_nulls(out, "stop_reason", "stop_sequence");
  append_text(out, "stop_reason", stop_reason(*how, asked.max_tokens));
  const bool by_string = how->reason == core::finish_reason::stop && how->stop_string;
  if (!by_string) return append_nulls(out, "stop_sequence");
  append_text(out, "stop_sequence", asked.stop_sequences.at(*how->stop_string));
}

// Appends a message object. `content` appends the blocks of its content.
template <class Content>
void append_message(std::string& out, const identity& who, const actors::outcome* how, const limits& asked,
                    const Content& content) {
  append_text(out, "id", who.id);
  append_text(out, "type", "message");
  append_text(out, "role", "assistant");
  append_text(out, "model", who.model);
  append_key(out, "content");
  out += '[';
  content();
  out += ']';
  append_stop(out, how, asked);
  append_nulls(out, "diagnostics");
  append_warnings(out, who.warnings);
}

// Appends a block without its text, and returns the place of the text: behind a quote, or, for the arguments
// of a call, at the place of an object.
std::size_t append_block(std::string& out, core::part_kind what, const core::answer_call* call) {
  std::size_t end = 0;
  append_object(out, [&] {
    if (what == core::part_kind::call) {
      append_text(out, "type", "tool_use");
      append_text(out, "id", call->id);
      append_text(out, "name", call->name);
      append_key(out, "input");
      end = out.size();
      out += "{}";
      return;
    }
    const char* const name = what == core::part_kind::text ? "text" : "thinking";
    append_text(out, "type", name);
    append_text(out, name, "");
    end = out.size() - 1;
    if (what == core::part_kind::text)
      append_nulls(out, "citations");
    else
      append_text(out, "signature", "");
  });
  return end;
}

void append_shifts(std::string& out, const actors::outcome& how) {
  if (how.shifts > 0) append_int(out, "context_shifts", how.shifts);
}

void append_usage(std::string& out, const actors::outcome& how) {
  append_object(out, "usage", [&] {
    append_counts(out, how.input_tokens, how.cached_tokens, how.output_tokens);
    append_shifts(out, how);
    append_nulls(out, "cache_creation", "inference_geo", "service_tier", "speed");
  });
}

// Appends a server-sent event. `members` appends the members of its data beside the type.
template <class Members>
void append_event(std::string& out, std::string_view type, const Members& members) {
  out += "event: ";
  out += type;
  out += "\ndata: ";
  append_object(out, [&] {
    append_text(out, "type", type);
    members();
  });
  out += "\n\n";
}

std::string_view error_type(unsigned status) {
  switch (status) {
    case 401:
      return "authentication_error";
    case 403:
      return "permission_error";
    case 404:
      return "not_found_error";
    case 413:
      return "request_too_large";
    case 429:
      return "rate_limit_error";
    case 503:
      return "overloaded_error";
    default:
      return status < 500 ? "invalid_request_error" : "api_error";
  }
}

// Appends the members of an error's body beside its type.
void append_error(std::string& out, unsigned status, std::string_view message, std::string_view request_id) {
  append_object(out, "error", [&] {
    append_text(out, "type", error_type(status));
    append_text(out, "message", message);
  });
  append_text(out, "request_id", request_id);
}

}  // namespace

std::string message_id(const core::job_id& job) { return "msg_" + job.text(); }

// max_tokens counts what was sampled, so an answer that is shorter has filled the context.
std::string_view stop_reason(const actors::outcome& how, std::int64_t max_tokens) {
  switch (how.reason) {
    case core::finish_reason::stop:
      return how.stop_string ? "stop_sequence" : how.calls > 0 ? "tool_use" : "end_turn";
    case core::finish_reason::length:
      return how.output_tokens < max_tokens ? "model_context_window_exceeded" : "max_tokens";
    case core::finish_reason::timeout:
    case core::finish_reason::repetition:
      return "max_tokens";
    case core::finish_reason::banned:
      return "refusal";
    case core::finish_reason::cancel:
      return "cancel";
    case core::finish_reason::error:
      break;
  }
  return "error";
}

namespace {

// The blocks of an answer, one for each part. The arguments of a call are its `input` as they are; those of a
// call that was cut off are no object, and its input is empty.
void add_blocks(body_parts& out, const actors::token_log& log) {
  std::string text;
  bool first = true;
  const auto add = [&](const actors::part_piece& p) {
    const auto* call = p.kind == core::part_kind::call ? &log.marks().calls[p.call] : nullptr;
    text = std::exchange(first, false) ? "" : ",";
    const auto at = append_block(text, p.kind, call);
    out.add(text.substr(0, at));
    if (!call) out.add_json_text(p.text);
    if (call && call->custom) out.add(R"({"input":")");
    if (call && call->custom) out.add_json_text(p.text);
    if (call && call->custom) out.add("\"}");
    if (call && !call->custom) out.add(call->whole ? std::string(p.text) : std::string("{}"));
    out.add(text.substr(at + (call ? 2 : 0)));
  };
  log.each_part(0, log.whole(), add);
  if (!first || log.is_parted()) return;
  add(actors::part_piece());
}

}  // namespace

body_parts response_body(const identity& who, const actors::token_log& log, const actors::outcome& how,
                         const limits& asked) {
  std::string out;
  std::size_t blocks_at = 0;
  identity with_warnings = who;
  add_reading_warnings(with_warnings.warnings, log.marks().warnings);
  append_object(out, [&] {
    append_message(out, with_warnings, &how, asked, [&] { blocks_at = out.size(); });
    append_usage(out, how);
  });
  body_parts parts;
  parts.add(out.substr(0, blocks_at));
  add_blocks(parts, log);
  parts.add(out.substr(blocks_at));
  return parts;
}

std::string count_body(std::uint32_t input_tokens, std::span<const core::grammar::warning> warnings) {
  std::string out;
  append_object(out, [&] {
    append_int(out, "input_tokens", input_tokens);
    append_warnings(out, warnings);
  });
  return out;
}

std::string error_body(unsigned status, std::string_view message, std::string_view request_id) {
  std::string out;
  append_object(out, [&] {
    append_text(out, "type", "error");
    append_error(out, status, message, request_id);
  });
  return out;
}

event_writer::event_writer(identity who, std::uint32_t prompt_tokens, limits asked)
    : who_(std::move(who)), prompt_tokens_(prompt_tokens), asked_(std::move(asked)) {}

void event_writer::open(std::string& out, std::uint32_t, std::string_view) const {
  append_event(out, "message_start", [&] {
    append_object(out, "message", [&] {
      append_message(out, who_, nullptr, asked_, [] {});
      actors::outcome so_far;
      so_far.input_tokens = prompt_tokens_;
      append_usage(out, so_far);
    });
  });
  keep_alive(out);
}

void event_writer::keep_alive(std::string& out) const {
  append_event(out, "ping", [] {});
}

namespace {

void append_block_stop(std::string& out, std::uint32_t index) {
  append_event(out, "content_block_stop", [&] { append_int(out, "index", index); });
}

void append_block_start(std::string& out, const actors::part_piece& part, const core::answer_call* call) {
  append_event(out, "content_block_start", [&] {
    append_int(out, "index", part.part);
    append_key(out, "content_block");
    append_block(out, part.kind, call);
  });
}

void append_delta(std::string& out, const actors::part_piece& part, std::string_view text) {
  constexpr const char* types[] = {"text_delta", "thinking_delta", "input_json_delta"};
  constexpr const char* members[] = {"text", "thinking", "partial_json"};
  const auto kind = static_cast<std::size_t>(part.kind);
  append_event(out, "content_block_delta", [&] {
    append_int(out, "index", part.part);
    append_object(out, "delta", [&] {
      append_text(out, "type", types[kind]);
      append_text(out, members[kind], text);
    });
  });
}

}  // namespace

// The input of a custom tool is the text of its one argument, so that the JSON around it is written here.
void event_writer::piece(std::string& out, std::uint32_t, const answer_piece& news,
                         std::span<const core::token_id>, std::string_view, const logprobs_part*) const {
  for (const auto& part : news.parts) {
    const auto* call = part.kind == core::part_kind::call ? &news.calls[part.call] : nullptr;
    if (part.begins && part.part > 0) append_block_stop(out, part.part - 1);
    if (part.begins) append_block_start(out, part, call);
    if (!call || !call->custom) {
      if (!part.text.empty()) append_delta(out, part, part.text);
      continue;
    }
    std::string json = part.begins ? R"({"input":")" : "";
    core::append_escaped(json, part.text);
    if (part.ends) json += "\"}";
    if (!json.empty()) append_delta(out, part, json);
  }
}

void event_writer::fail(std::string& out, const core::error& e) const {
  append_event(out, "error", [&] { append_error(out, status_of(e.code), e.message, who_.request_id); });
}

void event_writer::end(std::string& out, std::span<const actors::outcome> endings) const {
  assert(endings.size() == 1);
  const actors::outcome& how = endings.front();
  if (how.fault) return;
  if (how.parts.value_or(1) > 0) append_block_stop(out, how.parts.value_or(1) - 1);
  append_event(out, "message_delta", [&] {
    append_object(out, "delta", [&] { append_stop(out, &how, asked_); });
    append_object(out, "usage", [&] {
      append_counts(out, how.input_tokens, how.cached_tokens, how.output_tokens);
      append_shifts(out, how);
    });
  });
  append_event(out, "message_stop", [] {});
}

}  // namespace weir::net::anthropic
