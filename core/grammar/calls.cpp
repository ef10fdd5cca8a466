#include "core/grammar/calls.h"

#include <algorithm>

#include "core/grammar/calls/answer_parts.h"
#include "core/grammar/calls/call_writer.h"

namespace weir::core::grammar {
namespace {

using choice = tool_wishes::choice;

answer_format format_of(const call_rules& r) {
  answer_format f;
  if (const auto* known = find_call_format(r.format)) f.calls = *known;
  f.reasoning = r.reasoning;
  f.messages = r.messages;
  return f;
}

bool has_reasoning(const call_rules& r) { return !r.reasoning.close.empty() || r.messages != envelope::none; }

// Whether calls, where the model writes some, have to follow rules.
bool constrains_calls(const call_rules& r) {
  if (r.format.empty() || r.tools.how == choice::none || !r.tools.any()) return false;
  const bool enforced =
      std::ranges::any_of(r.tools.tools, [](const auto& t) { return t.strict || t.enforced; });
  return r.tools.how == choice::required || enforced || !r.tools.parallel || r.text.has_value();
}

bool writes_json(const constraint_text& c) {
  return c.what == constraint_text::kind::json_object || c.what == constraint_text::kind::json_schema;
}

class answer_writer {
 public:
  answer_writer(const call_rules& asked, const tokenizer* words, compiled& out, fuel* budget)
      : asked_(asked),
        format_(format_of(asked)),
        out_(out),
        rules_(*out.grammar),
        parts_(rules_, format_, words),
        calls_(parts_, format_.calls, out.warnings, budget),
        budget_(budget) {}

  result<void> write() {
    if (auto e = check()) return *e;
    may_call_ = !asked_.format.empty() && asked_.tools.any() && asked_.tools.how != choice::none;
    constrains_ = constrains_calls(asked_);
    if (constrains_)
      if (auto taken = calls_.take(asked_.tools.tools); !taken) return taken.error();
    if (asked_.text) {
      auto text = write_constraint(out_, *asked_.text, budget_);
      if (!text) {
        error e = text.error();
        e.param.insert(0, asked_.text_param);
        return e;
      }
      text_ = *text;
    }
    const auto root = format_.messages == envelope::none ? with_reasoning() : messages();
    if (!root) return root.error();
    rules_.set_root(*root);
    const bool only_calls = constrains_ && asked_.tools.how == choice::required;
    const bool begins_as_text = format_.calls.bare || (only_calls && !parts_.token_in(calls_.opening()));
    if (begins_as_text || (asked_.text && writes_json(*asked_.text))) rules_.allow_leading_space();
    return {};
  }

 private:
  using texts = std::vector<std::string_view>;

  std::optional<error> check() const {
    const bool wants_calls = asked_.tools.how == choice::required;
    if (!asked_.format.empty() && !format_.has_calls())
      return make_error(errc::internal, "no format of calls is called {}", asked_.format);
    if (wants_calls && asked_.format.empty())
      return make_error(errc::not_supported, "the model has no known form of calls");
    if (wants_calls && !asked_.tools.any()) return bad_param("", "a call is required, and there is no tool");
    return std::nullopt;
  }
  error cannot_count() const {
    return {errc::not_supported,
            "reasoning of this model can have no maximum, since not all marks that end it are tokens",
            asked_.budget_param};
  }

  // The openings of calls, as far as calls may stand in text.
  void add_openings(texts& to) const {
    if (asked_.format.empty()) return;
    to.push_back(calls_.opening());
    to.push_back(format_.calls.open_too);
  }
  // The opening of reasoning, if reasoning has a maximum.
  void add_counted_reasoning(texts& to) const {
    if (asked_.max_reasoning_tokens) to.push_back(format_.reasoning.open);
  }

  // ---- answers that are one text

  // Behind reasoning, or without reasoning.
  part_id answer() {
    if (!constrains_) return free_answer();
    if (asked_.tools.how == choice::required) return only_calls();
    if (asked_.text) return rules_.choice({only_calls(), text_});
    if (format_.calls.bare) return bare_answer();
    return free_text_and(free_text());
  }
  // The calls that end reasoning, and what follows them.
  part_id answer_with_call() {
    const bool several = asked_.tools.parallel;
    if (asked_.tools.how == choice::required || asked_.text) return only_calls();
    const part_id text = free_text();
    const part_id more = rules_.sequence({calls_.group(several), text});
    return rules_.sequence({more, several ? rules_.any_number(more) : rules::empty});
  }

