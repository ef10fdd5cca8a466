#include "net/protocol/logprobs.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <vector>

#include "core/text/byte_joiner.h"
#include "net/protocol/planned.h"

namespace weir::net {
namespace {

using core::token_logprob;

constexpr std::uint32_t most_entries = 1024;  // of a frame; each takes some 50 bytes

// A member that is there and not null.
const json::value* member(const json::object& o, std::string_view name) {
  const json::value* v = o.if_contains(name);
  return v && !v->is_null() ? v : nullptr;
}

core::result<void> read_logprobs(const json::value& v, logprobs_form form, actors::request& r) {
  if (form == logprobs_form::flag || (form == logprobs_form::either && v.is_bool())) {
    auto flag = read_bool("logprobs", v);
    if (!flag) return flag.error();
    if (*flag) r.top_logprobs = 0;
    return {};
  }
  auto number = read_integer("logprobs", v);
  if (!number) return number.error();
  r.top_logprobs = *number;
  return {};
}

// A token by itself. The object is used again and again, so that its text need not grow again.
struct spelling {
  std::string_view bytes;
  std::string text;    // the bytes, with U+FFFD for what is not UTF-8
  bool whole = false;  // the bytes are UTF-8

  void read(const core::tokenizer& t, core::token_id id) {
    bytes = t.token_bytes(id);
    text.clear();
    core::byte_joiner joiner;
    joiner.push(bytes, t.is_byte_piece(id), text);
    joiner.finish(text);
    whole = text == bytes;
  }
};

void append_shortest(std::string& out, float value) {
  std::array<char, 32> digits;
  out.append(digits.data(), std::to_chars(digits.data(), digits.data() + digits.size(), value).ptr);
}

void append_logprob(std::string& out, float value) {
  append_key(out, "logprob");
  append_shortest(out, value);
}

void append_token(std::string& out, const spelling& s) {
  append_key(out, "token");
  append_json_string(out, s.text);
}

void append_bytes(std::string& out, std::string_view bytes) {
  append_key(out, "bytes");
  out += '[';
  for (const char c : bytes) {
    if (out.back() != '[') out += ',';
    append_number(out, std::int64_t{static_cast<unsigned char>(c)});
  }
  out += ']';
}

// Calls `each(entry)` for the likeliest tokens that a token came with.
template <class Each>
void each_likely(std::span<const token_logprob> entries, Each each) {
  for (const token_logprob& e : entries.subspan(1))
    if (e.id >= 0) each(e);
}

// Appends a list: `item(i)` appends what belongs to the token at position i.
template <class Item>
void append_list(std::string& out, const logprobs_part& p, Item item) {
  out += '[';
  for (std::uint32_t i = p.from; i < p.to; ++i) {
    if (i > p.from) out += ',';
    item(i);
  }
  out += ']';
}

// Appends a list of the likeliest tokens as the member `key`: `item(entry)` appends an object's members.
template <class Item>
void append_likely(std::string& out, std::string_view key, std::span<const token_logprob> entries,
                   Item item) {
  append_key(out, key);
  out += '[';
  each_likely(entries, [&](const token_logprob& e) { append_object(out, [&] { item(e); }); });
  out += ']';
}

// bytes:\xe2\x80, as OpenAI's completions spell a token that is not UTF-8.
void append_spelled_bytes(std::string& out, std::string_view bytes) {
  constexpr char hex[] = "0123456789abcdef";
  out += "bytes:";
  for (const char c : bytes) {
    const auto b = static_cast<unsigned char>(c);
    out += "\\x";
    out += hex[b >> 4];
    out += hex[b & 15];
  }
}

// The tokens of a completion, as the keys of its objects.
class completion_tokens {
 public:
  explicit completion_tokens(const core::tokenizer& t) : tokenizer_(t) {}

  // Valid until the next call.
  const std::string& of(core::token_id id) {
    spelling_.read(tokenizer_, id);
    if (spelling_.whole) return spelling_.text;
    key_.clear();
    append_spelled_bytes(key_, spelling_.bytes);
    return key_;
  }

  // Appends {token:logprob,…}, the token that was drawn among them.
  void append_top(std::string& out, std::span<const token_logprob> likely, const token_logprob& drawn) {
    told_.clear();
    out += '{';
    for (const token_logprob& e : likely)
      if (e.id >= 0) append_once(out, e);
    append_once(out, drawn);
    out += '}';
  }

 private:
  void append_once(std::string& out, const token_logprob& e) {
    const std::string& key = of(e.id);
    if (std::ranges::find(told_, key) != told_.end()) return;
    told_.push_back(key);
    if (out.back() != '{') out += ',';
    append_json_string(out, key);
    out += ':';
    append_shortest(out, e.logprob);
  }

