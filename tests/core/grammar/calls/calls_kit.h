// calls_kit.h — what tests of answers with calls share: rules, vocabularies with and without marks, walks.
#pragma once

#include <boost/json.hpp>
#include <catch2/catch.hpp>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include "core/grammar/calls.h"
#include "core/grammar/constraint.h"
#include "core/text/answer/plan.h"
#include "core/text/answer/reader.h"
#include "core/text/detokenizer.h"
#include "tests/core/grammar/schema/schema_kit.h"
#include "tests/core/text/answer/answer_fixtures.h"

namespace weir::tests {

using words_ptr = std::shared_ptr<const core::tokenizer>;

inline core::tool_definition tool_of(std::string name, std::string parameters, bool strict = true) {
  core::tool_definition t;
  t.param = "tools." + name;
  t.name = std::move(name);
  t.parameters = std::move(parameters);
  t.strict = strict;
  return t;
}

inline core::tool_definition custom_of(std::string name, std::string grammar, std::string syntax,
                                       bool strict) {
  auto t = tool_of(std::move(name), {}, strict);
  t.what = core::tool_definition::kind::custom;
  t.grammar = std::move(grammar);
  t.syntax = std::move(syntax);
  return t;
}

inline std::vector<core::tool_definition> two_tools() {
  return {
      tool_of("look", R"({"type":"object","properties":{"place":{"type":"string"},"count":{"type":"integer"}},
                              "required":["place"],"additionalProperties":false})"),
      tool_of("tell", R"({"type":"object","properties":{"hour":{"type":"string"}},
                              "additionalProperties":false})")};
}

inline core::grammar::call_rules rules_for(
    std::string format, core::tool_wishes::choice how = core::tool_wishes::choice::required,
    std::vector<core::tool_definition> tools = two_tools()) {
  core::grammar::call_rules r;
  r.format = std::move(format);
  if (r.format == "harmony") r.messages = core::envelope::harmony;
  if (r.format == "muse-glimmer") r.messages = core::envelope::recipients;
  r.tools.tools = std::move(tools);
  r.tools.how = how;
  return r;
}

// The marks of a format, as far as they look like tokens.
inline std::vector<std::string> marks_of(const core::grammar::call_rules& r) {
  std::vector<std::string> out;
  const auto add = [&](std::string_view s) {
    for (std::size_t at = 0; at < s.size(); ++at) {
      if (s[at] != '<' && s[at] != '[') continue;
      const auto end = s.find(s[at] == '<' ? '>' : ']', at);
      if (end == s.npos) break;
      const std::string mark(s.substr(at, end + 1 - at));
      if (mark.size() > 3 && mark.find('\n') == mark.npos && std::ranges::find(out, mark) == out.end())
        out.push_back(mark);
    }
  };
  if (const auto* f = core::find_call_format(r.format))
    for (const auto s :
         {f->section_open, f->section_close, f->open, f->close, f->open_too, f->id_end, f->id_open, f->middle,
          f->name_end, f->key_open, f->key_end, f->value_close, f->quote})
      add(s);
  add(r.reasoning.open);
  add(r.reasoning.close);
  for (const auto w : core::envelope_words(r.messages)) add(w);
  return out;
}

// Bytes alone; bytes and marks that are special; bytes and marks that are text as well.
inline std::vector<words_ptr> vocabularies(const core::grammar::call_rules& r) {
  return {bytes_and_marks({}, false), bytes_and_marks(marks_of(r), true),
          bytes_and_marks(marks_of(r), false)};
}

inline core::result<std::shared_ptr<core::grammar::constraint>> bound_answer(
    const core::grammar::call_rules& r, const words_ptr& words,
    std::vector<core::grammar::warning>* warnings = nullptr) {
  auto c = core::grammar::compile_answer(r, words.get());
  if (!c) return c.error();
  if (warnings) *warnings = c->warnings;
  return core::grammar::constraint::make(std::move(*c),
                                         std::make_shared<core::grammar::terminal_views>(
                                             std::make_shared<const core::grammar::token_trie>(words)));
}

// The number of tokens of the text that are allowed; -1: the text is allowed as a whole.
inline int refused_token(core::grammar::constraint& over, const core::tokenizer& words,
                         std::string_view text) {
  auto at = over.start();
  int n = 0;
  for (const auto id : words.encode(text, {})) {
    at = over.accept(at, id);
    REQUIRE(at != core::grammar::constraint::failed);
    if (at == core::grammar::constraint::dead) return n;
    ++n;
  }
  return over.may_end(at) ? -1 : n;
}

