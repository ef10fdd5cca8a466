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
    if (how.reasoning_tokens > 0)
      append_object(out, "completion_tokens_details",
                    [&] { append_int(out, "reasoning_tokens", how.reasoning_tokens); });
    if (how.shifts > 0) append_int(out, "context_shifts", how.shifts);
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

// A string of several pieces of the log, or null where there are none.
void append_joined(growing_body& out, std::span<const std::string_view> pieces) {
  if (pieces.empty()) {
    out.text += "null";
    return;
  }
  out.text += '"';
  for (const auto piece : pieces) out.flush().add_json_text(piece);
  out.text += '"';
}

// The beginning of a call: everything in front of its text.
void append_call_head(std::string& out, const core::answer_call& c) {
  append_text(out, "id", c.id);
  append_text(out, "type", c.custom ? "custom" : "function");
  append_key(out, c.custom ? "custom" : "function");
  out += '{';
  append_text(out, "name", c.name);
  append_key(out, c.custom ? "input" : "arguments");
}

// The parts of an answer that was taken apart, as members of its message.
void append_parts(growing_body& out, const actors::token_log& log,
                  std::span<const std::string_view> reasoning_names) {
  std::vector<std::string_view> text, reasoning;
  std::vector<actors::part_piece> calls;
  log.each_part(0, log.whole(), [&](const actors::part_piece& p) {
    if (p.kind == core::part_kind::text) text.push_back(p.text);
    if (p.kind == core::part_kind::reasoning) reasoning.push_back(p.text);
    if (p.kind == core::part_kind::call) calls.push_back(p);
  });
  if (text.empty() && calls.empty()) text.emplace_back();
  append_joined(out, text);
  out.text += R"(,"refusal":null)";
  for (const auto name : reasoning_names) {
    if (reasoning.empty()) break;
    append_key(out.text, name);
    append_joined(out, reasoning);
  }
  if (calls.empty()) return;
  append_key(out.text, "tool_calls");
  out.text += '[';
  for (const auto& p : calls) {
    out.text += out.text.back() == '[' ? "{" : ",{";
    append_call_head(out.text, log.marks().calls[p.call]);
    out.text += '"';
    out.flush().add_json_text(p.text);
    out.text += "\"}}";
  }
  out.text += ']';
}

// Appends the members of a choice that follow its index.
void append_choice(growing_body& out, const answer_head& head, dialect d, const choice& c) {
  const bool chat = d == dialect::chat;
  const std::uint32_t shown = c.prompt_alone ? 0 : c.log->whole();
  if (c.log->is_parted()) {
    out.text += R"(,"message":{"role":"assistant","content":)";
    append_parts(out, *c.log, head.reasoning);
    out.text += R"(},"logprobs":)";
  } else {
    out.text += chat ? R"(,"message":{"role":"assistant","content":")" : R"(,"text":")";
    out.flush().add_json_text(c.prompt);
    out.parts.add_json_text(c.log->text_of(0, shown));
    out.text += chat ? R"(","refusal":null},"logprobs":)" : R"(","logprobs":)";
  }
  if (!c.logprobs) {
    out.text += "null";
  } else if (chat) {
    add_chat_logprobs(out.flush(), *c.logprobs);
  } else {
    add_completion_logprobs(out.flush(), *c.logprobs, c.scored);
  }
  out.text += R"(,"finish_reason":)";
  append_json_string(out.text, finish_reason(c.how));
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

std::string_view finish_reason(const actors::outcome& how) {
  switch (how.reason) {
    case core::finish_reason::stop:
      return how.calls > 0 ? "tool_calls" : "stop";
    case core::finish_reason::length:
    case core::finish_reason::timeout:
    case core::finish_reason::repetition:
      return "length";
    case core::finish_reason::banned:
      return "content_filter";
    case core::finish_reason::cancel:
      return "cancel";
    case core::finish_reason::error:
      break;
  }
  return "error";
}

