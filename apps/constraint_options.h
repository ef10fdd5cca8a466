// constraint_options.h — the options that say what an answer may be: --schema F, --regex R, --grammar F,
// --choice S….
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "core/error.h"
#include "core/grammar/compile.h"

namespace CLI {
class App;
class Option;
}  // namespace CLI

namespace weir::apps {

struct constraint_options {
  std::string schema, regex, grammar, syntax, space = "bounded";  // schema, grammar: names of files
  std::vector<std::string> choices;
  bool strict = false;
  const CLI::Option* given_regex = nullptr;  // an empty expression is one, too
};

// The constraint that options name, and the field by whose name messages call it.
struct named_constraint {
  core::grammar::constraint_text what;
  std::string field;
};

// `o` lives as long as the app.
void add_constraint(CLI::App& app, constraint_options& o);

// nullopt: none is named. Errors: invalid_param, for several, and for a file that cannot be read.
core::result<std::optional<named_constraint>> constraint_of(const constraint_options& o);

}  // namespace weir::apps
