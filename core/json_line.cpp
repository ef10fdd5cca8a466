#include "core/json_line.h"

#include <fmt/format.h>

#include <boost/json/serialize.hpp>
#include <cmath>

namespace weir::core {
namespace {

namespace json = boost::json;

void append(std::string& out, const json::value& v) {
  const auto list = [&out](char open, char close, const auto& items, const auto& one) {
    out += open;
    for (const auto& item : items) {
      if (&item != &*items.begin()) out += ',';
      one(item);
    }
    out += close;
  };
  if (const auto* object = v.if_object()) {
    list('{', '}', *object, [&out](const json::key_value_pair& member) {
      out += json::serialize(json::string(member.key())) + ':';
      append(out, member.value());
    });
  } else if (const auto* array = v.if_array()) {
    list('[', ']', *array, [&out](const json::value& item) { append(out, item); });
  } else if (const auto* number = v.if_double()) {
    out += std::isfinite(*number) ? fmt::format("{}", *number) : "null";
  } else {
    out += json::serialize(v);
  }
}

}  // namespace

std::string json_line(const json::value& v) {
  std::string out;
  append(out, v);
  return out;
}

double rounded_time(double t) { return std::round(t * 1000) / 1000; }

}  // namespace weir::core
