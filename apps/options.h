// options.h — the settings table as command-line options, TOML keys and WEIR_… variables of a subcommand.
#pragma once

#include <CLI/CLI.hpp>
#include <string>

#include "core/config.h"

namespace weir::apps {

void add_settings(CLI::App& app, core::engine_settings& s);
void add_settings(CLI::App& app, core::server_settings& s);

// --config FILE and --log-level L. Unknown keys of the file are errors.
void add_common(CLI::App& app);

// Options that have a place in the command line but no code behind them yet: refused by name.
void refuse(CLI::App& app, std::initializer_list<const char*> names);

// Warns of WEIR_… variables that no option of `app` reads.
void warn_of_unknown_variables(const CLI::App& app);

}  // namespace weir::apps
