// options.h — makes command-line options, TOML keys and WEIR_… variables of the settings in core/config.h.
#pragma once

#include <string>

#include "core/config.h"
#include "core/config_file.h"
#include "core/join_config.h"

namespace CLI {
class App;
}

namespace weir::apps {

void add_settings(CLI::App& app, core::engine_settings& s);
void add_settings(CLI::App& app, core::server_settings& s);
void add_settings(CLI::App& app, core::join_settings& s);
void add_settings(CLI::App& app, core::member_settings& s);
void add_settings(CLI::App& app, core::worker_settings& s);
void add_settings(CLI::App& app, core::gateway_settings& s);

// Adds the WEIR_… variable to each option that `app` has so far.
void name_variables(CLI::App& app);

// Adds --config FILE, --log-level L and --log-format F.
void add_common(CLI::App& app);

// Reads the TOML file of --config, if one was given, into every option that neither the command line nor the
// environment has set. Options that are not configurable() are for the command line alone. Throws
// CLI::ParseError for a file that cannot be read, a key that is no such option, a value out of range.
void apply_config(CLI::App& app);

// What the settings of `app` were given, once it has parsed its arguments.
core::given_values given_to(const CLI::App& app);

// Adds options that are not supported yet, and are refused by name.
void refuse(CLI::App& app, std::initializer_list<const char*> names);

// Warns of WEIR_… variables that no option of `app` reads.
void warn_of_unknown_variables(const CLI::App& app);

}  // namespace weir::apps