  const core::tokenizer& tokenizer_;
  spelling spelling_;
  std::string key_;
  std::vector<std::string> told_;  // keys of the object that is being appended
};

// Appends the list `key`: `given` appends what belongs to a token of the prompt, null for the first one, and
// `drawn` what belongs to the token at a position of the answer.
template <class Given, class Drawn>
void append_list(std::string& out, std::string_view key, const scored_prompt* prompt, const logprobs_part& p,
                 Given given, Drawn drawn) {
  append_key(out, key);
  out += '[';
  const auto next = [&] {
    if (out.back() != '[') out += ',';
  };
  if (prompt) given(nullptr);
  for (std::size_t i = 0; prompt && i < prompt->tokens.size(); ++i) next(), given(&prompt->tokens[i]);
  for (std::uint32_t i = p.from; i < p.to; ++i) next(), drawn(i);
  out += ']';
}

// A completion's object of logprobs. `prompt`: null where there is only the answer.
void append_completion(std::string& out, const scored_prompt* prompt, const logprobs_part& p) {
  using scored = const core::scored_token*;
  completion_tokens tokens(*p.tokenizer);
  const auto id_of = [&](scored t) { return t ? t->drawn.id : prompt->first; };
  out += '{';
  append_list(
      out, "tokens", prompt, p, [&](scored t) { append_json_string(out, tokens.of(id_of(t))); },
      [&](std::uint32_t i) { append_json_string(out, tokens.of(p.log->id(i))); });
  append_list(
      out, "token_logprobs", prompt, p,
      [&](scored t) { t ? append_shortest(out, t->drawn.logprob) : void(out += "null"); },
      [&](std::uint32_t i) { append_shortest(out, p.log->logprobs(i).front().logprob); });
  append_list(
      out, "top_logprobs", prompt, p,
      [&](scored t) {
        if (!t) return void(out += "null");
        tokens.append_top(out, std::span(t->likeliest).first(std::min(t->count, prompt->top)), t->drawn);
      },
      [&](std::uint32_t i) {
        const auto entries = p.log->logprobs(i);
        tokens.append_top(out, entries.subspan(1), entries.front());
      });
  const std::uint64_t whole = prompt ? characters_of(prompt->text) : 0;
  std::uint64_t in_prompt = 0, in_answer = whole + p.characters;
  append_list(
      out, "text_offset", prompt, p,
      [&](scored t) {
        const std::string_view bytes = p.tokenizer->token_bytes(id_of(t));
        append_number(out, std::min(in_prompt, whole));
        if (t || prompt->text.starts_with(bytes)) in_prompt += characters_of(bytes);
      },
      [&](std::uint32_t i) {
        append_number(out, in_answer);
        in_answer += characters_of(p.log->text_of(i, i + 1));
      });
  out += '}';
}

}  // namespace

core::result<void> read_logprobs_fields(const json::object& o, logprobs_form form, actors::request& r) {
  const json::value* const logprobs = member(o, "logprobs");
  const json::value* const top = member(o, "top_logprobs");
  if (logprobs)
    if (auto read = read_logprobs(*logprobs, form, r); !read) return read;
  if (!top || is_neutral(*top, "0")) return {};
  auto number = read_integer("top_logprobs", *top);
  if (!number) return number.error();
  if (form == logprobs_form::number)
    return core::bad_param("top_logprobs",
                           "top_logprobs goes with a chat; in a completion logprobs is a number");
  if (!r.top_logprobs || !logprobs->is_bool())
    return core::bad_param("top_logprobs", "top_logprobs goes with logprobs: true");
  r.top_logprobs = *number;
  r.top_logprobs_param = "top_logprobs";
  return {};
}

std::uint32_t most_tokens_of_a_frame(const actors::token_log& log) {
  return std::max(1u, most_entries / std::max(1u, log.logprobs_each()));
}

void append_weir_logprobs(std::string& out, const logprobs_part& p) {
  spelling s;
  const auto append_entry = [&](const token_logprob& e) {
    s.read(*p.tokenizer, e.id);
    append_key(out, "id");
    append_number(out, std::int64_t{e.id});
    append_token(out, s);
    append_logprob(out, e.logprob);
    if (!s.whole) append_bytes(out, s.bytes);
  };
  append_list(out, p, [&](std::uint32_t i) {
    const auto entries = p.log->logprobs(i);
    out += '{';
    append_entry(entries.front());
    if (entries.size() > 1) append_likely(out, "top", entries, append_entry);
    out += '}';
  });
}

void append_chat_logprobs(std::string& out, const logprobs_part& p) {
  if (p.from == p.to) {
    out += "null";
    return;
  }
  spelling s;
  const auto append_entry = [&](const token_logprob& e) {
    s.read(*p.tokenizer, e.id);
    append_token(out, s);
    append_logprob(out, e.logprob);
    append_bytes(out, s.bytes);
  };
  out += R"({"content":)";
  append_list(out, p, [&](std::uint32_t i) {
    const auto entries = p.log->logprobs(i);
    out += '{';
    append_entry(entries.front());
    append_likely(out, "top_logprobs", entries, append_entry);
    out += '}';
  });
  out += R"(,"refusal":null})";
}

void append_completion_logprobs(std::string& out, const logprobs_part& p) {
  if (p.from == p.to) {
    out += "null";
    return;
  }
  append_completion(out, nullptr, p);
}

void append_completion_logprobs(std::string& out, const scored_prompt& prompt, const logprobs_part& p) {
  append_completion(out, &prompt, p);
}

void append_prompt_logprobs(std::string& out, std::span<const core::scored_token> tokens,
                            const core::tokenizer& t) {
  spelling s;
  const auto append_entry = [&](const token_logprob& e, std::uint32_t rank) {
    s.read(t, e.id);
    append_object(out, std::to_string(e.id), [&] {
      append_logprob(out, e.logprob);
      append_key(out, "rank");
      append_number(out, std::int64_t{rank});
      append_key(out, "decoded_token");
      append_json_string(out, s.text);
    });
  };
  out += "[null";
  for (const core::scored_token& one : tokens) {
    out += ",{";
    append_entry(one.drawn, one.rank);
    for (std::uint32_t i = 0; i < one.count; ++i)
      if (one.likeliest[i].id != one.drawn.id) append_entry(one.likeliest[i], i + 1);
    out += '}';
  }
  out += ']';
}

std::uint64_t characters_of(std::string_view utf8) {
  return static_cast<std::uint64_t>(
      std::ranges::count_if(utf8, [](char c) { return (static_cast<unsigned char>(c) & 0xC0) != 0x80; }));
}

}  // namespace weir::net
