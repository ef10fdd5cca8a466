// `weir models`: lists, loads, unloads and swaps the models of a running server, lets them sleep and wake,
// and sets their shares.
#include <fmt/format.h>
#include <CLI/CLI.hpp>
#include <boost/json/parse.hpp>
#include <boost/json/serialize.hpp>
#include <boost/json/value_from.hpp>

#include <algorithm>
#include <iostream>

#include "apps/commands.h"
#include "apps/http_talk.h"
#include "apps/options.h"
#include "apps/progress.h"
#include "core/schedule/shares.h"
#include "core/size_text.h"
#include "core/visible.h"

namespace weir::apps {
namespace {

namespace json = boost::json;

struct models_options {
  std::string url = "http://127.0.0.1:8080", key;
  std::string name, source, level;
  std::vector<std::string> device, out;
  std::optional<std::uint64_t> kv_tokens;
  std::optional<double> drain_s, share;
  bool json = false;
};

// ---- reading what a server says, which is foreign

const json::value* member(const json::value& v, const char* name) {
  const json::object* o = v.if_object();
  return o ? o->if_contains(name) : nullptr;
}

std::string text_of(const json::value& v, const char* name) {
  const json::value* m = member(v, name);
  return m && m->is_string() ? std::string(m->get_string()) : std::string();
}

double number_of(const json::value& v, const char* name) {
  const json::value* m = member(v, name);
  return m && m->is_number() ? m->to_number<double>() : 0;
}

json::value parsed(const std::string& body) {
  boost::system::error_code ec;
  json::value v = json::parse(body, ec);
  return ec ? json::value() : v;
}

// Prints to standard error what went wrong; returns the exit code.
int refused(const http_talk& server, const http_talk::said& a) {
  const json::value v = parsed(a.body);
  const json::value* e = member(v, "error");
  std::string why = e ? text_of(*e, "message") : std::string();
  if (a.status == 0) why = a.body;
  if (why.empty()) why = fmt::format("the server answered {}", a.status);
  std::cerr << core::visible(fmt::format("{}: {}", server.authority(), why)) << '\n';
  const bool no_room = e && text_of(*e, "code") == "does_not_fit";
  if (no_room) return exit_code::does_not_fit;
  return a.status >= 400 && a.status < 500 ? exit_code::bad_usage : exit_code::internal_error;
}

std::string bytes_of(const json::value& model) {
  const json::value* bytes = member(model, "bytes");
  if (!bytes) return "-";
  double sum = 0;
  for (const char* kind : {"weights", "pages", "workspaces", "runtime"}) sum += number_of(*bytes, kind);
  constexpr double most = 1e18;
  return core::size_text(static_cast<std::uint64_t>(std::clamp(sum, 0.0, most)));
}

std::string devices_of(const json::value& model) {
  std::string out;
  const json::value* list = member(model, "device");
  if (list && list->is_array())
    for (const auto& d : list->get_array())
      if (d.is_string()) out += (out.empty() ? "" : ",") + std::string(d.get_string());
  return out.empty() ? "-" : out;
}

std::string line_of(const json::value& model) {
  std::string state = text_of(model, "state");
  if (state == "asleep") state += " " + text_of(model, "level");
  if (state == "loading") state += fmt::format(" {:.0f} %", number_of(model, "progress") * 100);
  std::string line = fmt::format("{:<24} {:<14} {:<10} {:>10}  running {:.0f}, queued {:.0f}",
                                 text_of(model, "name"), state, devices_of(model), bytes_of(model),
                                 number_of(model, "running"), number_of(model, "queued"));
  if (const auto why = text_of(model, "reason"); !why.empty()) line += "  " + why;
  return core::visible(line);
}

// ---- an order

// Shows how far models are being loaded. The wait goes on unless the server is gone.
class onlooker {
 public:
  explicit onlooker(http_talk& server) : server_(server) {}

  bool look() {
    constexpr int most_failures = 3;
    const auto a = server_.ask("/v1/admin/models");
    if (a.status != 200) return ++failures_ < most_failures;
    failures_ = 0;
    const json::value v = parsed(a.body);
    const json::value* list = member(v, "models");
    if (list && list->is_array())
      for (const auto& m : list->get_array()) show(m);
    return true;
  }

 private:
  void show(const json::value& m) {
    const std::string state = text_of(m, "state"), name = text_of(m, "name");
    std::string line;
    if (state == "loading") line = fmt::format("loading {} {:.0f} %", name, number_of(m, "progress") * 100);
    if (state == "draining")
      line = fmt::format("{} ends its jobs: {:.0f} run, {:.0f} wait", name, number_of(m, "running"),
                         number_of(m, "queued"));
    if (line.empty() || line == last_) return;
    last_ = line;
    std::cerr << core::visible(line) << '\n';
  }

