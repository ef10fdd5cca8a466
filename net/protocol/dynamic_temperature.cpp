#include "net/protocol/dynamic_temperature.h"

#include <cmath>
#include <optional>

namespace weir::net {
namespace {

using core::bad_param;
using core::result;

constexpr double highest = 4;  // temperature and dynatemp_range are at most 2

bool says_off(const json::value& v) { return v.is_null() || v == false || v == 0; }

result<std::optional<double>> read_bound(const json::object& body, const char* name) {
  const json::value* v = body.if_contains(name);
  if (!v || v->is_null()) return std::optional<double>();
  const auto read = read_number(name, *v);
  if (!read) return read.error();
  if (!(*read >= 0 && *read <= highest))
    return bad_param(name, "{} must be from 0 to {}, not {}", name, highest, *read);
  return std::optional(*read);
}

}  // namespace

bool is_dynamic_temperature(std::string_view name) {
  return name == "dynamic_temperature" || name == "dynatemp_low" || name == "dynatemp_high";
}

result<void> read_dynamic_temperature(const json::object& body, actors::request& r) {
  constexpr const char* field = "dynamic_temperature";
  const json::value* asked = body.if_contains(field);
  if (!asked || says_off(*asked)) return {};
  if (*asked != true && *asked != 1) {
    if (const auto flag = read_bool(field, *asked); !flag) return flag.error();
  }
  const auto low = read_bound(body, "dynatemp_low"), high = read_bound(body, "dynatemp_high");
  if (!low) return low.error();
  if (!high) return high.error();
  if (!*low && !*high && r.sampling.dynatemp_range) return {};
  if (!*low || !*high)
    return bad_param(field, "{} needs dynatemp_low and dynatemp_high, or dynatemp_range", field);
  if (**low > **high)
    return bad_param("dynatemp_low", "dynatemp_low, {}, must not be above dynatemp_high, {}", **low, **high);
  const double range = (**high - **low) / 2;
  if (r.sampling.dynatemp_range && std::abs(*r.sampling.dynatemp_range - range) > 1e-6)
    return bad_param("dynatemp_range",
                     "dynatemp_range is {}, but half of dynatemp_low to dynatemp_high is {}",
                     *r.sampling.dynatemp_range, range);
  r.sampling.dynatemp_range = range;
  r.sampling.temperature = (**low + **high) / 2;
  return {};
}

}  // namespace weir::net
