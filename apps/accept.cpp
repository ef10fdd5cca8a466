#include <CLI/CLI.hpp>
#include <fstream>
#include <iostream>
#include <iterator>
#include <memory>
#include <optional>

#include "apps/commands.h"
#include "apps/constraint_options.h"
#include "apps/engine_options.h"
#include "core/grammar/accept.h"
#include "core/text/tokenizer/tokenizer.h"

namespace weir::apps {
namespace {

using core::grammar::accept_line;
using core::grammar::accept_subject;
using core::grammar::acceptor;

struct accept_options {
  std::string model, batch, text;
  constraint_options constraint;
  bool given_text = false, mask = false;
};

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
  const auto verdict = a.check(own ? *own : *shared, parsed->subject);
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
  const auto named = constraint_of(o.constraint);
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
  const auto verdict = a.check(*shared, subject);
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
  add_constraint(app, o->constraint);
  app.add_option("--batch", o->batch,
                 "lines {\"text\"|\"ids\":…} in, with or without a constraint; a verdict each out")
      ->type_name("F.jsonl");
  app.add_flag("--mask", o->mask, "with the ids of the tokens that may come next");
  return [o, text] {
    o->given_text = text->count() > 0;
    return run(*o);
  };
}

}  // namespace weir::apps
