// `weir fleet`: the workers of a fleet, from the boards that they publish.
#include <CLI/CLI.hpp>

#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>
#include <iostream>
#include <map>

#include "apps/commands.h"
#include "apps/join.h"
#include "apps/options.h"
#include "apps/serving.h"
#include "core/fleet/fleet_board.h"
#include "core/fleet/subjects.h"
#include "net/bus/fleet_table.h"

namespace weir::apps {
namespace {

// A worker publishes a board four times a second, and at once when somebody says hello.
constexpr std::chrono::milliseconds listening{1000};

struct fleet_command {
  core::join_settings join;
  bool json = false;
};

int run(const fleet_command& o) {
  auto bus = join(o.join, "weir fleet");
  if (!bus) return fail(bus.error());
  boost::asio::io_context io{1};
  const core::fleet::subjects subjects(o.join.cell);
  std::map<std::string, core::fleet::fleet_board> boards;
  const auto heard = (*bus)->subscribe(subjects.all_boards(), io.get_executor(), [&](const auto& m) {
    if (auto board = core::fleet::read_board(m.bytes)) boards[board->worker] = std::move(*board);
  });
  if (!heard) return fail(heard.error());
  (*bus)->publish(subjects.hello(), "");
  boost::asio::steady_timer timer(io, listening);
  timer.async_wait([&](boost::system::error_code) { io.stop(); });
  io.run();
  if ((*bus)->state() != actors::bus::link::up)
    return fail(core::make_error(core::errc::unavailable, "--join {}: no server answers", o.join.join));
  std::cout << (o.json ? net::fleet_json(boards) : net::fleet_table(boards));
  return exit_code::done;
}

}  // namespace

command add_fleet(CLI::App& app) {
  auto o = std::make_shared<fleet_command>();
  add_settings(app, o->join);
  app.add_flag("--json", o->json, "print an object with all that the workers say");
  add_common(app);
  return [o] { return run(*o); };
}

}  // namespace weir::apps