  part_id only_calls() {
    const part_id calls = calls_.all(asked_.tools.parallel);
    const auto other = format_.calls.open_too;
    return other.empty() ? calls : rules_.sequence({rules_.maybe(parts_.spelled(other)), calls});
  }

  part_id free_text() {
    texts without;
    add_openings(without);
    add_counted_reasoning(without);
    return parts_.text_without(without);
  }
  part_id free_text_and(part_id text) {
    const bool several = asked_.tools.parallel;
    const part_id more = rules_.sequence({calls_.group(several), text});
    return rules_.sequence({text, several ? rules_.any_number(more) : rules_.maybe(more)});
  }
  // The answer of a model whose calls follow no rules, or that makes none.
  part_id free_answer() {
    if (asked_.text) return text_;
    texts without;
    if (asked_.tools.how == choice::none) add_none(without);
    add_counted_reasoning(without);
    return parts_.text_without(without);
  }
  // Openings that are tokens; spelled out they are text.
  void add_none(texts& to) const {
    texts all;
    add_openings(all);
    for (const auto s : all)
      if (parts_.token_in(s)) to.push_back(s);
  }
  // Calls are the whole answer, or a text that does not begin as a call does.
  part_id bare_answer() {
    auto& pool = parts_.pool();
    texts without{format_.calls.open_too};
    add_counted_reasoning(without);
    const part_id text = rules_.terminal(
        pool.both(parts_.characters_without(without),
                  pool.complement(pool.concat(parts_.language(R"([ \t\r\n]*\{)"), regex_pool::anything))));
    const bool several = asked_.tools.parallel;
    std::vector<part_id> ways{only_calls(), text};
    if (!format_.calls.open_too.empty())
      ways.push_back(rules_.sequence({text, parts_.spelled(format_.calls.open_too), calls_.all(several)}));
    return rules_.choice(ways);
  }

  // What may stand between the marks of reasoning. nullopt: reasoning has a maximum, and its tokens cannot be
  // counted.
  std::optional<part_id> reasoning_body(bool calls_end_it) {
    texts without{format_.reasoning.close};
    if (calls_end_it) add_openings(without);
    if (asked_.tools.how == choice::none) add_none(without);
    if (!asked_.max_reasoning_tokens) return parts_.text_without(without);
    return parts_.text_without(without, *asked_.max_reasoning_tokens);
  }

  result<part_id> with_reasoning() {
    const std::string_view open = format_.reasoning.open, close = format_.reasoning.close;
    const part_id after = answer();
    const bool free = !constrains_ && !asked_.text && !asked_.max_reasoning_tokens;
    if (free || close.empty() || (open.empty() && !asked_.begins_in_reasoning)) return after;
    const auto mark = parts_.token_in(calls_.opening());
    const bool calls_end_it = may_call_ && (constrains_ ? !calls_.opening().empty() : mark.has_value());
    const auto body = reasoning_body(calls_end_it);
    if (!body) return cannot_count();
    const part_id ended = rules_.sequence({parts_.spelled(without_white(close)), white_behind(close), after});
    part_id behind = ended;
    if (calls_end_it) {
      const part_id call =
          constrains_ ? answer_with_call() : rules_.sequence({rules_.tokens({*mark}), free_answer()});
      behind = rules_.choice({ended, call});
    }
    const part_id begun = rules_.sequence({*body, behind});
    if (asked_.begins_in_reasoning) return begun;
    return rules_.choice({after, rules_.sequence({parts_.spelled(without_white(open)), begun})});
  }
  part_id white_behind(std::string_view spelling) {
    return parts_.white_like(spelling.substr(spelling.find_last_not_of(" \t\r\n") + 1));
  }

  // ---- answers that are messages

  struct header {
    std::string_view reasoning, remark, text;  // each with the mark behind it; empty: there is none
  };

