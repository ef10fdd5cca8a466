#include "net/http/cell_orders.h"

#include <algorithm>
#include <boost/asio/post.hpp>
#include <boost/json.hpp>
#include <map>
#include <memory>
#include <utility>

#include "core/fleet/frame_kind.h"
#include "core/insist.h"
#include "net/protocol/json.h"
#include "net/protocol/request_fields.h"

namespace weir::net {

namespace wire = core::fleet;

namespace {

using actors::fleet::seen_worker;
using model_at_worker = wire::known_model;
using wish_verb = wire::model_verb;

constexpr std::size_t most_tries = 3;  // workers that are asked to load a model

core::result<wish_verb> verb_of(endpoint to) {
  switch (to) {
    case endpoint::add_model:
      return wish_verb::add;
    case endpoint::change_model:
      return wish_verb::change;
    case endpoint::remove_model:
      return wish_verb::remove;
    case endpoint::swap_models:
      return wish_verb::swap;
    case endpoint::plan_model:
      return wish_verb::plan;
    default:
      return core::make_error(core::errc::not_supported,
                              "a gateway takes orders at /v1/admin alone: it runs no model itself");
  }
}

// The text member `name` of an order; empty: it has none.
std::string order_text(const boost::json::object& o, std::string_view name) {
  const auto* v = o.if_contains(name);
  return v && v->is_string() ? std::string(v->get_string()) : std::string();
}

core::result<std::string> take_on(boost::json::object& o) {
  if (!o.contains("on")) return std::string();
  const std::string on = order_text(o, "on");
  if (!wire::is_name(on)) return core::bad_param("on", "on must be the name of a worker, of 16 characters");
  o.erase("on");
  return on;
}

const model_at_worker* known_to(const seen_worker& w, const std::string& model) {
  const auto at = std::ranges::find(w.board.known, model, &model_at_worker::name);
  return at == w.board.known.end() ? nullptr : &*at;
}

std::uint64_t taken_bytes(const seen_worker& w) {
  std::uint64_t n = 0;
  for (const auto& m : w.board.known)
    if (m.state != "absent" && m.state != "failed") n += m.bytes;
  return n;
}

bool takes_orders(const seen_worker& w) { return !w.suspected && w.board.state == wire::worker_state::ready; }

// First those that know the model and do not have it, then those that do not know it, and last those that
// have it; among equals the one whose models take least.
std::vector<std::string> loaders(const std::string& model, const std::vector<seen_worker>& all) {
  std::vector<std::pair<std::pair<int, std::uint64_t>, std::string>> order;
  for (const auto& w : all) {
    if (!takes_orders(w)) continue;
    const auto* known = known_to(w, model);
    const bool idle =
        known && (known->state == "absent" || known->state == "failed" || known->state == "asleep");
    order.push_back({{idle ? 0 : !known ? 1 : 2, taken_bytes(w)}, w.board.worker});
  }
  std::ranges::sort(order);
  std::vector<std::string> out;
  for (auto& [rank, name] : order)
    if (out.size() < most_tries) out.push_back(std::move(name));
  return out;
}

std::string listed_names(const std::vector<std::string>& all) {
  std::string out;
  for (const auto& one : all) out += (out.empty() ? "" : ", ") + one;
  return out;
}

// Whether another worker may do what this one could not: it has no room, no such file, or no time.
bool is_worth_another(unsigned status) {
  return status == 404 || status == 409 || status == 422 || status == 503;
}

void append_worker_of(std::string& out, const seen_worker& w, const model_at_worker& m) {
  append_object(out, [&] {
    append_text(out, "worker", w.board.worker);
    append_text(out, "state", m.state);
    append_count(out, "bytes", m.bytes);
    append_count(out, "share", m.share);
    if (!m.reason.empty()) append_text(out, "reason", m.reason);
    append_key(out, "engines");
    out += '[';
    for (const auto& e : w.board.models)
      if (e.name == m.name)
        append_object(out, [&] {
          append_text(out, "device", e.device);
          if (e.arithmetic != 0) append_text(out, "class", wire::class_text(e.arithmetic));
          append_count(out, "weights", e.weight_bytes);
          append_count(out, "kv_tokens", e.kv_tokens);
          append_count(out, "jobs", e.jobs);
          append_count(out, "batch", e.batch);
          if (!e.closed.empty()) append_text(out, "closed", e.closed);
        });
    out += ']';
  });
}

// The state of a model in a cell is the best that it has at a worker.
int rank_of(const std::string& state) {
  constexpr std::string_view best_first[] = {"ready", "asleep", "loading", "draining", "absent", "failed"};
  return static_cast<int>(std::ranges::find(best_first, state) - std::begin(best_first));
}

// Tries one worker after the other. Called on the executor of the answers.
class cell_order_run : public std::enable_shared_from_this<cell_order_run> {
 public:
  cell_order_run(const server_options& gateway, cell_order o, std::vector<std::string> workers,
                 actors::executor ex, std::function<void(reply)> done)
      : gateway_(gateway),
        order_(std::move(o)),
        workers_(std::move(workers)),
        ex_(std::move(ex)),
        done_(std::move(done)) {}

