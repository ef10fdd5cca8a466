// main.cpp — bench_fleet: a simulated fleet under published traces, one policy of choosing a device after the
// other. docs/fleet.md, «The simulation», has the figures and what is left out.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <chrono>
#include <cstdio>

#include "tests/bench/fleet/cell.h"

namespace weir::bench::fleet {

namespace {

struct options {
  std::vector<std::string> traces,
      policies{"weir", "random", "round-robin", "least-loaded", "sglang", "oracle"};
  std::uint32_t cells = 8, devices = 1000, gateways = 100, batch = 64, pages = h200_pages;
  double minutes = 60, warm_up = 10, load = 0.7;
  std::uint64_t seed = 1;
  bool json = false;
};

void define(CLI::App& app, options& o) {
  app.add_option("--trace", o.traces, "files of traces: Mooncake's .jsonl, Azure's .csv")->required();
  app.add_option("--policy", o.policies, std::string(policy_names))->delimiter(',');
  app.add_option("--cells", o.cells, "cells, which know nothing of each other")->check(CLI::Range(1, 1000));
  app.add_option("--devices", o.devices, "of all cells together")->check(CLI::Range(1, 128'000));
  app.add_option("--gateways", o.gateways, "of all cells together")->check(CLI::Range(1, 100'000));
  app.add_option("--batch", o.batch, "sequences that run at once on a device")->check(CLI::Range(1, 8192));
  app.add_option("--pages", o.pages, "of KV memory, 64 tokens each, of a device")
      ->check(CLI::Range(64, 1 << 20));
  app.add_option("--minutes", o.minutes, "of the fleet's time, the warm-up among them");
  app.add_option("--warm-up", o.warm_up, "minutes whose requests are not counted");
  app.add_option("--load", o.load, "requests, as a share of what the devices answer without caches");
  app.add_option("--seed", o.seed, "of everything that is drawn");
  app.add_flag("--json", o.json, "a line of JSON for each policy in place of the tables");
}

// The i-th cell's part of `all`.
std::uint32_t part(std::uint32_t all, std::uint32_t cells, std::uint32_t i) {
  return all / cells + (i < all % cells ? 1 : 0);
}

core::result<figures> live(const trace& t, const options& o, const std::string& policy, double capacity) {
  figures all;
  for (std::uint32_t i = 0; i < o.cells; ++i) {
    cell_settings s;
    s.devices = part(o.devices, o.cells, i);
    s.gateways = std::max(1u, part(o.gateways, o.cells, i));
    s.each = {o.pages, o.batch};
    s.policy = policy;
    s.requests_per_s = o.load * capacity * s.devices;
    s.seconds = 60 * o.minutes;
    s.warm_up_s = 60 * o.warm_up;
    s.seed = o.seed * 1000 + i;
    auto one = cell::live(t, s);
    if (!one) return one.error();
    add(all, *one);
  }
  return all;
}

void show(const options& o, const trace& t, const std::string& policy, double capacity, double took,
          figures& f) {
  if (!o.json) {
    std::fputs(table_line(policy, f).c_str(), stdout);
  } else {
    auto all = json_of(f);
    all["trace"] = t.name;
    all["policy"] = policy;
    all["cells"] = o.cells;
    all["devices"] = o.devices;
    all["gateways"] = o.gateways;
    all["minutes"] = o.minutes;
    all["load"] = o.load;
    all["seed"] = o.seed;
    all["capacity_requests_per_s"] = capacity;
    all["took_s"] = took;
    std::fprintf(stdout, "%s\n", boost::json::serialize(all).c_str());
  }
  std::fflush(stdout);
}

core::result<void> run(const options& o) {
  for (const auto& path : o.traces) {
    auto t = read_trace(path);
    if (!t) return t.error();
    const double capacity = capacity_of(*t, {o.pages, o.batch});
    if (!o.json)
      std::fputs(
          fmt::format("\n{}: {} requests in {:.0f} s, {:.1f} % of the prompt tokens are repeated; a "
                      "device answers {:.2f} a second without a cache\n\n{}",
                      t->name, t->requests.size(), t->length_s, 100 * t->repeated(), capacity, table_head())
              .c_str(),
          stdout);
    for (const auto& policy : o.policies) {
      const auto began = std::chrono::steady_clock::now();
      auto f = live(*t, o, policy, capacity);
      if (!f) return f.error();
      const std::chrono::duration<double> took = std::chrono::steady_clock::now() - began;
      show(o, *t, policy, capacity, took.count(), *f);
      std::fputs(fmt::format("{} {}: {:.0f} s\n", t->name, policy, took.count()).c_str(), stderr);
    }
  }
  return {};
}

}  // namespace
}  // namespace weir::bench::fleet

int main(int argc, char** argv) {
  weir::bench::fleet::options o;
  CLI::App app(
      "A simulated fleet: which rule of choosing a device finds most of the prompts in caches, and "
      "how soon first tokens come.");
  weir::bench::fleet::define(app, o);
  CLI11_PARSE(app, argc, argv);
  if (o.cells > o.devices) return std::fputs("bench_fleet: --cells: more cells than devices\n", stderr), 2;
  if (!(o.minutes > o.warm_up && o.warm_up >= 0 && o.load > 0))
    return std::fputs("bench_fleet: --minutes has to be more than --warm-up, and --load more than 0\n",
                      stderr),
           2;
  if (auto ok = weir::bench::fleet::run(o); !ok)
    return std::fprintf(stderr, "bench_fleet: %s\n", ok.error().message.c_str()), 2;
}