  result<part_id> messages() {
    const bool harmony = format_.messages == envelope::harmony;
    const header heads = harmony ? header{"<|channel|>analysis<|message|>",
                                          "<|channel|>commentary<|message|>", "<|channel|>final<|message|>"}
                                 : header{" to=self<|message|>", {}, " to=user<|message|>"};
    const std::string_view end = harmony ? "<|end|>" : "<|eom|>";
    const auto words = envelope_words(format_.messages);
    texts marks(words.begin(), words.end());
    if (!harmony && asked_.tools.how == choice::none) add_none(marks);
    if (!harmony && constrains_) add_openings(marks);
    const part_id body = parts_.text_without(marks);
    const part_id next = rules_.sequence({parts_.spelled(end), parts_.spelled("<|start|>assistant")});
    // `counted`: behind the one message of reasoning that may come where reasoning has a maximum.
    const rule_id rule = rules_.declare(""), counted = rules_.declare("");
    const auto most = asked_.max_reasoning_tokens;
    const auto write = [&](rule_id r, part_id reasoning, rule_id behind) {
      std::vector<part_id> ways = message_ways(heads, body, next, rules_.call(r));
      if (reasoning != rules::nothing)
        ways.push_back(
            rules_.sequence({parts_.spelled(heads.reasoning), reasoning, next, rules_.call(behind)}));
      rules_.define(r, rules_.choice(ways));
    };
    if (!most) {
      write(rule, body, rule);
    } else {
      write(counted, rules::nothing, counted);
      const auto short_body = parts_.text_without(marks, *most);
      if (!short_body) return cannot_count();
      write(rule, *most == 0 ? rules::nothing : *short_body, counted);
    }
    return rules_.call(rule);
  }

  // The messages that are no reasoning. `again`: what may follow a message.
  std::vector<part_id> message_ways(const header& heads, part_id body, part_id next, part_id again) {
    std::vector<part_id> ways;
    const bool only_calls = may_call_ && asked_.tools.how == choice::required;
    if (!only_calls) {
      ways.push_back(rules_.sequence({parts_.spelled(heads.text), asked_.text ? text_ : body}));
      if (!heads.remark.empty() && !asked_.text)
        ways.push_back(rules_.sequence({parts_.spelled(heads.remark), body, next, again}));
    }
    if (!may_call_) return ways;
    const bool several = asked_.tools.parallel;
    if (!constrains_) {
      ways.push_back(any_call(body));
    } else if (format_.messages == envelope::harmony) {
      const part_id more = rules_.sequence({parts_.spelled("<|start|>assistant"), again});
      ways.push_back(rules_.sequence({calls_.group(false), several ? rules_.maybe(more) : rules::empty}));
    } else {
      const part_id more = several ? rules_.maybe(rules_.sequence({next, again})) : rules::empty;
      ways.push_back(calls_.each_tool([&](std::string_view name, part_id calls) {
        return rules_.sequence({parts_.spelled(fmt::format(" to={}<|message|>", name)), calls, more});
      }));
    }
    return ways;
  }

  // Messages to tools that need not follow rules.
  part_id any_call(part_id body) {
    const bool harmony = format_.messages == envelope::harmony;
    const part_id head = parts_.spelled(harmony ? "<|channel|>commentary to=" : " to=");
    const part_id name = rules_.terminal(parts_.language(R"([A-Za-z0-9_.\-]+)"));
    const part_id json = harmony ? rules_.maybe(parts_.spelled(" <|constrain|>json")) : rules::empty;
    const part_id close = harmony ? parts_.spelled("<|call|>") : rules::empty;
    return rules_.sequence({head, name, json, parts_.spelled("<|message|>"), body, close});
  }

  const call_rules& asked_;
  const answer_format format_;
  compiled& out_;
  rules& rules_;
  answer_parts parts_;
  call_writer calls_;
  fuel* budget_;
  part_id text_ = rules::nothing;
  bool may_call_ = false, constrains_ = false;
};

}  // namespace

bool needs_constraint(const call_rules& r) {
  const bool masks = r.tools.how == choice::none && !r.format.empty();
  return r.text.has_value() || masks || r.tools.how == choice::required || constrains_calls(r) ||
         (r.max_reasoning_tokens && has_reasoning(r));
}

result<compiled> compile_answer(const call_rules& asked, const tokenizer* words, fuel* budget) {
  compiled out{std::make_unique<rules>(asked.text ? most_parts_of(*asked.text) : 500'000), {}};
  const burning burns(*out.grammar, budget);
  if (auto written = answer_writer(asked, words, out, budget).write(); !written) return written.error();
  return out;
}

}  // namespace weir::core::grammar
