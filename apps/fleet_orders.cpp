#include "apps/fleet_orders.h"

#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/json.hpp>
#include <iostream>

#include "apps/commands.h"
#include "apps/serving.h"
#include "core/fleet/order_frame.h"
#include "core/fleet/subjects.h"

namespace weir::apps {

namespace wire = core::fleet;
namespace json = boost::json;

namespace {

constexpr std::chrono::seconds permit_patience{5};
constexpr std::chrono::hours order_patience{1};  // a drain and a load

// A load that names a source adds a model; anything else changes one that the worker knows.
wire::model_wish wish_of(const fleet_order& o) {
  wire::model_wish w;
  w.any_path = true;
  json::object body;
  if (o.action == "load" && !o.source.empty()) {
    body = {{"name", o.model}, {"source", o.source}};
  } else {
    w.verb = wire::model_verb::change;
    w.name = o.model;
    body = {{"action", o.action}};
    if (o.drain_s) body["drain_s"] = *o.drain_s;
    if (!o.level.empty()) body["level"] = o.level;
  }
  w.body = json::serialize(body);
  return w;
}

core::error unreadable(const std::string& worker) {
  return core::make_error(core::errc::unavailable, "the worker {} answers with something else", worker);
}

// The message of an answer that is an error.
std::string message_of(const wire::wish_answer& a) {
  boost::system::error_code wrong;
  const auto said = json::parse(a.body, wrong);
  if (!wrong)
    if (const auto* text = said.find_pointer("/error/message", wrong); text && text->is_string())
      return std::string(text->get_string());
  return a.body;
}

}  // namespace

core::error no_server(const core::join_settings& s) {
  return core::make_error(core::errc::unavailable, "--join {}: no server answers", s.join);
}

core::result<std::string> ask_worker(actors::bus& bus, const core::join_settings& s,
                                     const std::string& worker, const std::string& frame,
                                     core::duration patience) {
  boost::asio::io_context io{1};
  std::optional<actors::bus::answer> got;
  bus.ask(wire::subjects(s.cell).control_of(worker), frame, patience, io.get_executor(),
          [&](actors::bus::answer a) { got = std::move(a); });
  const auto work = boost::asio::make_work_guard(io);
  while (!got) io.run_one();
  using how = enum actors::bus::answer::how;
  if (got->how == how::not_sent) return no_server(s);
  if (got->how == how::nobody_there)
    return core::make_error(core::errc::not_found, "the cell {} has no worker {}", s.cell, worker);
  if (got->how != how::came)
    return core::make_error(core::errc::unavailable, "the worker {} does not answer", worker);
  return std::move(got->bytes);
}

int give_fleet_order(actors::bus& bus, const core::join_settings& s, const fleet_order& o) {
  const auto ask = [&](const std::string& frame, core::duration patience) {
    return ask_worker(bus, s, o.worker, frame, patience);
  };
  const auto said = ask(wire::frame_of(wire::permit_wish{}), permit_patience);
  if (!said) return fail(said.error());
  const auto permit = wire::read_permit(*said);
  if (!permit) return fail(unreadable(o.worker));
  auto wish = wish_of(o);
  wish.permit = permit->number;
  const auto answered = ask(wire::frame_of(wish), order_patience);
  if (!answered) return fail(answered.error());
  const auto answer = wire::read_wish_answer(*answered);
  if (!answer) return fail(unreadable(o.worker));
  if (answer->status >= 300)
    return fail(
        core::make_error(core::errc::unavailable, "the worker {}: {}", o.worker, message_of(*answer)));
  std::cout << answer->body << '\n';
  return exit_code::done;
}

}  // namespace weir::apps
