#include "net/protocol/logprobs.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <utility>
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
  explicit completion_tokens(const core::tokenizer& t) : tokenizer_(&t) {}

  // Valid until the next call.
  const std::string& of(core::token_id id) {
    spelling_.read(*tokenizer_, id);
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

  const core::tokenizer* tokenizer_;
  spelling spelling_;
  std::string key_;
  std::vector<std::string> told_;  // keys of the object that is being appended
};

// Appends a token of a chat.
class chat_token {
 public:
  explicit chat_token(const logprobs_part& p) : p_(p) {}

  void operator()(std::string& out, std::uint32_t i) {
    const auto append_entry = [&](const token_logprob& e) {
      spelling_.read(*p_.tokenizer, e.id);
      append_token(out, spelling_);
      append_logprob(out, e.logprob);
      append_bytes(out, spelling_.bytes);
    };
    const auto entries = p_.log->logprobs(i);
    out += '{';
    append_entry(entries.front());
    append_likely(out, "top_logprobs", entries, append_entry);
    out += '}';
  }

 private:
  logprobs_part p_;
  spelling spelling_;
};

// The tokens of a completion's lists, by their places: those of the prompt where it has logprobs, then those
// of the answer.
struct completion_places {
  logprobs_part answer;
  std::optional<scored_prompt> prompt;

  std::size_t given() const noexcept { return prompt ? prompt->tokens.size() + 1 : 0; }
  std::size_t size() const noexcept { return given() + (answer.to - answer.from); }
  // The prompt's token at place `i`; null: the first one, which has no logprob. REQUIRES: i < given().
  const core::scored_token* scored(std::size_t i) const noexcept {
    return i == 0 ? nullptr : &prompt->tokens[i - 1];
  }
  // The position in the log of the token at place `i`. REQUIRES: i >= given().
  std::uint32_t position(std::size_t i) const noexcept {
    return answer.from + static_cast<std::uint32_t>(i - given());
  }
  core::token_id id(std::size_t i) const {
    if (i >= given()) return answer.log->id(position(i));
    return i == 0 ? prompt->first : scored(i)->drawn.id;
  }
};

void append_token_logprob(std::string& out, const completion_places& all, std::size_t i) {
  if (i >= all.given()) {
    const auto entries = all.answer.log->logprobs(all.position(i));
    return append_shortest(out, entries.front().logprob);
  }
  const auto* scored = all.scored(i);
  scored ? append_shortest(out, scored->drawn.logprob) : void(out += "null");
}

void append_top_logprobs(std::string& out, completion_tokens& tokens, const completion_places& all,
                         std::size_t i) {
  if (i >= all.given()) {
    const auto entries = all.answer.log->logprobs(all.position(i));
    return tokens.append_top(out, entries.subspan(1), entries.front());
  }
  const auto* scored = all.scored(i);
  if (!scored) return void(out += "null");
  tokens.append_top(out, std::span(scored->likeliest).first(std::min(scored->count, all.prompt->top)),
                    scored->drawn);
}

// Appends the offsets of the tokens, from the first place on.
class text_offsets {
 public:
  explicit text_offsets(const completion_places& all)
      : all_(all), prompt_(all.prompt ? characters_of(all.prompt->text) : 0) {}

  void operator()(std::string& out, std::size_t i) {
    if (i < all_.given()) {
      append_number(out, std::min(at_, prompt_));
      const std::string_view bytes = all_.answer.tokenizer->token_bytes(all_.id(i));
      if (i > 0 || all_.prompt->text.starts_with(bytes)) at_ += characters_of(bytes);
      return;
    }
    if (i == all_.given()) at_ = prompt_ + all_.answer.characters;
    append_number(out, at_);
    const std::uint32_t position = all_.position(i);
    at_ += characters_of(all_.answer.log->text_of(position, position + 1));
  }

 private:
  completion_places all_;
  std::uint64_t prompt_, at_ = 0;
};

// The lists of a completion, of which each has an item for each token: calls `list(key, item)` for each of
// them, in their order; `item(out, i)` appends what belongs to the token at place `i`, the first one first.
template <class List>
void each_completion_list(const completion_places& all, List list) {
  completion_tokens tokens(*all.answer.tokenizer);
  list("tokens", [all, tokens](std::string& out, std::size_t i) mutable {
    append_json_string(out, tokens.of(all.id(i)));
  });
  list("token_logprobs", [all](std::string& out, std::size_t i) { append_token_logprob(out, all, i); });
  list("top_logprobs", [all, tokens](std::string& out, std::size_t i) mutable {
    append_top_logprobs(out, tokens, all, i);
  });
  list("text_offset", text_offsets(all));
}

// Adds a list of `size` items: `item(out, i)` appends one.
template <class Item>
void add_list(body_parts& to, std::size_t size, std::string before, Item item) {
  to.add(before + '[');
  to.add(size, [item = std::move(item)](std::string& out, std::size_t i) mutable {
    if (i > 0) out += ',';
    item(out, i);
  });
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
  out += R"({"content":)";
  append_list(out, p, [&, token = chat_token(p)](std::uint32_t i) mutable { token(out, i); });
  out += R"(,"refusal":null})";
}

void append_completion_logprobs(std::string& out, const logprobs_part& p) {
  if (p.from == p.to) {
    out += "null";
    return;
  }
  out += '{';
  each_completion_list({p, {}}, [&](std::string_view key, auto item) {
    append_key(out, key);
    append_list(out, p, [&](std::uint32_t i) { item(out, i - p.from); });
  });
  out += '}';
}

void add_chat_logprobs(body_parts& to, const logprobs_part& p) {
  if (p.from == p.to) return to.add("null");
  add_list(to, p.to - p.from, R"({"content":)",
           [from = p.from, token = chat_token(p)](std::string& out, std::size_t i) mutable {
             token(out, from + static_cast<std::uint32_t>(i));
           });
  to.add(R"(],"refusal":null})");
}

void add_completion_logprobs(body_parts& to, const logprobs_part& p,
                             const std::optional<scored_prompt>& prompt) {
  const completion_places all{p, prompt};
  if (all.size() == 0) return to.add("null");
  std::string before = "{";
  each_completion_list(all, [&](std::string_view key, auto item) {
    append_key(before, key);
    add_list(to, all.size(), std::exchange(before, "]"), std::move(item));
  });
  to.add("]}");
}

void add_prompt_logprobs(body_parts& to, std::span<const core::scored_token> tokens,
                         const core::tokenizer& t) {
  to.add(tokens.size(), [tokens, &t, s = spelling()](std::string& out, std::size_t i) mutable {
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
    const core::scored_token& one = tokens[i];
    out += ",{";
    append_entry(one.drawn, one.rank);
    for (std::uint32_t k = 0; k < one.count; ++k)
      if (one.likeliest[k].id != one.drawn.id) append_entry(one.likeliest[k], k + 1);
    out += '}';
  });
}

std::uint64_t characters_of(std::string_view utf8) {
  return static_cast<std::uint64_t>(
      std::ranges::count_if(utf8, [](char c) { return (static_cast<unsigned char>(c) & 0xC0) != 0x80; }));
}

}  // namespace weir::net
