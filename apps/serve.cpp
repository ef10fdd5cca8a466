#include <CLI/CLI.hpp>

#include <iostream>
#include <optional>
#include <utility>

#include "apps/commands.h"
#include "apps/engine_options.h"
#include "apps/join.h"
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
  core::member_settings fleet;
  bool print_config = false;
};

// The part in the fleet of --join: this process has streams and engines. Nullopt: it is alone.
core::result<std::optional<fleet_part>> fleet_of(const core::member_settings& s) {
  if (s.join.empty()) {
    for (const auto& [name, value] :
         {std::pair("join-ca", &s.join_ca), std::pair("join-cert", &s.join_cert),
          std::pair("join-key", &s.join_key), std::pair("join-nkey", &s.join_nkey)})
      if (!value->empty()) return core::bad_param(name, "--{} is for --join, which is missing", name);
    return std::optional<fleet_part>();
  }
  fleet_part part;
  auto bus = join(s, "weir serve");
  if (!bus) return bus.error();
  part.bus = std::move(*bus);
  part.options.cell = s.cell;
  part.options.dead_after = s.dead_after;
  part.options.moves = s.moves;
  part.options.strict_class = s.strict_class;
  auto& worker = part.worker.emplace();
  worker.cell = s.cell;
  worker.build = WEIR_VERSION;
  worker.adopt_grace = s.adopt_grace;
  return std::optional(std::move(part));
}

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
  auto fleet = fleet_of(o.fleet);
  if (!fleet) return fail(fleet.error());
  service->owner.lists_landmarks = service->owner.joins_fleet = fleet->has_value();
  if (const auto ok = plan_before_load(*service); !ok) return fail(ok.error());
  return serve_until_signal(o.server, std::move(*service), std::move(*parts), std::move(*fleet));
}

}  // namespace

command add_serve(CLI::App& app) {
  auto o = std::make_shared<serve_options>();
  app.add_flag("--print-config", o->print_config,
               "print a file for --config with every setting as it is now, commented, and exit")
      ->configurable(false);
  add_settings(app, o->engine);
  add_settings(app, o->server);
  add_settings(app, o->fleet);
  add_common(app);
  return [o, &app]() -> int {
    if (!o->print_config) return run(*o);
    std::cout << core::config_file_of(given_to(app));
    return exit_code::done;
  };
}

}  // namespace weir::apps
