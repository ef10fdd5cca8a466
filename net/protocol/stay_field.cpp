#include "net/protocol/stay_field.h"

#include <charconv>
#include <cmath>
#include <optional>

namespace weir::net {
namespace {

using std::chrono::milliseconds;

milliseconds bounded(double ms) {
  const auto most = static_cast<double>(longest_stay_asked.count());
  return ms < 0 || ms > most ? longest_stay_asked : milliseconds(static_cast<std::int64_t>(ms));
}

// Takes a unit off the text; its length in ms, or 0 where there is none.
double take_unit(std::string_view& text) {
  constexpr std::pair<std::string_view, double> units[] = {
      {"ms", 1}, {"s", 1000}, {"m", 60e3}, {"h", 3600e3}};
  for (const auto& [unit, ms] : units)
    if (text.starts_with(unit)) {
      text.remove_prefix(unit.size());
      return ms;
    }
  return 0;
}

std::optional<double> milliseconds_in(std::string_view text) {
  const bool negative = text.starts_with('-');
  if (negative) text.remove_prefix(1);
  if (text.empty()) return std::nullopt;
  double sum = 0;
  for (bool first = true; !text.empty(); first = false) {
    if (text.front() < '0' || text.front() > '9') return std::nullopt;
    double number = 0;
    const auto got =
        std::from_chars(text.data(), text.data() + text.size(), number, std::chars_format::fixed);
    if (got.ec != std::errc()) return std::nullopt;
    text.remove_prefix(static_cast<std::size_t>(got.ptr - text.data()));
    const bool bare = text.empty() && first;
    const double unit = bare ? 1000 : take_unit(text);
    if (unit == 0) return std::nullopt;
    sum += number * unit;
  }
  return negative ? -sum : sum;
}

}  // namespace

core::result<milliseconds> read_stay(std::string_view name, const json::value& v) {
  const auto no = [&] {
    return core::bad_param(std::string(name), "{} must be a number of seconds, or a text as \"5m\"", name);
  };
  if (v.is_string()) {
    const auto ms = milliseconds_in(v.get_string());
    if (!ms) return no();
    return bounded(*ms);
  }
  if (!v.is_number()) return no();
  const double seconds = v.to_number<double>();
  if (!std::isfinite(seconds)) return no();
  return bounded(seconds * 1000);
}

}  // namespace weir::net
