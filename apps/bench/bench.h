// bench.h — the benchmarks of `weir bench`: each adds its options to an app and leaves behind what to do.
//
// A benchmark prints what it measured beside the limit that it measured in the same run, as a table or, with
// --json, as one object on standard output.
#pragma once

#include <boost/json/object.hpp>
#include <chrono>
#include <memory>
#include <span>
#include <string>

#include "apps/commands.h"
#include "core/error.h"
#include "kernels/ops.h"

namespace weir::apps::bench {

command add_engine(CLI::App& app);
command add_kernels(CLI::App& app);
command add_serve_bench(CLI::App& app);

// What every benchmark on a device takes.
struct device_options {
  std::string device = "cpu";
  unsigned threads = 0;  // 0: as many as there are cores
  bool deterministic = false;
  bool json = false;
};
void add_options(CLI::App& app, device_options& o);
core::result<std::shared_ptr<const kernels::backend>> open(const device_options& o);

// Says what is wrong; its exit code.
int fail(const core::error& e);

// One object on standard output, or its numbers by name, one a line.
void print(const boost::json::object& figures, bool json);

// Seconds that `work` takes.
template <class F>
double seconds_of(F&& work) {
  const auto start = std::chrono::steady_clock::now();
  work();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

// The value below which `share` of the samples lie (nearest rank). REQUIRES: samples is not empty; sorts it.
double percentile(std::span<double> samples, double share);

}  // namespace weir::apps::bench
