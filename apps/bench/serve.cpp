// `weir bench serve`: measures a server under the streams of `weir load`, and the same streams on the same
// engine without sockets. The difference is the cost of serving. The engine runs first, in this process. The
// server is a child process, and the load comes over loopback.
#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include <optional>
#include <sstream>
#include <thread>

#include "actors/gpu_owner.h"
#include "actors/open_model.h"
#include "apps/bench/bench.h"
#include "apps/bench/child.h"
#include "apps/bench/closed_loop.h"
#include "apps/engine_options.h"
#include "apps/options.h"
#include "apps/progress.h"
#include "net/load/options.h"

namespace weir::apps::bench {
namespace {

struct serve_options {
  core::engine_settings engine;
  loop_options loop;
  std::vector<std::uint32_t> streams{1, 64};
  std::uint32_t io_threads = 2;
  bool json = false;
};

constexpr std::uint32_t queue = 1024;

boost::json::object figures_of(double tokens_per_s, const load::histogram& gaps,
                               const load::histogram& first) {
  const double p50 = gaps.quantile(0.5), p99 = gaps.quantile(0.99);
  return {{"tokens_per_s", tokens_per_s},
          {"gap_p50_ms", p50},
          {"gap_p99_ms", p99},
          {"gap_p99_over_p50", p50 > 0 ? p99 / p50 : 0},
          {"first_p50_ms", first.quantile(0.5)},
          {"first_p99_ms", first.quantile(0.99)}};
}

// Measures an engine with the server's settings: one closed loop for each number of streams.
core::result<std::vector<boost::json::object>> on_engine(const serve_options& o) {
  std::string why_cpu;
  auto service = service_options_of(o.engine, core::queue_of(queue), why_cpu);
  if (!service) return service.error();
  show_device(why_cpu);
  std::shared_ptr<const kernels::backend> backend;
  if (service->owner.device != "sim") {
    auto made = core::make_backend(service->owner.device, service->owner.threads,
                                   service->owner.deterministic, service->owner.activations);
    if (!made) return made.error();
    backend = std::move(*made);
  }
  const auto spend = [](core::duration d) { std::this_thread::sleep_for(d); };
  auto opened = actors::open_model(service->models.front(), service->owner, backend, {}, spend);
  if (!opened) return opened.error();
  const auto& model = *opened;
  core::system_clock time;
  core::engine e(std::move(model->weights), core::token_table(*model->served->tokenizer), model->config,
                 time);
  std::vector<boost::json::object> out;
  for (const auto streams : o.streams) {
    loop_options l = o.loop;
    l.streams = streams;
    const auto f = run_closed_loop(e, *model->served->tokenizer, time, l);
    if (f.failed)
      return core::make_error(core::errc::internal, "a job failed; the figures would mean nothing");
    out.push_back(figures_of(f.tokens_per_s, f.gaps_ms, f.first_ms));
    out.back()["steps"] = f.steps;
  }
  return out;
}

// The command-line arguments for settings.
std::vector<std::string> arguments_of(core::engine_settings s) {
  std::vector<std::string> out;
  core::visit_settings(s, [&](const core::setting& what, const auto& value) {
    const std::string name = std::string("--") + what.name;
    if constexpr (std::is_same_v<std::decay_t<decltype(value)>, bool>) {
      if (value) out.push_back(name);
    } else if constexpr (std::is_same_v<std::decay_t<decltype(value)>, std::vector<std::string>>) {
      for (const auto& v : value) out.insert(out.end(), {name, v});
    } else if constexpr (std::is_same_v<std::decay_t<decltype(value)>, std::string>) {
      out.insert(out.end(), {name, value});
    } else {
      out.insert(out.end(), {name, core::text_of(what, core::number_of(what, value))});
    }
  });
  return out;
}

struct running_server {
  child process;
  std::string address;  // HOST:PORT
};

core::result<running_server> start_server(const serve_options& o) {
  std::vector<std::string> arguments{"serve", "--listen", "127.0.0.1:0", "--queue", fmt::format("{}", queue),
                                     "--max-jobs", "1024", "--io-threads", fmt::format("{}", o.io_threads)};
  for (auto& a : arguments_of(o.engine)) arguments.push_back(std::move(a));
  auto process = child::start(arguments);
  if (!process) return process.error();
  constexpr std::string_view ready = "weir ready http://";
  const std::string line = process->line_that_begins(ready);
  if (line.empty()) return core::make_error(core::errc::unavailable, "the server did not start");
  const auto end = line.find(' ', ready.size());
  return running_server{std::move(*process), line.substr(ready.size(), end - ready.size())};
}

core::result<child> start_prompts_beside(const loop_options& l, const std::string& address) {
  return child::start({"load", "--url", "ws://" + address, "--rate", fmt::format("{}", l.beside_per_s),
                       "--arrivals", "constant", "--prompt-tokens", fmt::format("{}", l.beside_tokens),
                       "--max-tokens", "1", "--duration", fmt::format("{}", l.warmup_s + l.duration_s),
                       "--seed", fmt::format("{}", l.streams + other_prompts), "--threads", "1"});
}

core::result<boost::json::object> on_server(const serve_options& o, const std::string& address,
                                            std::uint32_t streams) {
  load::typed_options typed;
  typed.url = "ws://" + address;
  typed.streams = streams;
  typed.duration = o.loop.duration_s;
  typed.warmup = o.loop.warmup_s;
  typed.extra = R"({"ignore_eos":true,"temperature":0})";
  auto plan = load::resolve(typed);
  if (!plan) return plan.error();
  loop_options l = o.loop;
  l.streams = streams;
  plan->run.ask = questions_of(l);
  auto at = load::place::find(plan->run.how, plan->run.insecure);
  if (!at) return at.error();
  std::optional<child> beside;
  if (o.loop.beside_per_s > 0) {
    auto started = start_prompts_beside(l, address);
    if (!started) return started.error();
    beside.emplace(std::move(*started));
  }
  const load::report r = load::run(plan->run, **at, {}, [] { return false; });
  using load::figure;
  auto out = figures_of(r.all.number(figure::output_throughput), r.all.of(figure::itl_ms),
                        r.all.of(figure::ttft_ms));
  out["sampled_to_sent_p99_ms"] = r.all.number(figure::server_sent_p99_ms);
  out["lost"] = r.all.number(figure::gaps) + r.all.number(figure::repeats) + r.all.number(figure::errors);
  if (!r.bottleneck.empty()) out["harness_was_the_bottleneck"] = r.bottleneck;
  return out;
}

core::result<boost::json::object> measure(const serve_options& o) {
  auto engine = on_engine(o);
  if (!engine) return engine.error();
  auto server = start_server(o);
  if (!server) return server.error();
  boost::json::array rows;
  for (std::size_t i = 0; i < o.streams.size(); ++i) {
    auto served = on_server(o, server->address, o.streams[i]);
    if (!served) return served.error();
    const double ratio = served->at("tokens_per_s").as_double() / (*engine)[i].at("tokens_per_s").as_double();
    boost::json::object alone{{"streams", o.streams[i]}, {"of", "engine"}},
        over{{"streams", o.streams[i]}, {"of", "server"}};
    for (auto& [name, value] : (*engine)[i]) alone[name] = value;
    for (auto& [name, value] : *served) over[name] = value;
    over["server_over_engine"] = ratio;
    rows.push_back(std::move(alone));
    rows.push_back(std::move(over));
  }
  return boost::json::object{{"benchmark", "serve"}, {"device", o.engine.device}, {"rows", std::move(rows)}};
}

int run(const serve_options& o) { return report(measure(o), o.json); }

}  // namespace

command add_serve_bench(CLI::App& app) {
  auto o = std::make_shared<serve_options>();
  add_settings(app, o->engine);
  app.add_option("--streams", o->streams,
                 "closed loops, one after the other: so many streams, each asking again once answered")
      ->delimiter(',')
      ->capture_default_str()
      ->check(CLI::Range(1, 4096));
  app.add_option("--prompt-tokens", o->loop.prompt_tokens, "of each question; no two are alike")
      ->capture_default_str()
      ->check(CLI::Range(1, 1 << 20));
  app.add_option("--max-tokens", o->loop.max_tokens, "of each answer")
      ->capture_default_str()
      ->check(CLI::Range(1, 1 << 20));
  app.add_option("--beside-rate", o->loop.beside_per_s, "long prompts a second beside the streams")
      ->capture_default_str()
      ->check(CLI::Range(0.0, 1e4));
  app.add_option("--beside-tokens", o->loop.beside_tokens, "of each of those")
      ->capture_default_str()
      ->check(CLI::Range(1, 1 << 20));
  app.add_option("--warmup", o->loop.warmup_s, "time that is not measured, in s")
      ->capture_default_str()
      ->check(CLI::Range(0.0, 3600.0));
  app.add_option("--duration", o->loop.duration_s, "measured time of each loop, in s")
      ->capture_default_str()
      ->check(CLI::Range(0.1, 3600.0));
  app.add_option("--io-threads", o->io_threads, "threads of the server that serve sockets")
      ->capture_default_str()
      ->check(CLI::Range(1, 256));
  app.add_flag("--json", o->json, "one JSON object instead of a table");
  return [o] { return run(*o); };
}

}  // namespace weir::apps::bench
