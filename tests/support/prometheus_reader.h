// prometheus_reader.h — reads Prometheus' text format as strictly as its specification allows, and judges the
// laws that a scrape relies on. Written from the specification, not from the server's writer.
//
// A text that breaks a rule fails the test.
#pragma once

#include <catch2/catch.hpp>
#include <cctype>
#include <cmath>
#include <cstdlib>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace weir::tests {

using label_set = std::map<std::string, std::string>;

struct prometheus_family {
  std::string type, help;
  // By the sample's whole name (with _bucket, _sum, _count) and its labels.
  std::map<std::string, std::map<label_set, double>> samples;
};

class prometheus_reader {
 public:
  explicit prometheus_reader(std::string_view text) : rest_(text) {
    REQUIRE(text.ends_with('\n'));
    while (!rest_.empty()) read_line();
    for (const auto& [name, f] : families)
      if (f.type == "histogram") judge_histogram(name, f);
  }

  std::map<std::string, prometheus_family> families;

  // The value of a counter, a gauge, or of NAME_sum and NAME_count.
  double value(const std::string& name, const label_set& labels = {}) const {
    INFO(name);
    const auto* all = samples(name);
    REQUIRE(all != nullptr);
    const auto found = all->find(labels);
    REQUIRE(found != all->end());
    return found->second;
  }
  // Sum over all label sets.
  double sum(const std::string& name) const {
    double out = 0;
    if (const auto* all = samples(name))
      for (const auto& [labels, v] : *all) out += v;
    return out;
  }
  // The family that a sample of this name belongs to; null: it is not served.
  const prometheus_family* family_of(const std::string& sample) const {
    if (const auto exact = families.find(sample); exact != families.end()) return &exact->second;
    for (const char* suffix : {"_bucket", "_sum", "_count"}) {
      if (!std::string_view(sample).ends_with(suffix)) continue;
      const auto f = families.find(sample.substr(0, sample.size() - std::string_view(suffix).size()));
      if (f != families.end() && f->second.type == "histogram") return &f->second;
    }
    return nullptr;
  }
  std::set<std::string> labels_of(const std::string& sample) const {
    std::set<std::string> names;
    if (const auto* all = samples(sample))
      for (const auto& [labels, v] : *all)
        for (const auto& [key, text] : labels) names.insert(key);
    return names;
  }

 private:
  const std::map<label_set, double>* samples(const std::string& name) const {
    const auto* f = family_of(name);
    if (!f) return nullptr;
    const auto found = f->samples.find(name);
    return found == f->samples.end() ? nullptr : &found->second;
  }

  void read_line() {
    const auto end = rest_.find('\n');
    REQUIRE(end != rest_.npos);
    line_ = rest_.substr(0, end);
    INFO(line_);
    REQUIRE_FALSE(line_.empty());
    if (line_.starts_with("# HELP ")) {
      read_help();
    } else if (line_.starts_with("# TYPE ")) {
      read_type();
    } else {
      REQUIRE(line_.front() != '#');
      read_sample();
    }
    rest_.remove_prefix(end + 1);
  }

  // A family begins with its HELP. Its TYPE and then all its samples follow without a gap.
  void read_help() {
    line_.remove_prefix(7);
    open_ = take_name();
    REQUIRE(take(' '));
    const auto [at, is_new] = families.try_emplace(open_);
    REQUIRE(is_new);
    at->second.help = unescaped(line_, false);
    CHECK_FALSE(at->second.help.empty());
  }
  void read_type() {
    line_.remove_prefix(7);
    REQUIRE(take_name() == open_);
    REQUIRE(take(' '));
    auto& f = families.at(open_);
    REQUIRE(f.type.empty());
    f.type = line_;
    CHECK(std::set<std::string>{"counter", "gauge", "histogram"}.contains(f.type));
    CHECK((f.type == "counter") == open_.ends_with("_total"));
  }
  void read_sample() {
    const std::string name = take_name();
    auto& f = families.at(open_);
    REQUIRE_FALSE(f.type.empty());
    if (f.type == "histogram") {
      REQUIRE((name == open_ + "_bucket" || name == open_ + "_sum" || name == open_ + "_count"));
    } else {
      REQUIRE(name == open_);
    }
    const label_set labels = take_labels();
    REQUIRE(take(' '));
    const std::string digits(line_);
    char* end = nullptr;
    const double v = std::strtod(digits.c_str(), &end);
    REQUIRE(end == digits.c_str() + digits.size());
    REQUIRE_FALSE(digits.empty());
    if (f.type != "gauge") REQUIRE(v >= 0);
    REQUIRE(f.samples[name].emplace(labels, v).second);
  }