  void ask() {
    gateway_.order_worker(workers_[next_], order_.wish, ex_,
                          [self = shared_from_this()](core::result<wire::wish_answer> a) { self->hear(a); });
  }

 private:
  void hear(const core::result<wire::wish_answer>& a) {
    ++next_;
    const bool failed = !a || is_worth_another(a->status);
    if (failed && order_.loads && next_ < workers_.size()) return ask();
    reply r = a ? reply_of(*a) : error_reply(a.error());
    r.headers.emplace_back("x-weir-worker", workers_[next_ - 1]);
    done_(std::move(r));
  }

  const server_options& gateway_;
  const cell_order order_;
  const std::vector<std::string> workers_;
  const actors::executor ex_;
  const std::function<void(reply)> done_;
  std::size_t next_ = 0;
};

}  // namespace

core::result<cell_order> read_cell_order(const route_match& route, std::string_view body, bool any_path,
                                         std::size_t most_values) {
  const auto v = verb_of(route.to);
  if (!v) return v.error();
  cell_order out;
  out.wish.verb = *v;
  out.wish.any_path = any_path;
  if (route.id.size() > wire::longest_wish_name || body.size() > wire::longest_wish)
    return core::bad_param("name", "an order over a fleet has at most {} bytes, and a name {}",
                           wire::longest_wish, wire::longest_wish_name);
  out.wish.name = out.model = route.id;
  if (*v == wish_verb::remove && body.empty()) return out;
  auto o = read_body(body, most_values);
  if (!o) return o.error();
  auto on = take_on(*o);
  if (!on) return on.error();
  out.on = std::move(*on);
  if (*v == wish_verb::add || *v == wish_verb::plan) out.model = order_text(*o, "name");
  out.loads = *v == wish_verb::add || *v == wish_verb::plan ||
              (*v == wish_verb::change && order_text(*o, "action") == "load");
  if (*v != wish_verb::remove || !o->empty()) out.wish.body = boost::json::serialize(*o);
  return out;
}

core::result<std::vector<std::string>> workers_for(const cell_order& o, const std::vector<seen_worker>& all) {
  std::vector<std::string> out;
  if (!o.on.empty()) {
    const auto is = [&](const seen_worker& w) { return w.board.worker == o.on; };
    if (std::ranges::any_of(all, is)) return std::vector{o.on};
    return core::make_error(core::errc::not_found, "the fleet has no worker {}", o.on);
  }
  if (o.loads) {
    out = loaders(o.model, all);
    if (!out.empty()) return out;
    return core::make_error(core::errc::unavailable, "no worker of the fleet takes orders now");
  }
  for (const auto& w : all)
    if (o.model.empty() || known_to(w, o.model)) out.push_back(w.board.worker);
  if (out.empty())
    return core::make_error(core::errc::model_not_found, "no worker of the fleet knows '{}'", o.model);
  if (out.size() == 1) return out;
  return core::bad_param("on", "on is missing, the worker that is meant: one of {}", listed_names(out));
}

std::string cell_models_body(const std::vector<seen_worker>& all) {
  std::map<std::string, std::vector<std::pair<const seen_worker*, const model_at_worker*>>> by_name;
  for (const auto& w : all)
    for (const auto& m : w.board.known) by_name[m.name].emplace_back(&w, &m);
  std::string out = R"({"models":[)";
  for (const auto& [name, at] : by_name) {
    const auto best =
        std::ranges::min_element(at, {}, [](const auto& p) { return rank_of(p.second->state); });
    append_object(out, [&, &name = name, &at = at] {
      append_text(out, "name", name);
      append_text(out, "state", best->second->state);
      append_key(out, "workers");
      out += '[';
      for (const auto& [w, m] : at) append_worker_of(out, *w, *m);
      out += ']';
    });
  }
  out += R"(],"workers":[)";
  for (const auto& w : all)
    append_object(out, [&] {
      append_text(out, "worker", w.board.worker);
      append_text(out, "state", w.suspected ? "suspected" : wire::name(w.board.state));
      append_count(out, "bytes", taken_bytes(w));
      if (w.board.known_left_out > 0) append_count(out, "left_out", w.board.known_left_out);
    });
  return out + "]}";
}

reply reply_of(const wire::wish_answer& a) {
  reply r = json_reply(a.body);
  r.status = a.status;
  r.headers = a.headers;
  return r;
}

void begin_cell_order(const server_options& gateway, cell_order o, actors::executor ex,
                      std::function<void(reply)> done) {
  const auto seen = gateway.fleet();
  auto workers = workers_for(o, seen ? seen->workers : std::vector<seen_worker>());
  if (!workers)
    return core::insist(
        [&] { boost::asio::post(ex, [done, no = error_reply(workers.error())] { done(no); }); });
  std::make_shared<cell_order_run>(gateway, std::move(o), std::move(*workers), std::move(ex), std::move(done))
      ->ask();
}

}  // namespace weir::net
