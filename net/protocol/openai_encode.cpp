// Makes response objects and the events of a stream, as OpenAI's clients read them.
#include "net/http/reply.h"
#include "net/protocol/constraint_fields.h"
#include "net/protocol/json.h"
#include "net/protocol/openai.h"

namespace weir::net::openai {
namespace {

constexpr std::string_view object_end = "}\n\n";  // of an event

void append_ids(std::string& out, std::span<const core::token_id> ids) {
  append_key(out, "token_ids");
  out += '[';
  for (core::token_id id : ids) {
    if (out.back() != '[') out += ',';
    append_number(out, static_cast<std::int64_t>(id));
  }
  out += ']';
}

// Appends the member `logprobs` of a choice. `scored`: the prompt before its text; null: none.
void append_logprobs(std::string& out, dialect d, const logprobs_part* p,
                     const scored_prompt* scored = nullptr) {
  append_key(out, "logprobs");
  if (scored) {
    append_completion_logprobs(out, *scored, *p);
  } else if (!p) {
    out += "null";
  } else if (d == dialect::chat) {
    append_chat_logprobs(out, *p);
  } else {
    append_completion_logprobs(out, *p);
  }
}

void append_usage(std::string& out, const actors::outcome& how) {
  append_object(out, "usage", [&] {
    append_int(out, "prompt_tokens", how.input_tokens);
    append_int(out, "completion_tokens", how.output_tokens);
    append_int(out, "total_tokens", std::int64_t{how.input_tokens} + how.output_tokens);
    append_object(out, "prompt_tokens_details", [&] { append_int(out, "cached_tokens", how.cached_tokens); });
  });
}

void append_head(std::string& out, std::string_view object, const answer_head& head) {
  out += '{';
  append_text(out, "id", head.id);
  append_text(out, "object", object);
  append_int(out, "created", head.created_s);
  append_text(out, "model", head.model);
  append_key(out, "system_fingerprint");
  if (head.fingerprint.empty()) {
    out += "null";
  } else {
    append_json_string(out, head.fingerprint);
  }
  append_key(out, "choices");
  out += '[';
}

// Appends the members of a choice that follow its index.
void append_choice(std::string& out, dialect d, const choice& c) {
  if (d == dialect::chat) {
    append_object(out, "message", [&] {
      append_text(out, "role", "assistant");
      append_text(out, "content", c.text);
      out += R"(,"refusal":null)";
    });
  } else {
    append_text(out, "text", c.text);
  }
  append_logprobs(out, d, c.logprobs ? &*c.logprobs : nullptr, c.scored ? &*c.scored : nullptr);
  append_text(out, "finish_reason", finish_reason(c.how.reason));
  if (c.token_ids) append_ids(out, *c.token_ids);
  if (c.prompt_logprobs && c.how.prompt_logprobs) {
    append_key(out, "prompt_logprobs");
    append_prompt_logprobs(out, *c.how.prompt_logprobs, *c.tokenizer);
  }
  out += '}';
}

}  // namespace

std::string_view finish_reason(core::finish_reason r) {
  switch (r) {
    case core::finish_reason::stop:
      return "stop";
    case core::finish_reason::length:
    case core::finish_reason::timeout:
    case core::finish_reason::repetition:
      return "length";
    case core::finish_reason::cancel:
      return "cancel";
    case core::finish_reason::error:
      break;
  }
  return "error";
}

std::string id_of(dialect d, const core::job_id& first) {
  return (d == dialect::chat ? "chatcmpl-" : "cmpl-") + first.text();
}

actors::outcome usage_of(std::span<const actors::outcome> choices, std::uint32_t n) {
  actors::outcome all;
  for (std::size_t i = 0; i < choices.size(); ++i) {
    all.output_tokens += choices[i].output_tokens;
    if (i % n != 0) continue;
    all.input_tokens += choices[i].input_tokens;
    all.cached_tokens += choices[i].cached_tokens;
  }
  return all;
}

std::string response_body(dialect d, const answer_head& head, std::span<const choice> choices,
                          std::uint32_t n) {
  std::string out;
  append_head(out, d == dialect::chat ? "chat.completion" : "text_completion", head);
  std::vector<actors::outcome> used;
  for (const choice& c : choices) {
    out += used.empty() ? "{" : ",{";
    append_int(out, "index", static_cast<std::int64_t>(used.size()));
    append_choice(out, d, c);
    used.push_back(c.how);
  }
  out += ']';
  append_usage(out, usage_of(used, n));
  append_warnings(out, head.warnings);
  out += '}';
  return out;
}

event_writer::event_writer(dialect d, const answer_head& head, bool include_usage, std::uint32_t n)
    : dialect_(d), include_usage_(include_usage), n_(n), head_("data: ") {
  append_head(head_, d == dialect::chat ? "chat.completion.chunk" : "text_completion", head);
  warnings_ = head.warnings;
}

void event_writer::open(std::string& out, std::uint32_t index, std::string_view prompt) const {
  const auto warnings = std::span(warnings_).first(index == 0 ? warnings_.size() : 0);
  if (dialect_ != dialect::chat) {
    if (prompt.empty() && warnings.empty()) return;
    piece(out, index, prompt, {}, {});
    out.resize(out.size() - object_end.size());
    append_warnings(out, warnings);
    out += object_end;
    return;
  }
  out += head_;
  out += '{';
  append_int(out, "index", index);
  out +=
      R"(,"delta":{"role":"assistant","content":"","refusal":null},"logprobs":null,"finish_reason":null}])";
  append_warnings(out, warnings);
  out += include_usage_ ? ",\"usage\":null}\n\n" : "}\n\n";
}

void event_writer::piece(std::string& out, std::uint32_t index, std::string_view text,
                         std::span<const core::token_id> token_ids, std::string_view finish,
                         const logprobs_part* logprobs) const {
  out += head_;
  const bool chat = dialect_ == dialect::chat;
  out += '{';
  append_int(out, "index", index);
  out += chat ? R"(,"delta":{"content":)" : R"(,"text":)";
  append_json_string(out, text);
  if (chat) out += '}';
  append_logprobs(out, dialect_, logprobs);
  out += R"(,"finish_reason":)";
  if (finish.empty()) {
    out += "null";
  } else {
    append_json_string(out, finish);
  }
  if (!token_ids.empty()) append_ids(out, token_ids);
  out += include_usage_ ? "}],\"usage\":null}\n\n" : "}]}\n\n";
}

void event_writer::usage(std::string& out, const actors::outcome& how) const {
  if (!include_usage_) return;
  out += head_;
  out += ']';
  append_usage(out, how);
  out += "}\n\n";
}

void event_writer::error(std::string& out, const core::error& e) const {
  const reply r = error_reply(e);
  out += "data: ";
  out += r.body;
  out += "\n\n";
}

void event_writer::close(std::string& out) const { out += "data: [DONE]\n\n"; }

void event_writer::keep_alive(std::string& out) const { out += ": keep-alive\n\n"; }

void event_writer::end(std::string& out, std::span<const actors::outcome> choices) const {
  usage(out, usage_of(choices, n_));
  close(out);
}

void event_writer::fail(std::string& out, const core::error& e) const {
  error(out, e);
  close(out);
}

}  // namespace weir::net::openai