  label_set take_labels() {
    label_set out;
    if (!take('{')) return out;
    do {
      const std::string key = take_name();
      REQUIRE(take('='));
      REQUIRE(take('"'));
      std::size_t end = 0;
      while (end < line_.size() && line_[end] != '"') end += line_[end] == '\\' ? 2 : 1;
      REQUIRE(end < line_.size());
      REQUIRE(out.emplace(key, unescaped(line_.substr(0, end), true)).second);
      line_.remove_prefix(end + 1);
    } while (take(','));
    REQUIRE(take('}'));
    return out;
  }

  std::string take_name() {
    std::size_t n = 0;
    const auto fits = [](char c) { return std::isalnum(static_cast<unsigned char>(c)) || c == '_'; };
    while (n < line_.size() && fits(line_[n])) ++n;
    const std::string name(line_.substr(0, n));
    REQUIRE_FALSE(name.empty());
    REQUIRE_FALSE(std::isdigit(static_cast<unsigned char>(name[0])));
    line_.remove_prefix(n);
    return name;
  }

  bool take(char c) {
    if (line_.empty() || line_.front() != c) return false;
    line_.remove_prefix(1);
    return true;
  }

  static std::string unescaped(std::string_view text, bool quotes) {
    std::string out;
    for (std::size_t i = 0; i < text.size(); ++i) {
      if (text[i] != '\\') {
        out += text[i];
        continue;
      }
      REQUIRE(++i < text.size());
      REQUIRE((text[i] == '\\' || text[i] == 'n' || (quotes && text[i] == '"')));
      out += text[i] == 'n' ? '\n' : text[i];
    }
    return out;
  }

  // Buckets are cumulative, the last one counts all, and sum and count have the same labels as the buckets.
  static void judge_histogram(const std::string& name, const prometheus_family& f) {
    INFO(name);
    if (f.samples.empty()) return;
    std::map<label_set, std::map<double, double>> buckets;  // by the other labels, then by bound
    for (const auto& [all_labels, count] : f.samples.at(name + "_bucket")) {
      label_set labels = all_labels;
      REQUIRE(labels.contains("le"));
      const double bound = std::strtod(labels.at("le").c_str(), nullptr);
      labels.erase("le");
      REQUIRE(buckets[labels].emplace(bound, count).second);
    }
    const auto& counts = f.samples.at(name + "_count");
    const auto& sums = f.samples.at(name + "_sum");
    REQUIRE(counts.size() == buckets.size());
    REQUIRE(sums.size() == buckets.size());
    for (const auto& [labels, by_bound] : buckets) {
      double before = 0;
      for (const auto& [bound, count] : by_bound) {
        CHECK(count >= before);
        before = count;
      }
      REQUIRE(std::isinf(by_bound.rbegin()->first));
      CHECK(counts.at(labels) == before);
      judge_sum(by_bound, sums.at(labels));
    }
  }
  // The sum is possible: each value lies between the bounds of its bucket and of the bucket before.
  static void judge_sum(const std::map<double, double>& by_bound, double sum) {
    constexpr double rounding = 1e-9;
    double least = 0, most = 0, bound_before = 0, before = 0;
    for (const auto& [bound, count] : by_bound) {
      const double here = count - before;
      least += here * bound_before;
      if (here > 0) most += here * bound;
      bound_before = bound;
      before = count;
    }
    CHECK(sum >= least * (1 - rounding));
    CHECK(sum <= most * (1 + rounding));
  }

  std::string_view rest_, line_;
  std::string open_;  // the family whose lines are being read
};

}  // namespace weir::tests
