// bench.h — the benchmarks of `weir bench`, and what they have in common. Each add_… function adds the
// options of one benchmark to an app, and returns the function that runs the benchmark.
//
// A benchmark prints figures to standard output, as a table or, with --json, as one object. Beside the
// figures are the limits of the machine, measured in the same run.
#pragma once

#include <boost/json/object.hpp>
#include <chrono>
#include <memory>
#include <span>
#include <string>

#include "apps/commands.h"
#include "core/error.h"
#include "kernels/cuda/device/nvml.h"
#include "kernels/ops.h"

namespace weir::apps::bench {

command add_engine(CLI::App& app);
command add_kernels(CLI::App& app);
command add_serve_bench(CLI::App& app);
command add_slo(CLI::App& app);
command add_shares(CLI::App& app);
command add_sleep(CLI::App& app);

// The options of every benchmark that runs on a device.
struct device_options {
  std::string device = "cpu";
  unsigned threads = 0;  // threads that compute; 0: one for each core
  bool deterministic = false;
  std::string activations = "f32";
  bool json = false;
};
void add_options(CLI::App& app, device_options& o);
core::result<std::shared_ptr<const kernels::backend>> open(const device_options& o);

// Prints an error to standard error; returns its exit code.
int fail(const core::error& e);

// Prints `figures` to standard output: as one JSON object, or as a table of names and numbers.
void print(const boost::json::object& figures, bool json);

// Prints the figures of a benchmark, or why there are none; returns the exit code.
int report(const core::result<boost::json::object>& figures, bool json);

// The state of a CUDA device as figures: its clock, what holds the clock down, and who else uses it. They may
// explain a bad figure beside them. What is not known is left out.
boost::json::object figures_of(const kernels::device_state& state);

// Calls `work`; returns its time in seconds.
template <class F>
double seconds_of(F&& work) {
  const auto start = std::chrono::steady_clock::now();
  work();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

// The value that a share of all samples does not exceed (nearest rank). Sorts the samples. REQUIRES:
// `samples` is not empty.
double percentile(std::span<double> samples, double share);

}  // namespace weir::apps::bench
