// prometheus.h — writes metrics in the text format of Prometheus, version 0.0.4:
// https://prometheus.io/docs/instrumenting/exposition_formats/
//
// A metric is its family's HELP and TYPE lines, then its samples:
//
//   prometheus_text out(text);
//   out.family("weir_sessions", prometheus_text::type::gauge, "WebSockets that are open.");
//   out.sample({}, 3);
//
// Pure: appends to a string. Used on one thread.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>
#include <utility>

#include "core/histogram.h"

namespace weir::net {

class prometheus_text {
 public:
  static constexpr std::string_view content_type = "text/plain; version=0.0.4; charset=utf-8";

  enum class type { counter, gauge, histogram };
  // Name and value of each label, in order. The value may be any text: what is no UTF-8 becomes '?'.
  using label = std::pair<std::string_view, std::string_view>;
  using labels = std::initializer_list<label>;

  explicit prometheus_text(std::string& out) : out_(out) {}

  // Begins a metric: samples that follow are its own. REQUIRES: `name` fits [a-z_][a-z0-9_]*, was not begun
  // before, and lives until the next family.
  void family(std::string_view name, type of, std::string_view help);
  // A sample of a counter or a gauge. REQUIRES: no other of the family has the same labels.
  void sample(labels of, std::uint64_t value);
  void sample(labels of, double value);
  // All samples of a histogram: its buckets, whose counts add up, its sum and its count.
  void sample(labels of, const core::histogram_view& h);

 private:
  void name(std::string_view suffix, labels of, std::string_view bound = {});
  void value(std::uint64_t v);
  void value(double v);

  std::string& out_;
  std::string_view family_;
};

}  // namespace weir::net
