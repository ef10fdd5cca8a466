#include "net/load/conditions.h"

#include <charconv>
#include <cmath>
#include <optional>

#include "core/objective.h"
#include "net/load/figures.h"

namespace weir::load {
namespace {

std::string_view trimmed(std::string_view s) {
  while (!s.empty() && s.front() == ' ') s.remove_prefix(1);
  while (!s.empty() && s.back() == ' ') s.remove_suffix(1);
  return s;
}

// Converts a number with an optional unit to the unit of its figure: ms for a time, a fraction for a share.
std::optional<double> read_value(std::string_view text, bool time, bool share) {
  double v = 0;
  const auto [end, ec] = std::from_chars(text.data(), text.data() + text.size(), v);
  if (ec != std::errc() || !std::isfinite(v)) return std::nullopt;
  const std::string_view unit = trimmed({end, static_cast<std::size_t>(text.data() + text.size() - end)});
  if (unit.empty()) return v;
  if (time && unit == "ms") return v;
  if (time && unit == "s") return v * 1000;
  if (time && unit == "us") return v / 1000;
  if (share && unit == "%") return v / 100;
  return std::nullopt;
}

constexpr std::string_view statistics[] = {"p50", "p90", "p95", "p99", "p99.9", "max", "min", "mean"};

}  // namespace

core::result<objectives> parse_slo(std::string_view text) {
  objectives o;
  const core::named_time names[] = {{"ttft", &o.ttft}, {"tpot", &o.tpot}, {"e2el", &o.e2el}};
  if (auto ok = core::parse_times("slo", text, names); !ok) return ok.error();
  return o;
}

core::result<condition> parse_condition(std::string_view text) {
  condition c;
  c.text = text;
  const auto wrong = [&](std::string_view why) {
    return core::bad_param("assert", "--assert {}: {}", text, why);
  };
  const auto at = text.find_first_of("<>=");
  if (at == text.npos) return wrong("no < <= > >= or == in it");
  const auto two = text.substr(at, 2);
  std::size_t length = 2;
  if (two == "<=") {
    c.is = comparison::at_most;
  } else if (two == ">=") {
    c.is = comparison::at_least;
  } else if (two == "==") {
    c.is = comparison::equal;
  } else if (text[at] == '=') {
    return wrong("no < <= > >= or == in it");
  } else {
    c.is = text[at] == '<' ? comparison::less : comparison::more;
    length = 1;
  }
  const auto name = trimmed(text.substr(0, at));
  auto found = find_figure(name);
  if (!found) {
    for (const auto s : statistics) {
      if (name.size() <= s.size() + 1 || !name.ends_with(s) || name[name.size() - s.size() - 1] != '_')
        continue;
      found = find_figure(name.substr(0, name.size() - s.size() - 1));
      if (found) c.statistic = s;
    }
  }
  if (!found) return wrong("no report has this measure");
  const auto& what = entry(*found);
  c.measure = what.name;
  if (c.statistic.empty() && !what.number) return wrong("say which: p50 p90 p95 p99 p99.9 max min or mean");
  if (!c.statistic.empty() && what.unit == 0) return wrong("this is one number, without percentiles");
  const bool share =
      what.name.ends_with("_frac") || what.name.ends_with("_ratio") || what.name == "client_cpu";
  const auto v = read_value(trimmed(text.substr(at + length)), what.name.ends_with("_ms"), share);
  if (!v) return wrong("what it is compared with is no number in a unit of this measure");
  c.limit = *v;
  return c;
}

bool condition::holds(double value) const noexcept {
  switch (is) {
    case comparison::less: return value < limit;
    case comparison::at_most: return value <= limit;
    case comparison::more: return value > limit;
    case comparison::at_least: return value >= limit;
    case comparison::equal: break;
  }
  return value == limit;
}

}  // namespace weir::load
