#include "actors/device_watch.h"

#include <fmt/format.h>

namespace weir::actors {
namespace {

bool slower(const kernels::device_state& s) {
  return s.held_by_heat.value_or(false) || s.held_by_power.value_or(false) || s.others.value_or(0) > 0;
}

bool same(const kernels::device_state& a, const kernels::device_state& b) {
  return a.why_unknown == b.why_unknown && a.held_by_heat == b.held_by_heat &&
         a.held_by_power == b.held_by_power && a.others == b.others;
}

}  // namespace

std::string text_of(const kernels::device_state& s) {
  if (!s.why_unknown.empty()) return "its clock and its neighbours are not known: " + s.why_unknown;
  std::string out = s.clock_mhz ? fmt::format("{} ", *s.clock_mhz) : "? ";
  if (s.most_clock_mhz) out += fmt::format("of {} ", *s.most_clock_mhz);
  out += "MHz";
  if (s.held_by_heat.value_or(false)) out += ", held down by heat";
  if (s.held_by_power.value_or(false)) out += ", held down by power";
  if (s.celsius) out += fmt::format(", {} °C", *s.celsius);
  if (!s.others) return out + "; other processes on it are not known";
  if (*s.others == 0) return out + "; no other process on it";
  out += fmt::format("; {} other process{} on it", *s.others, *s.others == 1 ? "" : "es");
  if (s.others_bytes) out += fmt::format(" with {} MiB", *s.others_bytes >> 20);
  return out;
}

std::optional<device_watch::line> device_watch::tick(const kernels::device_state& now) {
  const bool due = !last_ || !same(*last_, now);
  last_ = now;
  if (!due) return std::nullopt;
  return line{slower(now), text_of(now)};
}

}  // namespace weir::actors
