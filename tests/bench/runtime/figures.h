// figures.h — samples of what is measured, their medians, as a table and as JSON.
//
// Thread safety: none.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdio>
#include <cstring>
#include <functional>
#include <vector>

namespace weir::bench {

using clock_type = std::chrono::steady_clock;

inline double ns_since(clock_type::time_point start, double operations) {
  return std::chrono::duration<double, std::nano>(clock_type::now() - start).count() / operations;
}

// One program gives one or several figures a run.
struct figure {
  const char* name;
  const char* unit = "ns";
  std::vector<double> samples = {};

  double at(double part) {
    std::sort(samples.begin(), samples.end());
    return samples[static_cast<std::size_t>(part * static_cast<double>(samples.size() - 1) + 0.5)];
  }
};
struct program {
  std::vector<figure> figures;
  std::function<std::vector<double>()> run;

  void sample() {
    const auto values = run();
    for (std::size_t i = 0; i < values.size(); ++i) figures[i].samples.push_back(values[i]);
  }
};

inline void print(std::vector<program>& programs) {
  std::printf("%-42s %10s  %s\n", "", "median", "middle half");
  for (auto& p : programs) {
    for (auto& f : p.figures) {
      std::printf("%-42s %10.1f  %.1f .. %.1f %s\n", f.name, f.at(0.5), f.at(0.25), f.at(0.75), f.unit);
    }
  }
}

inline void write_json(const char* path, std::vector<program>& programs) {
  std::FILE* out = std::fopen(path, "w");
  if (!out) return std::perror(path);
  const char* between = "[\n";
  for (auto& p : programs) {
    for (auto& f : p.figures) {
      std::fprintf(out,
                   "%s  {\"name\": \"%s\", \"unit\": \"%s\", \"median\": %.1f, \"q1\": %.1f, \"q3\": %.1f}",
                   between, f.name + std::strspn(f.name, " "), f.unit, f.at(0.5), f.at(0.25), f.at(0.75));
      between = ",\n";
    }
  }
  std::fprintf(out, "\n]\n");
  std::fclose(out);
}

}  // namespace weir::bench
