// `weir gateway`: serves the models of a fleet's workers.
#include <CLI/CLI.hpp>

#include <utility>

#include "apps/commands.h"
#include "apps/engine_options.h"
#include "apps/join.h"
#include "apps/options.h"
#include "apps/serving.h"
#include "net/access/handshake.h"
#include "net/server.h"

namespace weir::apps {
namespace {

struct gateway_command {
  core::gateway_settings fleet;
  core::server_settings server;
};

// A demonstration lets whoever reaches the page kill a worker.
core::result<> check_demo_of(const gateway_command& o) {
  const auto at = net::parse_listen(o.server.listen);
  if (!at) return at.error();
  if (!net::is_local_name(at->host))
    return core::bad_param("demo",
                           "--demo: a demonstration lets a reader kill workers, and --listen {} is "
                           "no address of this machine alone",
                           o.server.listen);
  return check_demo(o.fleet);
}

// Of the settings of models that come and go a gateway has --load-wait-s and --keep-alive-most-s.
core::result<> check_demand(const core::demand_settings& s) {
  const core::demand_settings usual;
  const bool lists = !s.pinned.empty() || !s.idle_unload.empty() || !s.idle_sleep.empty();
  if (!lists && !s.on_demand && s.sleep_mb == 0 && s.stay == usual.stay && s.swap_wait == usual.swap_wait)
    return {};
  return core::bad_param("on-demand",
                         "--on-demand, --stay-s, --swap-wait-s, --pinned, --idle-unload, --idle-sleep and "
                         "--sleep-mb are options of workers: a gateway loads no model");
}

core::result<> check(const gateway_command& o) {
  if (o.server.replicas != 1)
    return core::bad_param("replicas", "--replicas is an option of workers: a gateway runs no model");
  if (!o.server.models_dir.empty())
    return core::bad_param("models-dir", "--models-dir is an option of servers: a gateway loads no model");
  if (const auto ok = check_demand(o.server); !ok) return ok;
  if (!o.server.share.empty())
    return core::bad_param("share", "--share is an option of servers: a gateway runs no model");
  if (!o.server.limit.empty())
    return core::bad_param("limit", "--limit is an option of servers: a gateway runs no model");
  return o.fleet.demo ? check_demo_of(o) : core::result<>();
}

// The options of a service that loads no model; those of its models stay in `models`.
core::result<actors::service_options> service_of(const gateway_command& o,
                                                 std::vector<actors::model_spec>& models) {
  core::engine_settings engine;
  engine.model = o.fleet.model;
  engine.context = o.fleet.context;
  engine.chatml = o.fleet.chatml;
  engine.chat_template = o.fleet.chat_template;
  engine.max_tokens_default = o.fleet.max_tokens_default;
  engine.grammar_time = o.fleet.grammar_time;
  engine.device = "cpu";
  std::string no_matter;
  auto service = service_options_of(engine, o.server.queue, no_matter);
  if (!service) return service;
  if (o.fleet.model.empty()) service->models.clear();  // those of workers, and not the bundled one
  if (const auto ok = set_aliases(*service, o.server.alias); !ok) return ok.error();
  if (const auto ok = set_server_settings(*service, o.server); !ok) return ok.error();
  service->demand.load_wait = o.server.load_wait;
  service->demand.longest_stay = o.server.longest_stay;
  models = std::exchange(service->models, {});
  service->owner.device = "sim";  // a host without a model; it takes no memory and does nothing
  service->devices.clear();
  return service;
}

int run(gateway_command& o) {
  if (const auto ok = check(o); !ok) return fail(ok.error());
  fleet_part part;
  auto service = service_of(o, part.models);
  if (!service) return fail(service.error());
  auto parts = server_parts_of(o.server);
  if (!parts) return fail(parts.error());
  auto bus = join(o.fleet, "weir gateway");
  if (!bus) return fail(bus.error());
  part.bus = std::move(*bus);
  part.options.cell = o.fleet.cell;
  part.options.dead_after = o.fleet.dead_after;
  part.options.moves = o.fleet.moves;
  part.options.strict_class = o.fleet.strict_class;
  part.demo = o.fleet.demo;
  part.fetch = o.fleet.fetch_models || o.fleet.model.empty();
  return serve_until_signal(o.server, std::move(*service), std::move(*parts), std::move(part));
}

}  // namespace

command add_gateway(CLI::App& app) {
  auto o = std::make_shared<gateway_command>();
  add_settings(app, o->fleet);
  add_settings(app, o->server);
  add_common(app);
  return [o] { return run(*o); };
}

}  // namespace weir::apps
