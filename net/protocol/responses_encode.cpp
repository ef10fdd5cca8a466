// Makes response objects and the events of a stream, as clients of the Responses API read them.
#include <algorithm>

#include "net/protocol/constraint_fields.h"
#include "net/protocol/json.h"
#include "net/protocol/responses.h"

namespace weir::net::responses {
namespace {

using core::part_kind;

void append_null(std::string& out, std::string_view key) {
  append_key(out, key);
  out += "null";
}

// The codes that OpenAI's clients know, and those of a fleet.
std::string_view error_code(core::errc code) {
  switch (code) {
    case core::errc::overloaded:
    case core::errc::unavailable:
      return "rate_limit_exceeded";
    case core::errc::invalid_param:
    case core::errc::prompt_too_long:
    case core::errc::does_not_fit:
    case core::errc::not_supported:
      return "invalid_prompt";
    case core::errc::adopted:
      return "adopted";
    case core::errc::handed_over:
      return "handed_over";
    case core::errc::class_changed:
      return "class_changed";
    default:
      return "server_error";
  }
}

std::string make_id(std::string_view prefix, const core::job_id& job, std::uint32_t number) {
  return fmt::format("{}_{}_{}", prefix, job.text(), number);
}

// The name of a tool as the client knows it.
void append_tool_name(std::string& out, const std::vector<flat_name>& names, std::string_view flat) {
  const auto found = std::ranges::find(names, flat, &flat_name::flat);
  append_text(out, "name", found == names.end() ? flat : std::string_view(found->name));
  if (found != names.end()) append_text(out, "namespace", found->space);
}

// A content part; `text` may be a part of it or all.
void append_content_part(std::string& out, part_kind kind, std::string_view text) {
  append_object(out, [&] {
    append_text(out, "type", kind == part_kind::text ? "output_text" : "reasoning_text");
    append_text(out, "text", text);
    if (kind != part_kind::text) return;
    append_key(out, "annotations");
    out += "[]";
    append_key(out, "logprobs");
    out += "[]";
  });
}

struct item_view {
  part_kind kind = part_kind::text;
  std::string_view id, text, status;
  const core::answer_call* call = nullptr;  // not null for a call
  bool has_content = true;                  // of a message or reasoning: its part is there
};

// Appends the members of an item.
void append_item(std::string& out, const item_view& item, const std::vector<flat_name>& names) {
  append_text(out, "id", item.id);
  if (item.kind == part_kind::call) {
    append_text(out, "type", item.call->custom ? "custom_tool_call" : "function_call");
    append_text(out, "status", item.status);
    append_text(out, "call_id", item.call->id);
    append_tool_name(out, names, item.call->name);
    append_text(out, item.call->custom ? "input" : "arguments", item.text);
    return;
  }
  const bool message = item.kind == part_kind::text;
  append_text(out, "type", message ? "message" : "reasoning");
  append_text(out, "status", item.status);
  if (message) {
    append_text(out, "role", "assistant");
  } else {
    append_key(out, "summary");
    out += "[]";
  }
  append_key(out, "content");
  out += '[';
  if (item.has_content) append_content_part(out, item.kind, item.text);
  out += ']';
}

std::string id_of_item(part_kind kind, bool custom, const core::job_id& job, std::uint32_t number) {
  if (kind == part_kind::text) return make_id("msg", job, number);
  if (kind == part_kind::reasoning) return make_id("rs", job, number);
  return make_id(custom ? "ctc" : "fc", job, number);
}

bool is_cut(const actors::outcome& how) { return std::string_view(how.status()) != "completed"; }

// Calls f(item_view) for the items of a log whose job has ended. An answer without any part is one message.
template <class F>
void each_item(const response_head& head, const actors::token_log& log, const actors::outcome& how,
               const F& f) {
  const std::uint32_t parts = log.parts().value_or(1);
  const auto give = [&](const actors::part_piece& p) {
    item_view item;
    item.kind = p.kind;
    item.text = p.text;
    bool whole = p.ends || p.part + 1 < parts || !is_cut(how);
    if (p.kind == part_kind::call) {
      item.call = &log.marks().calls[p.call];
      whole = item.call->whole;
    }
    item.status = whole ? "completed" : "incomplete";
    const std::string id = id_of_item(p.kind, item.call && item.call->custom, head.job, p.part);
    item.id = id;
    f(item);
  };
  bool any = false;
  log.each_part(0, log.whole(), [&](const actors::part_piece& p) {
    any = true;
    give(p);
  });
  if (!any) give(actors::part_piece());
}

void append_usage(std::string& out, const actors::outcome& how) {
  append_object(out, "usage", [&] {
    append_int(out, "input_tokens", how.input_tokens);
    append_object(out, "input_tokens_details", [&] {
      append_int(out, "cached_tokens", how.cached_tokens);
      append_int(out, "cache_write_tokens", 0);
    });
    append_int(out, "output_tokens", how.output_tokens);
    append_object(out, "output_tokens_details",
                  [&] { append_int(out, "reasoning_tokens", how.reasoning_tokens); });
    append_int(out, "total_tokens", std::int64_t{how.input_tokens} + how.output_tokens);
    if (how.shifts > 0) append_int(out, "context_shifts", how.shifts);
  });
}

void append_fault(std::string& out, const actors::outcome& how) {
  if (!how.fault) return append_null(out, "error");
  append_object(out, "error", [&] {
    append_text(out, "code", error_code(how.fault->code));
    append_text(out, "message", how.fault->message);
  });
}

// Appends the members of a response object. `how`: null while the job has not ended; `completed_s`: null
// unless it is completed. `output` appends items; `place`, if not null, is told where.
template <class Output>
void append_response(std::string& out, const response_head& head, std::string_view status,
                     const actors::outcome* how, const std::int64_t* completed_s,
                     const std::vector<core::grammar::warning>& warnings, const Output& output,
                     output_place* place = nullptr) {
  append_text(out, "id", response_id(head.job));
  append_text(out, "object", "response");
  append_int(out, "created_at", head.created_s);
  append_text(out, "status", status);
  if (completed_s)
    append_int(out, "completed_at", *completed_s);
  else
    append_null(out, "completed_at");
  append_text(out, "model", head.model);
  if (how)
    append_fault(out, *how);
  else
    append_null(out, "error");
  if (status == "incomplete")
    append_object(out, "incomplete_details", [&] {
      const bool banned = how && how->reason == core::finish_reason::banned;
      append_text(out, "reason", banned ? "content_filter" : "max_output_tokens");
    });
  else
    append_null(out, "incomplete_details");
  append_key(out, "output");
  const std::size_t begin = out.size();
  out += '[';
  output();
  out += ']';
  if (place) *place = {begin, out.size() - begin};
  if (how)
    append_usage(out, *how);
  else
    append_null(out, "usage");
  if (!head.echo.empty()) {
    out += ',';
    out += head.echo;
  }
  append_warnings(out, warnings);
}

void append_ended(std::string& out, const response_head& head, const actors::token_log& log,
                  const actors::outcome& how, std::int64_t completed_s, output_place* place = nullptr) {
  std::vector<core::grammar::warning> warnings = head.warnings;
  add_reading_warnings(warnings, log.marks().warnings);
  const std::string_view status = how.status();
  const std::int64_t* const completed = status == "completed" ? &completed_s : nullptr;
  const auto items = [&] {
    each_item(head, log, how, [&](const item_view& item) {
      append_object(out, [&] { append_item(out, item, head.names); });
    });
  };
  append_response(out, head, status, &how, completed, warnings, items, place);
}

// Appends the members that name the place of an event.
void append_place(std::string& out, std::string_view id, std::uint32_t part, bool has_content) {
  append_text(out, "item_id", id);
  append_int(out, "output_index", part);
  if (has_content) append_int(out, "content_index", 0);
}

}  // namespace

std::string response_object(const response_head& head, const actors::token_log& log,
                            const actors::outcome& how, std::int64_t completed_s, output_place* output) {
  std::string out;
  append_object(out, [&] { append_ended(out, head, log, how, completed_s, output); });
  return out;
}

std::string prepared_object(const response_head& head, std::int64_t completed_s, output_place* output) {
  const actors::outcome nothing;
  std::string out;
  append_object(out, [&] {
    append_response(
        out, head, "completed", &nothing, &completed_s, head.warnings, [] {}, output);
  });
  return out;
}

std::string unfinished_object(const response_head& head, std::string_view status) {
  std::string out;
  append_object(out,
                [&] { append_response(out, head, status, nullptr, nullptr, head.warnings, [] {}); });
  return out;
}

// An event that the client has is not written.
template <class Members>
void event_writer::event(std::string& out, std::string_view type, const Members& members) {
  const std::int64_t number = next_++;
  if (number <= after_) return;
  out += "event: ";
  out += type;
  out += "\ndata: ";
  append_object(out, [&] {
    append_text(out, "type", type);
    append_int(out, "sequence_number", number);
    members();
  });
  out += "\n\n";
}

void event_writer::open(std::string& out) {
  for (const char* type : {"response.created", "response.in_progress"})
    event(out, type, [&] {
      append_key(out, "response");
      out += unfinished_object(head_, "in_progress");
    });
}

void event_writer::begin(std::string& out, const actors::token_log& log, const actors::part_piece& p,
                         std::uint32_t token) {
  part_ = {p.kind, p.part, p.call, token};
  is_open_ = any_ = true;
  custom_ = p.kind == part_kind::call && log.marks().calls[p.call].custom;
  id_ = id_of_item(p.kind, custom_, head_.job, p.part);
  item_view item{p.kind, id_, {}, "in_progress", nullptr, false};
  if (p.kind == part_kind::call) item.call = &log.marks().calls[p.call];
  event(out, "response.output_item.added", [&] {
    append_int(out, "output_index", p.part);
    append_object(out, "item", [&] { append_item(out, item, head_.names); });
  });
  if (p.kind == part_kind::call) return;
  event(out, "response.content_part.added", [&] {
    append_place(out, id_, p.part, true);
    append_key(out, "part");
    append_content_part(out, p.kind, {});
  });
}

void event_writer::delta(std::string& out, std::string_view text) {
  const bool call = part_.kind == part_kind::call;
  const char* type = part_.kind == part_kind::text        ? "response.output_text.delta"
                     : part_.kind == part_kind::reasoning ? "response.reasoning_text.delta"
                     : custom_                            ? "response.custom_tool_call_input.delta"
                                                          : "response.function_call_arguments.delta";
  event(out, type, [&] {
    append_place(out, id_, part_.part, !call);
    append_text(out, "delta", text);
    if (part_.kind != part_kind::text) return;
    append_key(out, "logprobs");
    out += "[]";
  });
}

void event_writer::finish(std::string& out, const actors::token_log& log, std::uint32_t to, bool cut) {
  is_open_ = false;
  item_view item{part_.kind, id_, {}, cut ? "incomplete" : "completed", nullptr, true};
  if (part_.kind == part_kind::call) {
    item.call = &log.marks().calls[part_.call];
    item.status = item.call->whole ? "completed" : "incomplete";
  }
  log.each_part(part_.from, to, [&](const actors::part_piece& p) {
    if (p.part == part_.part) item.text = p.text;
  });
  const bool call = part_.kind == part_kind::call;
  const char* type = part_.kind == part_kind::text        ? "response.output_text.done"
                     : part_.kind == part_kind::reasoning ? "response.reasoning_text.done"
                     : custom_                            ? "response.custom_tool_call_input.done"
                                                          : "response.function_call_arguments.done";
  event(out, type, [&] {
    append_place(out, id_, part_.part, !call);
    if (!call) {
      append_text(out, "text", item.text);
    } else if (custom_) {
      append_text(out, "input", item.text);
    } else {
      append_tool_name(out, head_.names, item.call->name);
      append_text(out, "arguments", item.text);
    }
    if (part_.kind != part_kind::text) return;
    append_key(out, "logprobs");
    out += "[]";
  });
  if (!call)
    event(out, "response.content_part.done", [&] {
      append_place(out, id_, part_.part, true);
      append_key(out, "part");
      append_content_part(out, part_.kind, item.text);
    });
  event(out, "response.output_item.done", [&] {
    append_int(out, "output_index", part_.part);
    append_object(out, "item", [&] { append_item(out, item, head_.names); });
  });
}

void event_writer::piece(std::string& out, const actors::token_log& log, std::uint32_t from,
                         std::uint32_t to) {
  while (from < to) {
    const std::uint32_t end = log.whole_part(from, from + 1);
    log.each_part(from, end, [&](const actors::part_piece& p) {
      // A part that follows another ends that one. A log that is one text has no beginning of its part.
      if (is_open_ && p.part != part_.part) finish(out, log, end, false);
      if (!is_open_) begin(out, log, p, from);
      if (!p.text.empty()) delta(out, p.text);
      if (p.ends) finish(out, log, end, false);
    });
    from = end;
  }
}

void event_writer::end(std::string& out, const actors::token_log& log, const actors::outcome& how,
                       std::int64_t completed_s) {
  if (!any_) begin(out, log, actors::part_piece(), 0);
  if (is_open_) finish(out, log, log.whole(), is_cut(how));
  const std::string_view status = how.status();
  const char* type = status == "completed" ? "response.completed"
                     : status == "failed"  ? "response.failed"
                                           : "response.incomplete";
  event(out, type,
        [&] { append_object(out, "response", [&] { append_ended(out, head_, log, how, completed_s); }); });
}

void event_writer::end_prepared(std::string& out, std::int64_t completed_s) {
  event(out, "response.completed", [&] {
    append_key(out, "response");
    out += prepared_object(head_, completed_s);
  });
}

void event_writer::fail(std::string& out, const core::error& e) {
  event(out, "error", [&] {
    append_text(out, "code", error_code(e.code));
    append_text(out, "message", e.message);
    if (e.param.empty())
      append_null(out, "param");
    else
      append_text(out, "param", e.param);
  });
}

void event_writer::leave(std::string& out, const core::error& e) const {
  out += "event: error\ndata: ";
  append_object(out, [&] {
    append_text(out, "type", "error");
    append_int(out, "sequence_number", std::max(next_ - 1, after_));
    append_text(out, "code", error_code(e.code));
    append_text(out, "message", e.message);
    append_null(out, "param");
  });
  out += "\n\n";
}

void event_writer::keep_alive(std::string& out) const { out += ": keep-alive\n\n"; }

}  // namespace weir::net::responses
