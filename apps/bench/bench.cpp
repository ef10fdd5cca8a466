#include "apps/bench/bench.h"

#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include <algorithm>
#include <array>
#include <boost/json/serialize.hpp>
#include <cmath>
#include <iostream>
#include <thread>

#include "apps/local_service.h"
#include "core/json_line.h"
#include "core/model/load.h"

namespace weir::apps {
namespace {

struct benchmark {
  const char* name;
  const char* what;
  command (*add)(CLI::App&);
};

constexpr std::array benchmarks{
    benchmark{"engine", "decode and prefill of a whole model with random weights, beside the device's limits",
              bench::add_engine},
    benchmark{"kernels", "each operation of a model alone: time, bytes a second, share of the limit",
              bench::add_kernels},
    benchmark{"serve", "the server under load, beside the same streams on its engine without sockets",
              bench::add_serve_bench},
    benchmark{"slo", "prompts beside streams: first tokens against gaps, by rows a step and with --slo",
              bench::add_slo},
    benchmark{"shares", "two models on one device: each alone, and both by their weights", bench::add_shares},
    benchmark{"sleep", "a model sleeps and wakes: times beside the link's rate, and equal tokens afterwards",
              bench::add_sleep},
};

}  // namespace

command add_bench(CLI::App& app) {
  auto list = std::make_shared<bool>(false);
  auto chosen = std::make_shared<command>();
  app.add_flag("--list", *list, "the benchmarks by name");
  app.require_subcommand(0, 1);
  for (const auto& b : benchmarks) {
    auto* sub = app.add_subcommand(b.name, b.what);
    sub->callback([chosen, run = b.add(*sub)] { *chosen = run; });
  }
  return [list, chosen]() -> int {
    if (*chosen) return (*chosen)();
    for (const auto& b : benchmarks) std::cout << fmt::format("{:10} {}\n", b.name, b.what);
    if (*list) return exit_code::done;
    std::cerr << "weir bench NAME: which of these?\n";
    return exit_code::bad_usage;
  };
}

namespace bench {

void add_options(CLI::App& app, device_options& o) {
  app.add_option("--device", o.device, "what computes")->capture_default_str();
  app.add_option("--threads", o.threads, "that compute; 0: one a core")->capture_default_str();
  app.add_flag("--deterministic", o.deterministic, "as `weir serve` has it");
  app.add_option("--activations", o.activations,
                 "what quantised weights multiply on cpu: f32 or int8, as `weir serve` has it")
      ->capture_default_str();
  app.add_flag("--json", o.json, "one JSON object instead of a table");
}

core::result<std::shared_ptr<const kernels::backend>> open(const device_options& o) {
  const auto threads = o.threads ? o.threads : std::max(1u, std::thread::hardware_concurrency());
  const auto activations = core::parse_activations(o.activations);
  if (!activations) return activations.error();
  return core::make_backend(o.device, threads, o.deterministic, *activations);
}

namespace {

std::string text_of(const boost::json::value& v) {
  if (!v.is_double()) return v.is_string() ? std::string(v.get_string()) : boost::json::serialize(v);
  const double x = v.get_double();
  return std::abs(x) >= 1000 ? fmt::format("{:.0f}", x) : fmt::format("{:.4g}", x);
}

// Prints a row of a table; its first column is `name`.
void print_row(const std::string& name, const boost::json::object& row) {
  std::cout << fmt::format("{} {:24}", name, text_of(row.begin()->value()));
  for (auto column = row.begin() + 1; column != row.end(); ++column)
    std::cout << fmt::format(" {}={:<10}", std::string_view(column->key()), text_of(column->value()));
  std::cout << '\n';
}

void print_lines(const boost::json::object& figures, const std::string& before) {
  for (const auto& [key, value] : figures) {
    const std::string name = before + std::string(key);
    if (value.is_object())
      print_lines(value.get_object(), name + ".");
    else if (value.is_array())
      for (const auto& row : value.get_array()) print_row(name, row.get_object());
    else
      std::cout << fmt::format("{:36} {}\n", name, text_of(value));
  }
}

}  // namespace

int fail(const core::error& e) {
  std::cerr << e.message << '\n';
  return exit_of(e);
}

void print(const boost::json::object& figures, bool json) {
  if (json)
    std::cout << core::json_line(figures) << '\n';
  else
    print_lines(figures, "");
}

int report(const core::result<boost::json::object>& figures, bool json) {
  if (!figures) return fail(figures.error());
  print(*figures, json);
  return exit_code::done;
}

boost::json::object figures_of(const kernels::device_state& state) {
  boost::json::object out;
  const auto add = [&](const char* name, const auto& value) {
    if (value) out[name] = *value;
  };
  if (!state.why_unknown.empty()) out["unknown"] = state.why_unknown;
  add("clock_mhz", state.clock_mhz);
  add("most_clock_mhz", state.most_clock_mhz);
  add("celsius", state.celsius);
  add("held_by_heat", state.held_by_heat);
  add("held_by_power", state.held_by_power);
  add("other_processes", state.others);
  add("other_processes_bytes", state.others_bytes);
  return out;
}

double percentile(std::span<double> samples, double share) {
  std::ranges::sort(samples);
  const auto rank = static_cast<std::size_t>(std::ceil(share * static_cast<double>(samples.size())));
  return samples[rank == 0 ? 0 : rank - 1];
}

}  // namespace bench
}  // namespace weir::apps
