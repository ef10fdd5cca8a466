#include "core/objective.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <optional>
#include <vector>

namespace weir::core {
namespace {

constexpr double most_ms = 3'600'000;

std::string_view trimmed(std::string_view s) {
  while (!s.empty() && s.front() == ' ') s.remove_prefix(1);
  while (!s.empty() && s.back() == ' ') s.remove_suffix(1);
  return s;
}

// A time above 0 in ms; nullopt for anything else.
std::optional<double> read_ms(std::string_view text) {
  double v = 0;
  const auto [end, ec] = std::from_chars(text.data(), text.data() + text.size(), v);
  if (ec != std::errc() || !std::isfinite(v) || v <= 0) return std::nullopt;
  const auto unit = trimmed(text.substr(static_cast<std::size_t>(end - text.data())));
  if (unit.empty() || unit == "ms") return v;
  if (unit == "s") return v * 1000;
  if (unit == "us") return v / 1000;
  return std::nullopt;
}

std::string list_of(std::span<const named_time> names) {
  std::string out;
  for (std::size_t i = 0; i < names.size(); ++i)
    out.append(i == 0 ? "" : i + 1 == names.size() ? " or " : ", ").append(names[i].name);
  return out;
}

duration of_ms(double ms) { return duration(static_cast<std::int64_t>(std::max(1.0, ms * 1e6))); }

}  // namespace

result<> parse_times(const char* option, std::string_view text, std::span<const named_time> names) {
  std::vector<bool> given(names.size());
  while (!text.empty()) {
    const auto part = text.substr(0, text.find(','));
    text.remove_prefix(std::min(part.size() + 1, text.size()));
    const auto equals = part.find('=');
    auto name = trimmed(part.substr(0, equals));
    if (name.ends_with("_ms")) name.remove_suffix(3);
    const auto found = std::ranges::find(names, name, &named_time::name);
    if (found == names.end()) return bad_param(option, "--{}: '{}' is not {}", option, name, list_of(names));
    const auto ms = equals == part.npos ? std::nullopt : read_ms(trimmed(part.substr(equals + 1)));
    if (!ms)
      return bad_param(option, "--{}: {} needs a time above 0, such as {}=200ms, and has '{}'", option, name,
                       name, equals == part.npos ? "" : part.substr(equals + 1));
    const auto i = static_cast<std::size_t>(found - names.begin());
    if (given[i]) return bad_param(option, "--{}: {} stands there twice", option, name);
    given[i] = true;
    *found->ms = *ms;
  }
  return {};
}

result<objective> parse_objective(std::string_view text) {
  if (text.empty()) return objective{};
  double ttft = 0, tpot = 0;
  const named_time names[] = {{"ttft", &ttft}, {"tpot", &tpot}};
  if (auto ok = parse_times("slo", text, names); !ok) return ok.error();
  for (const auto& [name, ms] : names) {
    if (*ms == 0) return bad_param("slo", "--slo: {} is missing; it has both, as in ttft=1000,tpot=50", name);
    if (*ms > most_ms) return bad_param("slo", "--slo: {} is over an hour", name);
  }
  return objective{of_ms(ttft), of_ms(tpot)};
}

}  // namespace weir::core
