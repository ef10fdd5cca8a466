#include "apps/constraint_options.h"

#include <CLI/CLI.hpp>
#include <fstream>
#include <iterator>

#include "core/grammar/accept.h"

namespace weir::apps {

using core::grammar::constraint_text;

namespace {

core::result<std::string> file_text(const std::string& option, const std::string& file) {
  std::ifstream in(file, std::ios::binary);
  if (!in) return core::bad_param(option, "{} {}: cannot be read", option, file);
  return std::string(std::istreambuf_iterator<char>(in), {});
}

}  // namespace

void add_constraint(CLI::App& app, constraint_options& o) {
  app.add_option("--schema", o.schema, "a file with a JSON Schema that the text follows")->type_name("F");
  o.given_regex = app.add_option("--regex", o.regex, "a regular expression that the whole text matches");
  app.add_option("--grammar", o.grammar, "a file with a grammar that the text follows")->type_name("F");
  app.add_option("--grammar-syntax", o.syntax, "gbnf or lark; none: GBNF where a line has ::=, else Lark");
  app.add_option("--choice", o.choices, "the text is one of these; a text to judge stands before the option")
      ->type_name("S...");
  app.add_option("--whitespace", o.space, "between the tokens of JSON: bounded, compact or any")
      ->capture_default_str();
  app.add_flag("--strict", o.strict, "refuse a schema of which something cannot be enforced");
}

core::result<std::optional<named_constraint>> constraint_of(const constraint_options& o) {
  const bool has_regex = o.given_regex && o.given_regex->count() > 0;
  const int given = !o.schema.empty() + has_regex + !o.grammar.empty() + !o.choices.empty();
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
  if (has_regex) {
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

}  // namespace weir::apps
