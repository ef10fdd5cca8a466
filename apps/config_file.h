// config_file.h — the text of a TOML file with every setting of `weir serve`: what --print-config prints.
//
// The text comes from the table in core/config.h. Each setting has its meaning, unit, range and default in
// comments, and a line with the value that it has: what the command line, the environment or --config says,
// else the default. The line of a setting without a value is commented out. A server with this file has the
// settings of the server that printed it.
//
// Thread safety: pure function.
#pragma once

#include <string>

namespace CLI {
class App;
}

namespace weir::apps {

// REQUIRES: `app` has the options of add_settings() and add_common(), and has parsed its arguments.
std::string config_file_of(const CLI::App& app);

}  // namespace weir::apps
