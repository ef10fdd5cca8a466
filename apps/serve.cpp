#include <CLI/CLI.hpp>

#include <iostream>

#include "apps/commands.h"
#include "apps/engine_options.h"
#include "apps/options.h"
#include "apps/plan.h"
#include "apps/progress.h"
#include "apps/serving.h"
#include "core/config_file.h"

namespace weir::apps {
namespace {

struct serve_options {
  core::engine_settings engine;
  core::server_settings server;
  bool print_config = false;
};

int run(const serve_options& o) {
  std::string why_cpu;
  auto service = service_options_of(o.engine, o.server.queue, why_cpu, o.server.models_dir);
  if (!service) return fail(service.error());
  const auto settings = set_server_settings(*service, o.server);
  if (!settings) return fail(settings.error());
  auto parts = server_parts_of(o.server);
  if (!parts) return fail(parts.error());
  show_device(why_cpu);
  for (const auto& ok : {set_copies(*service, o.server.replicas), set_aliases(*service, o.server.alias),
                         set_shares(*service, o.server.share), set_limits(*service, o.server.limit),
                         set_demand(*service, o.server, !o.server.models_dir.empty())})
    if (!ok) return fail(ok.error());
  if (const auto ok = plan_before_load(*service); !ok) return fail(ok.error());
  return serve_until_signal(o.server, std::move(*service), std::move(*parts));
}

}  // namespace

command add_serve(CLI::App& app) {
  auto o = std::make_shared<serve_options>();
  app.add_flag("--print-config", o->print_config,
               "print a file for --config with every setting as it is now, commented, and exit")
      ->configurable(false);
  add_settings(app, o->engine);
  add_settings(app, o->server);
  add_common(app);
  return [o, &app]() -> int {
    if (!o->print_config) return run(*o);
    std::cout << core::config_file_of(given_to(app));
    return exit_code::done;
  };
}

}  // namespace weir::apps