  http_talk& server_;
  int failures_ = 0;
  std::string last_;
};

int order(const models_options& o, const std::string& path, const json::object& body) {
  auto server = http_talk::to(o.url, o.key);
  if (!server) return fail(server.error().message);
  http_talk beside = *server;
  onlooker eye(beside);
  const auto a = server->ask(path, json::serialize(body), [&] { return eye.look(); });
  if (a.status < 200 || a.status > 299) return refused(*server, a);
  std::cout << (o.json ? core::visible(a.body) : line_of(parsed(a.body))) << '\n';
  return exit_code::done;
}

json::object model_of(const models_options& o) {
  json::object m{{"name", o.name}};
  if (!o.source.empty()) m["source"] = o.source;
  if (!o.device.empty()) m["device"] = json::value_from(o.device);
  if (o.kv_tokens) m["kv_tokens"] = *o.kv_tokens;
  if (o.share) m["share"] = *o.share;
  return m;
}

// A name as a part of a path.
std::string escaped(const std::string& name) {
  std::string out;
  for (const unsigned char c : name)
    out += std::isalnum(c) || c == '-' || c == '.' || c == '_' ? std::string(1, static_cast<char>(c))
                                                               : fmt::format("%{:02X}", c);
  return out;
}

int run_list(const models_options& o) {
  auto server = http_talk::to(o.url, o.key);
  if (!server) return fail(server.error().message);
  const auto a = server->ask("/v1/admin/models");
  if (a.status != 200) return refused(*server, a);
  if (o.json) {
    std::cout << core::visible(a.body) << '\n';
    return exit_code::done;
  }
  const json::value v = parsed(a.body);
  const json::value* models = member(v, "models");
  if (models && models->is_array())
    for (const auto& m : models->get_array()) std::cout << line_of(m) << '\n';
  return exit_code::done;
}

int run_load(const models_options& o) { return order(o, "/v1/admin/models", model_of(o)); }

int run_unload(const models_options& o) {
  json::object body{{"action", "unload"}};
  if (o.drain_s) body["drain_s"] = *o.drain_s;
  return order(o, "/v1/admin/models/" + escaped(o.name), body);
}

int run_sleep(const models_options& o) {
  json::object body{{"action", "sleep"}};
  if (!o.level.empty()) body["level"] = o.level;
  if (o.drain_s) body["drain_s"] = *o.drain_s;
  return order(o, "/v1/admin/models/" + escaped(o.name), body);
}

int run_wake(const models_options& o) {
  return order(o, "/v1/admin/models/" + escaped(o.name), json::object{{"action", "wake"}});
}

int run_share(const models_options& o) {
  const json::object body{{"share", *o.share}};
  return order(o, "/v1/admin/models/" + escaped(o.name), body);
}

int run_swap(const models_options& o) {
  json::object body{{"out", json::value_from(o.out)}, {"in", model_of(o)}};
  if (o.drain_s) body["drain_s"] = *o.drain_s;
  return order(o, "/v1/admin/swap", body);
}

// ---- options

void add_server(CLI::App& app, models_options& o) {
  app.add_option("--url", o.url, "the server")->capture_default_str();
  app.add_option("--api-key", o.key, "key of an admin, sent as a bearer");
  app.add_flag("--json", o.json, "print what the server says");
}

void add_model(CLI::App& app, models_options& o) {
  app.add_option("name", o.name, "what clients call the model")->required();
  app.add_option("--source", o.source,
                 "a name below the server's --models-dir, a model that it knows, or a path; none: where the "
                 "model of that name is");
  app.add_option("--device", o.device, "a place on each of these; none: the one with the fewest models")
      ->delimiter(',');
  app.add_option("--kv-tokens", o.kv_tokens, "KV memory, in tokens");
  app.add_option("--share", o.share, "weight among the models of a device; none: the one that it had, or 1")
      ->check(CLI::Range(core::least_weight, core::most_weight));
}

void add_drain(CLI::App& app, models_options& o) {
  app.add_option("--drain-s", o.drain_s, "how long running jobs may go on")->check(CLI::Range(0.0, 86400.0));
}

}  // namespace

command add_models(CLI::App& app) {
  auto o = std::make_shared<models_options>();
  auto chosen = std::make_shared<int (*)(const models_options&)>(nullptr);
  app.require_subcommand(1);
  const auto add = [&](const char* name, const char* what, int (*run)(const models_options&)) {
    auto* sub = app.add_subcommand(name, what);
    add_server(*sub, *o);
    sub->callback([chosen, run] { *chosen = run; });
    return sub;
  };
  add("list", "every model that the server knows, a line each", run_list);
  add_model(*add("load", "load a model, and wait until it is ready", run_load), *o);
  auto* away = add("unload", "unload a model once its jobs have ended", run_unload);
  away->add_option("name", o->name, "the model")->required();
  add_drain(*away, *o);
  auto* nap = add("sleep", "put a model to sleep once its jobs have ended", run_sleep);
  nap->add_option("name", o->name, "the model")->required();
  nap->add_option(
         "--level", o->level,
         "host: its weights stay in host memory; disk: no memory is taken; none: host where it has room")
      ->check(CLI::IsMember({"host", "disk"}));
  add_drain(*nap, *o);
  auto* again = add("wake", "wake a model that sleeps", run_wake);
  again->add_option("name", o->name, "the model")->required();
  auto* part = add("share", "set the weight of a model among those of its device", run_share);
  part->add_option("name", o->name, "the model")->required();
  part->add_option("weight", o->share, "its weight; 1 is usual")
      ->required()
      ->check(CLI::Range(core::least_weight, core::most_weight));
  auto* other = add("swap", "load a model in the place of others", run_swap);
  add_model(*other, *o);
  other->add_option("--out", o->out, "the models that go")->required()->delimiter(',');
  add_drain(*other, *o);
  for (auto* sub : app.get_subcommands({})) name_variables(*sub);
  add_common(app);
  return [o, chosen] { return (*chosen)(*o); };
}

}  // namespace weir::apps