core::result<std::vector<std::string_view>> reasoning_fields(std::string_view names) {
  static constexpr std::string_view known[] = {"reasoning_content", "reasoning"};
  std::vector<std::string_view> out;
  for (std::string_view rest = names; out.empty() || !rest.empty();) {
    const auto name = rest.substr(0, rest.find(','));
    rest.remove_prefix(std::min(rest.size(), name.size() + 1));
    const auto at = std::ranges::find(known, name);
    if (at == std::end(known) || std::ranges::find(out, name) != out.end())
      return core::bad_param("", "'{}' is not reasoning_content, reasoning, or both with a comma between",
                             names);
    out.push_back(*at);
  }
  return out;
}

std::string id_of(dialect d, const core::job_id& first) {
  return (d == dialect::chat ? "chatcmpl-" : "cmpl-") + first.text();
}

actors::outcome usage_of(std::span<const actors::outcome> choices, std::uint32_t n) {
  actors::outcome all;
  for (std::size_t i = 0; i < choices.size(); ++i) {
    all.output_tokens += choices[i].output_tokens;
    all.reasoning_tokens += choices[i].reasoning_tokens;
    all.shifts += choices[i].shifts;
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
    append_choice(out, head, d, c);
    used.push_back(c.how);
  }
  out.text += ']';
  append_usage(out.text, usage_of(used, n));
  std::vector<core::grammar::warning> warnings = head.warnings;
  for (const choice& c : choices) add_reading_warnings(warnings, c.log->marks().warnings);
  append_warnings(out.text, warnings);
  out.text += '}';
  return std::move(out.flush());
}

event_writer::event_writer(dialect d, const answer_head& head, bool include_usage, std::uint32_t n)
    : dialect_(d), include_usage_(include_usage), n_(n), head_("data: ") {
  append_head(head_, d == dialect::chat ? "chat.completion.chunk" : "text_completion", head);
  warnings_ = head.warnings;
  reasoning_ = head.reasoning;
}

void event_writer::open(std::string& out, std::uint32_t index, std::string_view prompt) const {
  const auto warnings = std::span(warnings_).first(index == 0 ? warnings_.size() : 0);
  if (dialect_ != dialect::chat) {
    if (prompt.empty() && warnings.empty()) return;
    prompt_piece(out, index, prompt);
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

// An event without its end, from the finish_reason on.
void event_writer::event(std::string& out, std::uint32_t index, const actors::part_piece& part,
                         std::span<const core::answer_call> calls, const logprobs_part* logprobs) const {
  out += head_;
  out += '{';
  append_int(out, "index", index);
  if (dialect_ != dialect::chat) {
    append_text(out, "text", part.text);
  } else if (part.kind != core::part_kind::call) {
    static constexpr std::string_view content[] = {"content"};
    out += R"(,"delta":{)";
    for (const auto name : part.kind == core::part_kind::text ? std::span(content) : std::span(reasoning_)) {
      append_key(out, name);
      append_json_string(out, part.text);
    }
    out += '}';
  } else {
    const core::answer_call& call = calls[part.call];
    out += R"(,"delta":{"tool_calls":[{)";
    append_int(out, "index", part.call);
    if (part.begins) {
      append_call_head(out, call);
    } else {
      out += call.custom ? R"(,"custom":{"input":)" : R"(,"function":{"arguments":)";
    }
    append_json_string(out, part.text);
    out += "}}]}";
  }
  append_logprobs(out, dialect_, logprobs);
}

void event_writer::piece(std::string& out, std::uint32_t index, const answer_piece& news,
                         std::span<const core::token_id> token_ids, std::string_view finish,
                         const logprobs_part* logprobs) const {
  static const actors::part_piece nothing;
  const auto parts = news.parts.empty() ? std::span(&nothing, 1) : news.parts;
  for (const auto& part : parts) {
    const bool last = &part == &parts.back();
    event(out, index, part, news.calls, last ? logprobs : nullptr);
    out += R"(,"finish_reason":)";
    if (finish.empty() || !last) {
      out += "null";
    } else {
      append_json_string(out, finish);
    }
    if (last && !token_ids.empty()) append_ids(out, token_ids);
    out += "}]";
    if (last) append_reading_warnings(out, news.warnings);
    out += include_usage_ ? ",\"usage\":null}\n\n" : "}\n\n";
  }
}

void event_writer::prompt_piece(std::string& out, std::uint32_t index, std::string_view text) const {
  actors::part_piece part;
  part.text = text;
  answer_piece news;
  news.parts = std::span(&part, 1);
  piece(out, index, news, {}, {});
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
