// The `weir` command: runs the chosen subcommand and returns its exit code.
#include <spdlog/spdlog.h>
#include <CLI/CLI.hpp>

#include <exception>
#include <iostream>
#include <map>

#include "apps/commands.h"
#include "apps/descriptors.h"
#include "apps/log.h"
#include "apps/options.h"
#include "apps/terminate.h"
#include "core/visible.h"

namespace weir::apps {

int fail(std::string_view message) {
  std::cerr << core::visible(message) << '\n';
  return exit_code::bad_usage;
}

}  // namespace weir::apps

namespace {

using namespace weir::apps;

#ifdef WEIR_SERVE_ONLY
// Adds subcommands that this program refuses. `why`: the reason, for the message.
void add_refused(CLI::App& app, std::initializer_list<const char*> names, const char* why) {
  for (const char* name : names) {
    auto* sub = app.add_subcommand(name, why);
    sub->allow_extras();
    sub->callback([name, why] { throw CLI::ValidationError(name, why); });
  }
}
#endif

int run(int argc, char** argv) {
  CLI::App app{"weir: a language-model server that streams evenly"};
  app.require_subcommand(1);
  app.set_version_flag("--version", "weir " WEIR_VERSION);
  std::map<CLI::App*, command> commands;
  const auto add = [&](const char* name, const char* what, command (*make)(CLI::App&)) {
    auto* sub = app.add_subcommand(name, what);
    commands[sub] = make(*sub);
  };
  add("serve", "serve models over HTTP and WebSocket, with a page to try them", add_serve);
  add("plan", "whether models fit their devices, and what of them goes to which; loads nothing", add_plan);
#ifdef WEIR_SERVE_ONLY
  add_refused(app,
              {"worker", "gateway", "fleet", "inspect", "generate", "chat", "render", "tokenize", "accept",
               "load", "models", "launch", "bench"},
              "left out of builds with a sanitizer");
#else
  add("worker", "run models for the gateways of a fleet", add_worker);
  add("gateway", "serve the models of a fleet's workers over HTTP and WebSocket", add_gateway);
  add("fleet", "the workers of a fleet, and what each of them does", add_fleet);
  add("inspect", "what a server would do with a model, from the headers of its files", add_inspect);
  add("generate", "write an answer, or a file of answers, to standard output", add_generate);
  add("chat", "a conversation in a terminal, with a model here or a server", add_chat);
  add("render", "the exact prompt that a conversation becomes", add_render);
  add("tokenize", "text to token ids and pieces, or back", add_tokenize);
  add("accept", "whether texts fit a constraint, and which tokens may come next", add_accept);
  add("models", "list, load, unload and swap the models of a running server", add_models);
  add("launch", "start a coding agent or another client with a running server's models", add_launch);
  add("load", "load a server with streams, and measure every gap", add_load);
  add("bench", "the project's own benchmarks", add_bench);
#endif
  if (argc > 1 && argv[1][0] != '-' &&
      app.get_subcommands([&](CLI::App* s) { return s->check_name(argv[1]); }).empty()) {
    std::cerr << "'" << argv[1] << "' is no subcommand; weir --help lists them\n";
    return exit_code::bad_usage;
  }

  try {
    app.parse(argc, argv);
    apply_config(*app.get_subcommands().front());
  } catch (const CLI::ParseError& e) {
    return app.exit(e) == 0 ? exit_code::done : exit_code::bad_usage;
  }
  auto* chosen = app.get_subcommands().front();
  warn_of_unknown_variables(*chosen);
  const int code = commands.at(chosen)();
  std::cout.flush();
  if (std::cout) return code;
  spdlog::critical("standard output could not be written");
  return exit_code::internal_error;
}

}  // namespace

int main(int argc, char** argv) try {
  set_up_log();
  say_where_on_terminate();
  raise_descriptor_limit();
  return run(argc, argv);
} catch (const std::exception& e) {
  spdlog::critical("{}", e.what());
  return exit_code::internal_error;
}
