#include <CLI/CLI.hpp>
#include <csignal>
#include <fstream>
#include <iostream>

#include "apps/commands.h"
#include "apps/options.h"
#include "core/json_line.h"
#include "core/visible.h"
#include "net/load/compare.h"
#include "net/load/options.h"
#include "net/load/page.h"

namespace weir::apps {
namespace {

volatile std::sig_atomic_t interrupts = 0;

// The first Ctrl-C ends the run, and its report is printed. The second one ends the program.
void listen_for_interrupts() {
  std::signal(SIGINT, [](int) {
    if (interrupts > 0) std::_Exit(exit_code::interrupted);
    interrupts = 1;
  });
}

void show(const load::progress& p) {
  std::cerr << fmt::format("{:5.0f} s  {} streams  {:.0f} tok/s  gap p99 {:.1f} ms  {} errors\n", p.at_s,
                           p.streams, p.tokens_per_s, p.gap_p99_ms, p.errors);
}

bool write(const std::string& file, const std::string& text) {
  if (file.empty()) return true;
  std::ofstream out(file, std::ios::binary);
  out << text << std::flush;
  if (!out) std::cerr << file << ": cannot be written\n";
  return out.good();
}

bool interrupted() { return interrupts > 0; }

// Says on stderr why nothing was measured; returns the exit code.
int nothing_completed(const std::string& why) {
  std::cerr << core::visible(why) << '\n';
  return exit_code::internal_error;
}

// Runs against one server; returns the exit code.
int run_one(const load::typed_options& o, const load::plan& plan, load::place& at) {
  load::report r = load::run(plan.run, at, show, interrupted);
  r.judge(plan.conditions);
  std::cout << core::visible(load::as_text(r));
  const bool written =
      write(o.json, core::json_line(load::as_json(r)) + "\n") && write(o.html, load::as_page(r));
  if (!written) return exit_code::internal_error;
  if (r.interrupted) return exit_code::interrupted;
  if (const auto why = load::failure_of(r); !why.empty()) return nothing_completed(why);
  return plan.conditions.empty() || r.good() ? exit_code::done : exit_code::condition_broken;
}

// Compares two servers in alternating windows; returns the exit code.
int run_two(const load::typed_options& o, load::plan& plan, load::place& at, load::place& other) {
  const auto pairs = std::max<std::size_t>(2, static_cast<std::size_t>(plan.run.duration_s / plan.window_s));
  std::size_t windows = 0;
  const auto measure = [&](bool second) {
    load::run_options window = second ? *plan.vs : plan.run;
    window.duration_s = plan.window_s;
    window.seed += windows / 2;  // both servers of a pair get the same requests
    ++windows;
    std::cerr << fmt::format("window {} of {}: {}\n", windows, 2 * pairs, window.url);
    return load::run(window, second ? other : at, {}, interrupted);
  };
  const auto r = load::compare(pairs, measure, interrupted);
  std::cout << core::visible(load::as_text(r));
  if (!write(o.json, core::json_line(load::as_json(r)) + "\n")) return exit_code::internal_error;
  if (r.interrupted) return exit_code::interrupted;
  return r.failure.empty() ? exit_code::done : nothing_completed(r.failure);
}

int run(const load::typed_options& o) {
  auto plan = load::resolve(o);
  if (!plan) return fail(plan.error().message);
  auto at = load::place::find(plan->run.how, plan->run.insecure);
  if (!at) return fail(at.error().message);
  listen_for_interrupts();
  if (!plan->vs) return run_one(o, *plan, **at);
  auto other = load::place::find(plan->vs->how, plan->vs->insecure);
  if (!other) return fail(other.error().message);
  return run_two(o, *plan, **at, **other);
}

}  // namespace

command add_load(CLI::App& app) {
  auto o = std::make_shared<load::typed_options>();
  app.add_option("--url", o->url,
                 "ws:// or wss:// for weir.v1, http:// or https:// for OpenAI's streams; URL,URL: clients "
                 "take turns")
      ->required();
  app.add_option("--protocol", o->protocol, "weir or openai, where the URL's scheme does not say")
      ->type_name("NAME");
  app.add_option("--model", o->model, "which model to ask for");
  app.add_option("--api-key", o->api_key, "sent as a bearer");
  app.add_option("--prompts", o->prompts, "a prompt a line, asked round-robin; none: made of short words")
      ->type_name("FILE");
  app.add_option("--distinct", o->distinct,
                 "so many different made prompts, so that answers can be compared; 0: all differ");
  app.add_option("--extra", o->extra, "fields that go into every request, as {\"ignore_eos\":true}")
      ->type_name("JSON");
  app.add_option("--streams", o->streams, "closed loop: so many streams, each asking again once answered")
      ->check(CLI::Range(0, 60000));
  app.add_option("--rate", o->rate, "open loop: requests a second, whatever the server does")
      ->check(CLI::Range(0.0, 1e6));
  app.add_option("--arrivals", o->arrivals,
                 "of an open loop: poisson, constant, or gamma:B (B < 1 comes in bursts)")
      ->capture_default_str();
  app.add_option("--trace", o->trace, "requests of a file: t,in,out, or an Azure, BurstGPT or Mooncake trace")
      ->type_name("FILE");
  app.add_option("--prompt-tokens", o->prompt_tokens, "length of made prompts: N or LOW-HIGH")
      ->capture_default_str();
  app.add_option("--max-tokens", o->max_tokens, "length of answers: N or LOW-HIGH")->capture_default_str();
  app.add_option("--duration", o->duration, "measured time, in s")
      ->check(CLI::Range(0.1, 86400.0))
      ->capture_default_str();
  app.add_option("--warmup", o->warmup,
                 "time before it that is not measured, in s; as long as the ramp where not given")
      ->check(CLI::Range(0.0, 86400.0));
  app.add_option("--ramp", o->ramp, "the load rises over so many s")->check(CLI::Range(0.0, 86400.0));
  app.add_option("--drain", o->drain, "how long an open loop waits for its last answers, in s")
      ->check(CLI::Range(0.0, 86400.0))
      ->capture_default_str();
  app.add_option("--timeout-s", o->timeout,
                 "a stream whose server sends nothing for so many s has failed; 0 = none has")
      ->check(CLI::Range(0.0, 86400.0))
      ->capture_default_str();
  app.add_option("--slow-readers", o->slow_readers, "share of the connections that read slowly")
      ->type_name("P%");
  app.add_option("--read-rate", o->read_rate, "how fast they read, in bytes/s; 0: they stop")
      ->check(CLI::Range(0.0, 1e9));
  app.add_option("--disconnect", o->disconnect,
                 "weir.v1: chance of each running stream, a second, to lose its socket")
      ->type_name("P%/s");
  app.add_flag("--resume", o->resume,
               "streams that lost their socket connect again and go on; each seq is checked");
  app.add_option("--follow", o->follow,
                 "weir.v1: so many further readers of each answer, on sockets of their own")
      ->check(CLI::Range(0, 64));
  app.add_option("--pace", o->pace,
                 "weir.v1: who evens out the tokens' times: live (the client) or even (the server)")
      ->type_name("NAME");
  app.add_option("--window", o->window,
                 "weir.v1: most tokens that the server may send unacknowledged; 0: no window")
      ->check(CLI::Range(0, 1'000'000));
  app.add_option("--on-lag", o->on_lag, "what a job does whose window is used up: buffer or pause")
      ->type_name("NAME");
  app.add_option("--cancel", o->cancel, "share of the requests that are cancelled at a random token")
      ->type_name("P%");
  app.add_option("--slo", o->slo, "what a good request keeps: ttft=200ms,tpot=50ms,e2el=5s");
  app.add_option("--assert", o->conditions,
                 "what the run has to keep, as added_jitter_p99<5ms; repeatable; else exit 4")
      ->allow_extra_args(false);
  app.add_option("--json", o->json, "the whole report")->type_name("FILE");
  app.add_option("--html", o->html, "one page with curves and every token of some streams, to be looked at")
      ->type_name("FILE");
  app.add_option("--vs", o->vs, "another server: measured in alternating windows; prints ratios of figures")
      ->type_name("URL");
  app.add_option("--vs-window", o->vs_window, "length of such a window, in s")
      ->check(CLI::Range(0.5, 600.0))
      ->capture_default_str();
  app.add_option("--threads", o->threads, "threads of this harness; 0: half of the cores, at most 4")
      ->check(CLI::Range(0, 64));
  app.add_option("--seed", o->seed, "of prompts, lengths and times")->capture_default_str();
  app.add_flag("--insecure", o->insecure, "take any certificate");
  name_variables(app);
  add_common(app);
  return [o] { return run(*o); };
}

}  // namespace weir::apps
