// Makes response objects and the events of a stream, as OpenAI's clients read them.
#include <utility>

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

// Appends the member `logprobs` of a choice.
void append_logprobs(std::string& out, dialect d, const logprobs_part* p) {
  append_key(out, "logprobs");
  if (!p) {
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

// The end of a body that is made in parts: `text` comes behind the parts.
struct growing_body {
  body_parts parts;
  std::string text;

  body_parts& flush() {
    parts.add(std::exchange(text, {}));
    return parts;
  }
};

// Appends the members of a choice that follow its index.
void append_choice(growing_body& out, dialect d, const choice& c) {
  const bool chat = d == dialect::chat;
  out.text += chat ? R"(,"message":{"role":"assistant","content":")" : R"(,"text":")";
  out.flush().add_json_text(c.prompt);
  const std::uint32_t shown = c.prompt_alone ? 0 : c.log->whole();
  out.parts.add_json_text(c.log->text_of(0, shown));
  out.text += chat ? R"(","refusal":null},"logprobs":)" : R"(","logprobs":)";
  if (!c.logprobs) {
    out.text += "null";
  } else if (chat) {
    add_chat_logprobs(out.flush(), *c.logprobs);
  } else {
    add_completion_logprobs(out.flush(), *c.logprobs, c.scored);
  }
  out.text += R"(,"finish_reason":)";
  append_json_string(out.text, finish_reason(c.how.reason));
  if (c.with_ids) {
    out.text += R"(,"token_ids":[)";
    out.flush().add(shown, [log = c.log](std::string& to, std::size_t i) {
      if (i > 0) to += ',';
      append_number(to, std::int64_t{log->id(static_cast<std::uint32_t>(i))});
    });
    out.text += ']';
  }
  if (c.prompt_logprobs && c.how.prompt_logprobs) {
    out.text += R"(,"prompt_logprobs":[null)";
    add_prompt_logprobs(out.flush(), *c.how.prompt_logprobs, *c.tokenizer);
    out.text += ']';
  }
  out.text += '}';
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

body_parts response_body(dialect d, const answer_head& head, std::span<const choice> choices,
                         std::uint32_t n) {
  growing_body out;
  append_head(out.text, d == dialect::chat ? "chat.completion" : "text_completion", head);
  std::vector<actors::outcome> used;
  for (const choice& c : choices) {
    out.text += used.empty() ? "{" : ",{";
    append_int(out.text, "index", static_cast<std::int64_t>(used.size()));
    append_choice(out, d, c);
    used.push_back(c.how);
  }
  out.text += ']';
  append_usage(out.text, usage_of(used, n));
  append_warnings(out.text, head.warnings);
  out.text += '}';
  return std::move(out.flush());
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
