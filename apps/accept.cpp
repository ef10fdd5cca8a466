#include <CLI/CLI.hpp>
#include <fstream>
#include <iostream>
#include <iterator>
#include <memory>
#include <optional>

#include "apps/commands.h"
#include "apps/engine_options.h"
#include "core/grammar/accept.h"
#include "core/text/tokenizer.h"

namespace weir::apps {
namespace {

using core::grammar::accept_line;
using core::grammar::accept_subject;
using core::grammar::acceptor;
using core::grammar::constraint_text;

struct accept_options {
  std::string model, schema, regex, grammar, syntax, batch, text, space = "bounded";
  std::vector<std::string> choices;
  bool given_regex = false, given_text = false;
  bool mask = false, strict = false;
};

int fail(const std::string& message) {
  std::cerr << message << '\n';
  return exit_code::bad_usage;
}

core::result<std::string> file_text(const std::string& option, const std::string& file) {
  std::ifstream in(file, std::ios::binary);
  if (!in) return core::bad_param(option, "{} {}: cannot be read", option, file);
  return std::string(std::istreambuf_iterator<char>(in), {});
}

// The constraint that the options name, and the field by whose name messages call it.
struct named_constraint {
  constraint_text what;
  std::string field;
};
core::result<std::optional<named_constraint>> constraint_of(const accept_options& o) {
  const int given = !o.schema.empty() + o.given_regex + !o.grammar.empty() + !o.choices.empty();
  if (given > 1)
    return core::bad_param("", "only one of --schema, --regex, --grammar and --choice may be given");
  if (given == 0) return std::optional<named_constraint>();
  named_constraint out;
  const auto space = core::grammar::parse_json_space(o.space);
  if (!space) return core::bad_param("--whitespace", "--whitespace: {}", space.error().message);
  out.what.space = *space;
  out.what.strict = o.strict;
  out.what.syntax = o.syntax;
  using kind = constraint_text::kind;
  if (o.given_regex) {
    out.what.what = kind::regex, out.what.text = o.regex, out.field = "regex";
    return std::optional(std::move(out));
  }
  if (!o.choices.empty()) {
    out.what.what = kind::choice, out.what.choices = o.choices, out.field = "choice";
    return std::optional(std::move(out));
  }
  const bool schema = !o.schema.empty();
  auto text = file_text(schema ? "--schema" : "--grammar", schema ? o.schema : o.grammar);
  if (!text) return text.error();
  out.what.what = schema ? kind::json_schema : kind::grammar;
  out.what.text = std::move(*text);
  out.field = schema ? "schema" : "grammar";
  return std::optional(std::move(out));
}

// Judges a line by its own constraint, else by `shared`, which may be missing.
core::result<std::string> answer(acceptor& a, const acceptor::prepared* shared, const std::string& line,
                                 bool mask) {
  auto parsed = core::grammar::parse_accept_line(line);
  if (!parsed) return parsed.error();
  std::optional<acceptor::prepared> own;
  if (parsed->own) {
    auto made = a.prepare(*parsed->own, parsed->field);
    if (!made) return made.error();
    own = std::move(*made);
  }
  if (!own && !shared) return core::bad_param("", "the line has no constraint, nor has the command line");
  const auto verdict = a.judge(own ? *own : *shared, parsed->subject);
  if (!verdict) return verdict.error();
  return to_json(*verdict, mask);
}

int run_batch(acceptor& a, const acceptor::prepared* shared, const accept_options& o) {
  std::ifstream in(o.batch);
  if (!in) return fail("--batch " + o.batch + ": cannot be read");
  int exit = exit_code::done;
  std::size_t number = 0;
  for (std::string line; std::getline(in, line);) {
    ++number;
    if (line.empty()) continue;
    const auto out = answer(a, shared, line, o.mask);
    // One line of output for each line of input, errors too, so that the lines correspond.
    std::cout << (out ? *out : core::grammar::to_json(out.error())) << '\n';
    if (!out) exit = fail(o.batch + ", line " + std::to_string(number) + ": " + out.error().message);
  }
  return exit;
}

int run(const accept_options& o) {
  const auto named = constraint_of(o);
  if (!named) return fail(named.error().message);
  if (!*named && o.batch.empty())
    return fail("one of --schema, --regex, --grammar, --choice and --batch must be given");
  auto t = core::load_tokenizer(o.model.empty() ? bundled_model() : o.model);
  if (!t) return fail(t.error().message);
  const core::system_clock clock;
  acceptor a(*t, clock);
  std::optional<acceptor::prepared> shared;
  if (*named) {
    auto made = a.prepare((*named)->what, (*named)->field);
    if (!made) return fail(made.error().param + ": " + made.error().message);
    shared = std::move(*made);
  }
  if (!o.batch.empty()) return run_batch(a, shared ? &*shared : nullptr, o);
  accept_subject subject{o.text, {}};
  if (!o.given_text) subject.text.assign(std::istreambuf_iterator<char>(std::cin), {});
  const auto verdict = a.judge(*shared, subject);
  if (!verdict) return fail(verdict.error().message);
  std::cout << to_json(*verdict, o.mask) << '\n';
  return exit_code::done;
}

}  // namespace

command add_accept(CLI::App& app) {
  auto o = std::make_shared<accept_options>();
  app.add_option("--model", o->model, "a directory with tokenizer.json; none: the bundled rill")
      ->type_name("DIR");
  auto* text = app.add_option("text", o->text, "what to judge; standard input where it is missing");
  app.add_option("--schema", o->schema, "a file with a JSON Schema that the text follows")->type_name("F");
  auto* regex = app.add_option("--regex", o->regex, "a regular expression that the whole text matches");
  app.add_option("--grammar", o->grammar, "a file with a grammar that the text follows")->type_name("F");
  app.add_option("--grammar-syntax", o->syntax, "gbnf or lark; none: GBNF where a line has ::=, else Lark");
  app.add_option("--choice", o->choices, "the text is one of these; a text to judge stands before the option")
      ->type_name("S...");
  app.add_option("--whitespace", o->space, "between the tokens of JSON: bounded, compact or any")
      ->capture_default_str();
  app.add_flag("--strict", o->strict, "refuse a schema of which something cannot be enforced");
  app.add_option("--batch", o->batch,
                 "lines {\"text\"|\"ids\":…} in, with or without a constraint; a verdict each out")
      ->type_name("F.jsonl");
  app.add_flag("--mask", o->mask, "with the ids of the tokens that may come next");
  return [o, text, regex] {
    o->given_text = text->count() > 0;
    o->given_regex = regex->count() > 0;
    return run(*o);
  };
}

}  // namespace weir::apps
