// commands.h — the subcommands of `weir`. Each function adds the options of one subcommand to an app, and
// returns the function that runs the subcommand. That function returns the exit code.
#pragma once

#include <functional>
#include <string_view>

namespace CLI {
class App;
}

namespace weir::apps {

// Exit codes of all subcommands.
enum exit_code {
  done = 0,
  internal_error = 1,
  not_served = 1,  // weir inspect: the model cannot be served
  bad_usage = 2,
  does_not_fit = 3,
  condition_broken = 4,
  interrupted = 130
};

// Prints a message to standard error. Returns bad_usage.
int fail(std::string_view message);

using command = std::function<int()>;

command add_serve(CLI::App& app);
command add_worker(CLI::App& app);
command add_gateway(CLI::App& app);
command add_fleet(CLI::App& app);
command add_plan(CLI::App& app);
command add_inspect(CLI::App& app);
command add_generate(CLI::App& app);
command add_tokenize(CLI::App& app);
command add_accept(CLI::App& app);
command add_render(CLI::App& app);
command add_chat(CLI::App& app);
command add_load(CLI::App& app);
command add_models(CLI::App& app);
command add_launch(CLI::App& app);
command add_bench(CLI::App& app);

}  // namespace weir::apps
