// `weir fleet`: the workers of a fleet, from the boards that they publish, and orders to one of them.
#include <spdlog/spdlog.h>
#include <CLI/CLI.hpp>

#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>
#include <iostream>
#include <map>
#include <optional>
#include <thread>

#include "apps/commands.h"
#include "apps/fleet_orders.h"
#include "apps/join.h"
#include "apps/options.h"
#include "apps/serving.h"
#include "core/fleet/control_frame.h"
#include "core/fleet/fleet_board.h"
#include "core/fleet/subjects.h"
#include "net/bus/fleet_table.h"

namespace weir::apps {
namespace {

namespace wire = core::fleet;

// A worker publishes a board four times a second, and at once when somebody says hello.
constexpr std::chrono::milliseconds listening{1000};
// How long a worker has for an answer, and how often one that drains is asked.
constexpr std::chrono::seconds patience{5};
constexpr std::chrono::milliseconds between{250};

struct fleet_command {
  core::join_settings join;
  bool json = false;
  std::string worker;
  double drain_s = 30;
  fleet_order order;
};

int print(const fleet_command& o, const net::seen_boards& boards) {
  std::cout << (o.json ? net::fleet_json(boards) : net::fleet_table(boards));
  return exit_code::done;
}

int run_list(const fleet_command& o) {
  auto bus = join(o.join, "weir fleet");
  if (!bus) return fail(bus.error());
  boost::asio::io_context io{1};
  const wire::subjects subjects(o.join.cell);
  net::seen_boards boards;
  const auto heard = (*bus)->subscribe(subjects.all_boards(), io.get_executor(), [&](const auto& m) {
    if (auto board = wire::read_board(m.bytes)) boards[board->worker] = std::move(*board);
  });
  if (!heard) return fail(heard.error());
  (*bus)->publish(subjects.hello(), "");
  boost::asio::steady_timer timer(io, listening);
  timer.async_wait([&](boost::system::error_code) { io.stop(); });
  io.run();
  if ((*bus)->state() != actors::bus::link::up) return fail(no_server(o.join));
  return print(o, boards);
}

// ---- orders to a worker

std::uint32_t jobs_of(const wire::fleet_board& b) {
  std::uint32_t jobs = 0;
  for (const auto& m : b.models) jobs += m.jobs;
  return jobs;
}

// The board that a worker answers with; an error where the worker is not there.
core::result<wire::fleet_board> asked(actors::bus& bus, const fleet_command& o, const wire::control& what) {
  const auto said = ask_worker(bus, o.join, o.worker, wire::frame_of(what), patience);
  if (!said) return said.error();
  return wire::read_board(*said);
}

// Gives the order, and waits until the worker is free.
int run_drain(const fleet_command& o) {
  auto bus = join(o.join, "weir fleet");
  if (!bus) return fail(bus.error());
  const auto limit = std::chrono::duration_cast<core::duration>(std::chrono::duration<double>(o.drain_s));
  auto board = asked(**bus, o, wire::drain{limit});
  std::optional<std::uint32_t> told;
  while (board && (board->state != wire::worker_state::leaving || jobs_of(*board) > 0)) {
    const auto jobs = jobs_of(*board);
    if (told != jobs) spdlog::info("{}: {} jobs are left", o.worker, jobs);
    told = jobs;
    std::this_thread::sleep_for(between);
    board = asked(**bus, o, wire::probe());
    if (board && board->state == wire::worker_state::ready)
      return fail(core::make_error(core::errc::unavailable, "the worker {} takes jobs again", o.worker));
  }
  if (!board) return fail(board.error());
  return print(o, {{o.worker, *board}});
}

int run_undrain(const fleet_command& o) {
  auto bus = join(o.join, "weir fleet");
  if (!bus) return fail(bus.error());
  const auto board = asked(**bus, o, wire::undrain());
  if (!board) return fail(board.error());
  if (board->state != wire::worker_state::ready)
    return fail(core::make_error(core::errc::unavailable, "the worker {} ends, and takes no jobs", o.worker));
  return print(o, {{o.worker, *board}});
}

int run_order(const fleet_command& o) {
  auto bus = join(o.join, "weir fleet");
  if (!bus) return fail(bus.error());
  return give_fleet_order(**bus, o.join, o.order);
}

std::string check_worker(const std::string& s) {
  return wire::is_name(s) ? std::string() : "no name of a worker: " + s;
}

// Adds the orders for models of a worker. `chosen` becomes run_order.
void add_orders(CLI::App& app, fleet_order& o, const std::shared_ptr<int (*)(const fleet_command&)>& chosen) {
  const auto add = [&](const char* name, const char* what) {
    auto* sub = app.add_subcommand(name, what);
    sub->fallthrough();
    sub->add_option("name", o.model, "the model's name")->required();
    sub->add_option("--on", o.worker, "the worker's name, as the list has it")
        ->required()
        ->check(check_worker);
    sub->callback([&o, name, chosen] {
      o.action = name;
      *chosen = run_order;
    });
    return sub;
  };
  add("load", "a worker loads a model")
      ->add_option("--source", o.source,
                   "path on the worker's machine, a name below its --models-dir, random:SHAPE or sim[:SPEC]; "
                   "none: a model that the worker knows");
  auto* unload = add("unload", "a worker unloads a model once the model's jobs have ended");
  auto* sleep = add("sleep", "a model of a worker goes to sleep once its jobs have ended");
  for (auto* sub : {unload, sleep})
    sub->add_option("--drain-s", o.drain_s, "how long running jobs may go on")
        ->check(CLI::Range(0.0, 86400.0));
  sleep->add_option("--level", o.level, "host or disk; none: the worker chooses");
  add("wake", "a model of a worker wakes");
}

}  // namespace

command add_fleet(CLI::App& app) {
  auto o = std::make_shared<fleet_command>();
  auto chosen = std::make_shared<int (*)(const fleet_command&)>(run_list);
  add_settings(app, o->join);
  app.add_flag("--json", o->json, "print an object with all that the workers say");
  app.require_subcommand(0, 1);
  const auto add = [&](const char* name, const char* what, int (*run)(const fleet_command&)) {
    auto* sub = app.add_subcommand(name, what);
    sub->fallthrough();
    sub->add_option("worker", o->worker, "the worker's name, as the list has it")
        ->required()
        ->check(check_worker);
    sub->callback([chosen, run] { *chosen = run; });
    return sub;
  };
  add("drain", "a worker takes no new jobs, and is free in time; its process goes on", run_drain)
      ->add_option("--drain-s", o->drain_s,
                   "how long running jobs may go on; then they move to other workers")
      ->check(CLI::Range(0.0, 86400.0));
  add("undrain", "the worker takes jobs again", run_undrain);
  add_orders(app, o->order, chosen);
  for (auto* sub : app.get_subcommands({})) name_variables(*sub);
  add_common(app);
  return [o, chosen] { return (*chosen)(*o); };
}

}  // namespace weir::apps
