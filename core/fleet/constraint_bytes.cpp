#include "core/fleet/constraint_bytes.h"

#include "core/grammar/calls.h"

namespace weir::core::fleet {
namespace {

using grammar::call_rules;
using grammar::constraint_text;

constexpr std::size_t most_choices = 10'000;  // as core/grammar/compile.h
constexpr std::size_t most_tools = 4096;

// `IO`: byte_writer with constants, or byte_reader.
template <class IO, class T>
void text_fields(IO& io, T& c) {
  io.one_of(c.what, constraint_text::kind::answer);
  io(c.text);
  io.list(c.choices, most_choices, [&](auto& s) { io(s); });
  io(c.syntax);
  io.one_of(c.space, grammar::json_space::any);
  io(c.strict);
}

template <class IO, class T>
void tool_fields(IO& io, T& t) {
  for (auto* s : {&t.name, &t.parameters, &t.grammar, &t.syntax, &t.param}) io(*s);
  io.one_of(t.what, tool_definition::kind::custom);
  io(t.strict);
  io(t.enforced);
}

template <class IO, class List>
void tools_fields(IO& io, List& all) {
  io.list(all, most_tools, [&](auto& t) { tool_fields(io, t); });
}

template <class IO, class T>
void rule_fields(IO& io, T& r) {
  io(r.format);
  io(r.reasoning.open);
  io(r.reasoning.close);
  io.one_of(r.messages, envelope::recipients);
  tools_fields(io, r.tools.tools);
  io.one_of(r.tools.how, tool_wishes::choice::required);
  io(r.tools.parallel);
  io(r.begins_in_reasoning);
  io(r.max_reasoning_tokens);
  io(r.text_param);
  io(r.budget_param);
}

}  // namespace

void write_constraint(byte_writer& to, const constraint_text& what) {
  text_fields(to, what);
  if (what.what != constraint_text::kind::answer) return;
  const call_rules& r = *what.answer;
  rule_fields(to, r);
  to(r.text.has_value());
  if (r.text) text_fields(to, *r.text);
}

void write_tools(byte_writer& to, const std::vector<tool_definition>& all) { tools_fields(to, all); }
void read_tools(byte_reader& from, std::vector<tool_definition>& all) { tools_fields(from, all); }

std::shared_ptr<const constraint_text> read_constraint(byte_reader& from) {
  auto out = std::make_shared<constraint_text>();
  text_fields(from, *out);
  if (out->what == constraint_text::kind::answer) {
    call_rules r;
    rule_fields(from, r);
    bool has_text = false;
    from(has_text);
    if (has_text) {
      text_fields(from, r.text.emplace());
      if (r.text->what == constraint_text::kind::answer) from.fail();
    }
    out->answer = std::make_shared<const call_rules>(std::move(r));
  }
  if (from.failed()) return nullptr;
  return out;
}

}  // namespace weir::core::fleet