// Rules over one vocabulary.
class answer_under_test {
 public:
  answer_under_test(const core::grammar::call_rules& r, words_ptr words) : words_(std::move(words)) {
    auto made = bound_answer(r, words_, &warnings);
    if (made)
      over = *made;
    else
      refusal = made.error();
  }
  bool accepts(std::string_view text) const {
    if (!over) FAIL(refusal->message);
    return refused_token(*over, *words_, text) < 0;
  }
  const core::tokenizer& words() const { return *words_; }

  std::shared_ptr<core::grammar::constraint> over;
  std::optional<core::error> refusal;
  std::vector<core::grammar::warning> warnings;

 private:
  words_ptr words_;
};

// Draws tokens that the masks allow until the text must end, or may end and a coin says so. Compares each
// mask with its definition. Bytes that end things are drawn more often, so that a walk ends.
inline std::vector<core::token_id> random_answer(core::grammar::constraint& over, std::mt19937& random,
                                                 std::size_t longest) {
  std::vector<core::token_id> out;
  auto at = over.start();
  while (!over.must_end(at) && out.size() < longest) {
    if (over.may_end(at) && random() % 3 == 0) return out;
    const auto* mask = over.mask(at);
    REQUIRE(mask);
    const auto ids = mask->ids();
    REQUIRE_FALSE(ids.empty());
    REQUIRE(ids == over.mask_by_definition(at).ids());
    std::vector<core::token_id> ends;
    for (const auto id : ids)
      if (id >= 256 || std::string_view("\"}]<,:").find(static_cast<char>(id)) != std::string_view::npos)
        ends.push_back(id);
    const auto& from = !ends.empty() && random() % 2 == 0 ? ends : ids;
    out.push_back(from[random() % from.size()]);
    const auto before = at;
    at = over.accept(before, out.back());
    REQUIRE(at > core::grammar::constraint::failed);
    REQUIRE(over.accept(before, out.back()) == at);  // what is remembered is the same
    REQUIRE(over.accept_known(before, out.back()).value_or(at) == at);
  }
  if (!over.may_end(at)) out.clear();  // too long
  return out;
}

struct read_answer {
  std::string text;
  core::answer_marks marks;
  std::string arguments(std::size_t call) const {
    for (std::size_t i = 0; i < marks.list.size(); ++i) {
      const auto& m = marks.list[i];
      if (m.what != core::answer_mark::kind::call || m.call != call) continue;
      const auto end = i + 1 < marks.list.size() ? marks.list[i + 1].offset : text.size();
      return text.substr(m.offset, end - m.offset);
    }
    return {};
  }
};

// What the reader of answers makes of the tokens.
inline read_answer read_back(const core::grammar::call_rules& r, const words_ptr& words,
                             const std::vector<core::token_id>& ids) {
  core::answer_format f;
  if (const auto* known = core::find_call_format(r.format)) f.calls = *known;
  f.reasoning = r.reasoning;
  f.messages = r.messages;
  auto plan = std::make_shared<core::answer_plan>();
  plan->format = std::make_shared<const core::known_format>(f, *words);
  plan->tools = r.tools.tools;
  plan->separate_reasoning = true;
  plan->begins_in_reasoning = r.begins_in_reasoning;
  plan->calls_only = r.tools.how == core::tool_wishes::choice::required;
  core::answer_reader reader(std::move(plan));
  read_answer out;
  std::uint32_t n = 0;
  std::string characters;
  // Gemma's reader wants a quote in one piece, as its vocabulary has it.
  const bool in_one = r.format == "gemma" && words->vocab_size() == 256;
  core::detokenizer as_text(words);
  for (const auto id : ids) {
    if (id >= 256) as_text.flush(characters);  // half a character before a mark
    as_text.push(id, characters);
    if (in_one) continue;
    reader.take(n++, id, characters, out.text, out.marks);
    characters.clear();
  }
  if (in_one) reader.take(n++, 0, characters, out.text, out.marks);
  characters.clear();
  as_text.flush(characters);
  reader.end(n == 0 ? 0 : n - 1, characters, out.text, out.marks);
  return out;
}

}  // namespace weir::tests
