// Makes the server's frames of weir.v1: one function for each frame type, in the order of docs/wire.md.
#include "net/protocol/constraint_fields.h"
#include "net/protocol/json.h"
#include "net/protocol/ws_protocol.h"

namespace weir::net::ws {
namespace {

void append_ms(std::string& out, std::string_view key, double value) {
  append_key(out, key);
  append_number(out, value);
}

void append_texts(std::string& out, std::string_view key, std::span<const std::string> texts) {
  append_key(out, key);
  out += '[';
  for (const std::string& text : texts) {
    if (out.back() != '[') out += ',';
    append_json_string(out, text);
  }
  out += ']';
}

void open(std::string& out, std::string_view type) {
  out += "{\"type\":\"";
  out += type;
  out += '"';
}

// The beginning of a frame that names a response.
void open(std::string& out, std::string_view type, const lane_names& lane) {
  open(out, type);
  append_text(out, "id", lane.id);
  append_text(out, "response_id", lane.response_id);
}

void append_metadata(std::string& out, const lane_names& lane) {
  if (lane.metadata.empty()) return;
  append_key(out, "metadata");
  out += lane.metadata;
}

// `begin`: where the frame begins in `out`. The caller closes the object.
void append_padding(std::string& out, std::size_t begin, std::uint32_t more) {
  constexpr std::size_t unit = 64;
  append_key(out, "p");
  const std::size_t without = out.size() - begin + 3;  // two quotes and a brace
  out += '"';
  out.append((unit - without % unit) % unit + unit * (more % 4), '0');
  out += '"';
}

void append_usage(std::string& out, const actors::outcome& how) {
  append_object(out, "usage", [&] {
    append_int(out, "input_tokens", how.input_tokens);
    append_int(out, "output_tokens", how.output_tokens);
    append_int(out, "cached_tokens", how.cached_tokens);
    if (how.reasoning_tokens > 0) append_int(out, "reasoning_tokens", how.reasoning_tokens);
    if (how.shifts > 0) append_int(out, "context_shifts", how.shifts);
  });
}

// The members of a piece of one part: its kind and text, and of a call its number, at its beginning also its
// id and the name of the tool.
void append_part(std::string& out, const actors::part_piece& p, std::span<const core::answer_call> calls) {
  constexpr std::string_view names[] = {"text", "reasoning", "arguments"};
  append_text(out, "part", names[static_cast<std::size_t>(p.kind)]);
  append_text(out, "delta", p.text);
  if (p.kind != core::part_kind::call) return;
  append_object(out, "call", [&] {
    append_int(out, "index", p.call);
    if (!p.begins) return;
    append_text(out, "id", calls[p.call].id);
    append_text(out, "name", calls[p.call].name);
    if (calls[p.call].custom) append_text(out, "type", "custom");
  });
}

// A piece of several parts, which a token has that ends one part and begins the next, has a list of them.
void append_parts(std::string& out, const answer_piece& news) {
  static const actors::part_piece nothing;
  if (news.parts.size() <= 1)
    return append_part(out, news.parts.empty() ? nothing : news.parts[0], news.calls);
  append_key(out, "parts");
  out += '[';
  for (const auto& p : news.parts) append_object(out, [&] { append_part(out, p, news.calls); });
  out += ']';
}

void append_timing(std::string& out, const actors::outcome& how) {
  append_object(out, "timing", [&] {
    append_ms(out, "queue_ms", how.queue_ms);
    append_ms(out, "prefill_ms", how.prefill_ms);
    append_ms(out, "ttft_ms", how.ttft_ms);
    append_ms(out, "decode_ms", how.decode_ms);
    append_ms(out, "max_gap_ms", how.max_gap_ms);
  });
}

}  // namespace

void append_session_created(std::string& out, std::string_view session_id, std::string_view server,
                            std::span<const std::string> models, const limits& l) {
  open(out, "session.created");
  append_text(out, "session_id", session_id);
  append_text(out, "server", server);
  append_texts(out, "models", models);
  append_object(out, "limits", [&] {
    append_int(out, "max_jobs", static_cast<std::int64_t>(l.max_jobs));
    append_int(out, "max_frame", static_cast<std::int64_t>(l.max_frame));
    append_int(out, "max_tokens", static_cast<std::int64_t>(l.max_tokens));
    append_int(out, "detach_grace_ms", static_cast<std::int64_t>(l.detach_grace_ms));
    append_int(out, "retain_ms", static_cast<std::int64_t>(l.retain_ms));
    append_int(out, "max_age_ms", static_cast<std::int64_t>(l.max_age_ms));
  });
  out += '}';
}

void append_created(std::string& out, const lane_names& lane, std::string_view model,
                    std::uint32_t queue_position, std::span<const std::string> ignored,
                    std::span<const core::grammar::warning> warnings, bool loading) {
  open(out, "response.created", lane);
  append_int(out, "seq", 0);
  append_text(out, "model", model);
  if (queue_position > 0 || loading) append_int(out, "queue_position", queue_position);
  if (loading) {
    append_key(out, "loading");
    out += "true";
  }
  if (!ignored.empty()) append_texts(out, "ignored", ignored);
  append_warnings(out, warnings);
  append_metadata(out, lane);
  out += '}';
}

void append_loaded(std::string& out, const lane_names& lane, std::uint32_t queue_position,
                   std::span<const core::grammar::warning> warnings) {
  open(out, "response.loaded", lane);
  if (queue_position > 0) append_int(out, "queue_position", queue_position);
  append_warnings(out, warnings);
  out += '}';
}

void append_delta(std::string& out, const delta& d) {
  const std::size_t begin = out.size();
  open(out, "response.delta");
  append_text(out, "id", d.id);
  append_int(out, "seq", d.seq);
  if (d.n != 1) append_int(out, "n", d.n);
  if (d.news) {
    append_parts(out, *d.news);
  } else {
    append_text(out, "delta", d.text);
  }
  if (d.t_us) append_int(out, "t", *d.t_us);
  if (!d.token_ids.empty()) {
    append_key(out, "token_ids");
    out += '[';
    for (core::token_id token : d.token_ids) {
      if (out.back() != '[') out += ',';
      append_number(out, static_cast<std::int64_t>(token));
    }
    out += ']';
  }
  if (d.logprobs) {
    append_key(out, "logprobs");
    append_weir_logprobs(out, *d.logprobs);
  }
  if (d.more_padding) append_padding(out, begin, *d.more_padding);
  out += '}';
}

void append_resumed(std::string& out, const lane_names& lane, std::uint32_t after, std::uint32_t head,
                    std::string_view status) {
  open(out, "response.resumed", lane);
  append_int(out, "after", after);
  append_int(out, "seq", head);
  append_text(out, "status", status);
  append_metadata(out, lane);
  out += '}';
}

void append_done(std::string& out, const lane_names& lane, std::uint32_t seq, const actors::outcome& how) {
  open(out, "response.done", lane);
  append_int(out, "seq", seq);
  append_text(out, "status", how.status());
  append_text(out, "finish_reason", core::name(how.reason));
  append_usage(out, how);
  append_timing(out, how);
  if (how.fault) {
    append_object(out, "error", [&] {
      append_text(out, "code", code_of(how.fault->code));
      append_text(out, "message", how.fault->message);
      if (!how.fault->param.empty()) append_text(out, "param", how.fault->param);
    });
  }
  append_metadata(out, lane);
  out += '}';
}

void append_pong(std::string& out, std::string_view ts) {
  open(out, "pong");
  if (!ts.empty()) {
    append_key(out, "ts");
    out += ts;
  }
  out += '}';
}

void append_error(std::string& out, const protocol_error& e) {
  open(out, "error");
  if (!e.id.empty()) append_text(out, "id", e.id);
  append_text(out, "code", e.code);
  append_text(out, "message", e.message);
  if (!e.param.empty()) append_text(out, "param", e.param);
  if (e.retry_after_ms) append_int(out, "retry_after_ms", *e.retry_after_ms);
  append_key(out, "fatal");
  out += e.fatal ? "true}" : "false}";
}

void append_closing(std::string& out, std::string_view reason, std::int64_t deadline_ms) {
  open(out, "session.closing");
  append_text(out, "reason", reason);
  append_int(out, "deadline_ms", deadline_ms);
  out += '}';
}

}  // namespace weir::net::ws
