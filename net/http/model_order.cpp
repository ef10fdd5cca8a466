#include "net/http/model_order.h"

#include <algorithm>

#include "actors/models_dir.h"
#include "core/model/load/model_path.h"
#include "net/protocol/json.h"
#include "net/protocol/model_objects.h"
#include "net/protocol/model_orders.h"

namespace weir::net {
namespace {

using actors::model_status;
using core::errc;
using order_kind = model_order::kind;

actors::load_order in_of(orders::load l) {
  actors::load_order out;
  out.spec.name = std::move(l.name);
  out.spec.source = std::move(l.source);
  out.devices = std::move(l.devices);
  out.kv_tokens = l.kv_tokens;
  out.spec.share = l.share;
  out.spec.limits = l.limits;
  return out;
}

model_order load_of(orders::load l, order_kind is) {
  model_order o;
  o.is = is;
  o.wait = l.wait;
  o.adds = true;
  o.in = in_of(std::move(l));
  return o;
}

model_order change_of(std::string name, const orders::change& c) {
  model_order o;
  o.wait = c.wait;
  using kind = orders::change::kind;
  if (c.is == kind::terms) {
    o.is = order_kind::terms;
    o.terms = {std::move(name), c.share, c.pinned};
    return o;
  }
  if (c.is == kind::load) {
    o.in.spec.name = std::move(name);
    o.in.spec.share = c.share;
    o.in.spec.limits = c.limits;
    return o;
  }
  if (c.is == kind::sleep || c.is == kind::wake) {
    o.is = c.is == kind::sleep ? order_kind::sleep : order_kind::wake;
    o.sleep = {std::move(name), c.level, c.drain};
    return o;
  }
  o.is = order_kind::unload;
  o.away.name = std::move(name);
  o.away.drain = c.drain;
  return o;
}

model_order swap_of(orders::swap s) {
  model_order o;
  o.is = order_kind::swap;
  o.wait = s.in.wait;
  o.out = std::move(s.out);
  o.away.drain = s.drain;
  o.in = in_of(std::move(s.in));
  return o;
}

core::result<model_order> removal_of(std::string name, std::string_view body) {
  if (!body.empty()) return core::make_error(errc::invalid_param, "a DELETE of a model has no body");
  model_order o;
  o.is = order_kind::unload;
  o.away.name = std::move(name);
  o.away.forget = true;
  return o;
}

core::result<model_order> routed_of(std::string name, bool unload) {
  orders::change c;
  c.is = unload ? orders::change::kind::unload : orders::change::kind::load;
  c.wait = false;
  model_order o = change_of(std::move(name), c);
  o.router = true;
  return o;
}

const model_status* known_model(const source_rules& rules, const std::string& name) {
  const auto at = std::ranges::find(rules.known, name, &model_status::name);
  return at == rules.known.end() ? nullptr : &*at;
}

// Whether an order names a model to be loaded, from wherever.
bool brings_a_model(const model_order& o) {
  return o.is == order_kind::load || o.is == order_kind::swap || o.is == order_kind::plan;
}

bool needs_no_files(const std::string& source) {
  const bool sim = source == "sim" || source.starts_with("sim:");
  return source.starts_with("random:") || (sim && source.find("script=") == source.npos);
}

// A known model whose name or source the order's source is; null: none.
const model_status* named_by(const source_rules& rules, const std::string& source) {
  if (const auto* m = known_model(rules, source)) return m;
  const auto at = std::ranges::find(rules.known, source, &model_status::source);
  return at == rules.known.end() ? nullptr : &*at;
}

reply no_model(const std::string& name) {
  return error_reply(404, "model_not_found",
                     fmt::format("no model is called '{}', and the order names no source", shortened(name)),
                     "name");
}

reply forbidden_source(const source_rules& rules) {
  return error_reply(
      403, "source_forbidden",
      fmt::format("source has to be a name below --models-dir{}, a model that the server knows, random:SHAPE "
                  "or sim; any other path needs an admin's key",
                  rules.models_dir.empty() ? " (there is none)" : ""),
      "source");
}

reply bad_source(std::string_view message) { return error_reply(422, "bad_file", message, "source"); }

std::string_view order_code_of(errc code) {
  switch (code) {
    case errc::invalid_param:
      return "invalid_param";
    case errc::not_supported:
      return "not_supported";
    case errc::bad_file:
      return "bad_file";
    case errc::does_not_fit:
      return "does_not_fit";
    case errc::model_not_found:
    case errc::not_found:
      return "model_not_found";
    case errc::busy:
      return "busy";
    case errc::already_there:
      return "already_there";
    case errc::overloaded:
    case errc::unavailable:
      return "unavailable";
    case errc::prompt_too_long:
    case errc::internal:
    case errc::adopted:
    case errc::handed_over:
    case errc::class_changed:
      break;
  }
  return "internal";
}

// What is wrong with a model's files is the order's fault, and not that of its form.
unsigned order_status_of(errc code) {
  if (code == errc::bad_file || code == errc::does_not_fit || code == errc::not_supported) return 422;
  if (code == errc::overloaded) return 503;
  return status_of(code);
}

// Fields are called as in the bodies, and not as on the command line.
std::string field_of(std::string param) {
  std::ranges::replace(param, '-', '_');
  return param == "model" ? "source" : param;
}

reply carried_out(const model_order& o, const model_status& m, bool begun) {
  if (o.router) return json_reply(R"({"success":true})");
  std::string out;
  append_model(out, m);
  reply r = json_reply(std::move(out));
  if (begun) r.status = 202;
  if (!begun && o.adds) r.status = 201;
  return r;
}

// The answer of an order that waits is what `done` says, unless the order is not begun at all.
actors::order_replies replies_to(const model_order& o, const std::function<void(reply)>& done) {
  using answer = actors::order_replies::answer;
  const auto said = [done, how = o](bool begun) {
    return [done, how, begun](answer a) { done(a ? carried_out(how, *a, begun) : failed_order(a.error())); };
  };
  actors::order_replies to;
  if (!o.wait) {
    to.begun = said(true);
    return to;
  }
  to.begun = [done](answer a) {
    if (!a) done(failed_order(a.error()));
  };
  to.done = said(false);
  return to;
}

}  // namespace

core::result<model_order> read_order(const route_match& route, std::string_view body,
                                     std::size_t most_values) {
  const auto read_load = [&](order_kind is) -> core::result<model_order> {
    auto l = orders::parse_load(body, most_values);
    if (!l) return l.error();
    return load_of(std::move(*l), is);
  };
  if (route.to == endpoint::add_model) return read_load(order_kind::load);
  if (route.to == endpoint::plan_model) return read_load(order_kind::plan);
  if (route.to == endpoint::remove_model) return removal_of(route.id, body);
  if (route.to == endpoint::change_model) {
    auto c = orders::parse_change(body, most_values);
    if (!c) return c.error();
    return change_of(route.id, *c);
  }
  if (route.to == endpoint::swap_models) {
    auto s = orders::parse_swap(body, most_values);
    if (!s) return s.error();
    return swap_of(std::move(*s));
  }
  auto name = orders::parse_named(body, most_values);
  if (!name) return name.error();
  return routed_of(std::move(*name), route.to == endpoint::unload_model);
}

bool reads_files(const model_order& o, const source_rules& rules) {
  if (!brings_a_model(o)) return false;
  const std::string& name = o.in.spec.name;
  const std::string& source = o.in.spec.source;
  if (source.empty()) return !known_model(rules, name) && !rules.models_dir.empty();
  return !needs_no_files(source) && !named_by(rules, source);
}

std::optional<reply> settle_source(model_order& o, const source_rules& rules) {
  if (!brings_a_model(o)) return std::nullopt;
  std::string& source = o.in.spec.source;
  const std::string& name = o.in.spec.name;
  const auto in_dir = [&](const std::string& of) -> core::result<std::string> {
    if (rules.models_dir.empty()) return core::make_error(errc::bad_file, "there is no --models-dir");
    return actors::model_in_dir(rules.models_dir, of);
  };
  if (source.empty()) {
    if (const auto* m = known_model(rules, name)) {
      if (o.router && m->state == actors::model_state::asleep) {
        o.is = order_kind::wake;
        o.sleep.name = name;
      }
      return std::nullopt;
    }
    auto path = in_dir(name);
    if (!path) return no_model(name);
    source = std::move(*path);
    return std::nullopt;
  }
  if (needs_no_files(source)) return std::nullopt;
  if (const auto* m = named_by(rules, source)) {
    source = m->source;
    return std::nullopt;
  }
  auto path = in_dir(source);
  if (path) {
    source = std::move(*path);
    return std::nullopt;
  }
  if (!rules.any_path) {
    const bool may_be_there = !rules.models_dir.empty() && actors::is_name_in_dir(source);
    return may_be_there ? bad_source(path.error().message) : forbidden_source(rules);
  }
  if (const auto there = core::check_model_path(source); !there) return bad_source(there.error().message);
  return std::nullopt;
}

void begin_order(actors::service& s, model_order o, const actors::executor& shard,
                 std::function<void(reply)> done) {
  if (o.is == order_kind::plan) {
    auto said = [done = std::move(done)](boost::system::result<std::string, actors::order_error> plan) {
      done(plan ? json_reply(std::move(*plan)) : failed_order(plan.error()));
    };
    return s.plan_model(std::move(o.in), std::move(o.out), shard, std::move(said));
  }
  auto to = replies_to(o, done);
  if (o.is == order_kind::load) return s.load_model(std::move(o.in), shard, std::move(to));
  if (o.is == order_kind::terms) return s.set_terms(std::move(o.terms), shard, std::move(to));
  if (o.is == order_kind::sleep) return s.sleep_model(std::move(o.sleep), shard, std::move(to));
  if (o.is == order_kind::wake) return s.wake_model({std::move(o.sleep.name)}, shard, std::move(to));
  if (o.is == order_kind::unload) return s.unload_model(std::move(o.away), shard, std::move(to));
  actors::swap_order all{std::move(o.out), std::move(o.in), o.away.drain};
  s.swap_models(std::move(all), shard, std::move(to));
}

reply refused_order(const core::error& e) {
  if (e.code == errc::not_supported) return error_reply(400, "not_supported", e.message, e.param);
  return error_reply(e);
}

reply failed_order(const actors::order_error& e) {
  core::error f = e.fault;
  constexpr std::string_view option = "--model ";
  if (f.code == errc::invalid_param && f.param == "model") {  // the path of a command line is a source here
    f.code = errc::bad_file;
    if (f.message.starts_with(option)) f.message.erase(0, option.size());
  }
  reply r = error_reply(order_status_of(f.code), order_code_of(f.code), f.message, field_of(f.param));
  if (f.retry_after_ms > 0)
    for (auto& [name, value] : r.headers)
      if (name == "Retry-After") value = std::to_string((f.retry_after_ms + 999) / 1000);
  if (e.plan.empty()) return r;
  constexpr std::size_t ends = 2;  // of the error and of the object around it
  r.body.resize(r.body.size() - ends);
  ((r.body += ",\"plan\":") += e.plan) += "}}";
  return r;
}

}  // namespace weir::net
