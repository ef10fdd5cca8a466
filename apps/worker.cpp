// `weir worker`: runs models for the gateways of a fleet.
#include <spdlog/spdlog.h>
#include <CLI/CLI.hpp>

#include <boost/asio/io_context.hpp>
#include <boost/asio/signal_set.hpp>
#include <csignal>
#include <cstdio>
#include <optional>
#include <utility>

#include "actors/fleet/worker_side.h"
#include "apps/commands.h"
#include "apps/engine_options.h"
#include "apps/join.h"
#include "apps/options.h"
#include "apps/plan.h"
#include "apps/progress.h"
#include "apps/serving.h"
#include "core/visible.h"
#include "net/http/worker_orders.h"

namespace weir::apps {
namespace {

struct worker_command {
  core::engine_settings engine;
  core::worker_settings fleet;
};

// Loads the models, joins, works until a signal, drains, stops.
class working {
 public:
  working(const core::worker_settings& o, actors::service_options s, std::unique_ptr<actors::bus> b)
      : settings_(o), service_(std::move(s), clock_), bus_(std::move(b)) {}

  int run() {
    bus_->watch(io_.get_executor(), [this](actors::bus::link now) {
      if (now == actors::bus::link::closed) stop(fail(not_taken()));
    });
    wait_for_signal();
    service_.load(show_load_progress(), io_.get_executor(), [this](core::result<> r) {
      const auto begun = r ? begin() : r;
      if (!begun) stop(fail(begun.error()));
    });
    io_.run();
    return exit_;
  }

 private:
  core::result<> begin() {
    show_memory(service_.stats().memory);
    actors::fleet::worker_options o;
    o.cell = settings_.cell;
    o.build = WEIR_VERSION;
    o.adopt_grace = settings_.adopt_grace;
    o.on_order = [this](core::fleet::model_wish wish, std::function<void(core::fleet::wish_answer)> done) {
      net::carry_out_wish(service_, settings_.models_dir, std::move(wish), io_.get_executor(),
                          std::move(done));
    };
    if (settings_.demo) o.on_crash = [] { std::raise(SIGKILL); };
    side_.emplace(*bus_, service_, clock_, std::move(o));
    if (auto begun = side_->start(); !begun) return begun;
    std::string names;
    for (const auto& m : service_.models()) {
      names += (names.empty() ? "" : ",") + m.name;
      for (const auto& note : m.notes) spdlog::info("{}: {}", m.name, core::one_line(note));
    }
    std::printf("weir worker ready %s cell=%s model=%s\n", side_->name().c_str(), settings_.cell.c_str(),
                names.c_str());
    std::fflush(stdout);
    return {};
  }

  void wait_for_signal() {
    signals_.async_wait([this](boost::system::error_code ec, int number) {
      if (!ec) on_signal(number);
    });
  }

  // The first signal drains the worker; the second one stops it at once, as does the first before the models
  // are loaded.
  void on_signal(int number) {
    if (std::exchange(draining_, true) || !side_) {
      spdlog::warn("stopping at once");
      return stop(number == SIGINT ? exit_code::interrupted : exit_code::done);
    }
    spdlog::info("draining: no new jobs; running ones have {} s, then they move to other workers",
                 settings_.drain.count());
    wait_for_signal();
    side_->drain(settings_.drain, io_.get_executor(), [this] { stop(exit_code::done); });
  }

  static core::error not_taken() {
    return core::make_error(core::errc::unavailable, "the servers of --join no longer take this process");
  }
  void stop(int code) {
    exit_ = code;
    io_.stop();
  }

  const core::worker_settings& settings_;
  actors::system_time clock_;
  boost::asio::io_context io_{1};
  boost::asio::signal_set signals_{io_, SIGINT, SIGTERM};
  actors::service service_;
  std::unique_ptr<actors::bus> bus_;
  std::optional<actors::fleet::worker_side> side_;
  bool draining_ = false;
  int exit_ = exit_code::done;
};

int run(const worker_command& o) {
  if (o.fleet.load_wait != core::demand_settings().load_wait)
    return fail(
        core::bad_param("load-wait-s", "--load-wait-s is an option of gateways: requests wait there"));
  std::string why_cpu;
  auto service = service_options_of(o.engine, o.fleet.queue, why_cpu, o.fleet.models_dir);
  if (!service) return fail(service.error());
  if (const auto ok = set_copies(*service, o.fleet.replicas); !ok) return fail(ok.error());
  if (const auto ok = set_demand(*service, o.fleet, !o.fleet.models_dir.empty()); !ok)
    return fail(ok.error());
  service->owner.lists_landmarks = service->owner.joins_fleet = true;
  service->seen = std::make_shared<core::incidents>([](std::string_view line) { spdlog::error("{}", line); });
  if (const auto ok = o.fleet.demo ? check_demo(o.fleet) : core::result<>(); !ok) return fail(ok.error());
  auto bus = join(o.fleet, "weir worker");
  if (!bus) return fail(bus.error());
  show_device(why_cpu);
  if (const auto ok = plan_before_load(*service); !ok) return fail(ok.error());
  return working(o.fleet, std::move(*service), std::move(*bus)).run();
}

}  // namespace

command add_worker(CLI::App& app) {
  auto o = std::make_shared<worker_command>();
  add_settings(app, o->engine);
  add_settings(app, o->fleet);
  add_common(app);
  return [o] { return run(*o); };
}

}  // namespace weir::apps
