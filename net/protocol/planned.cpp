#include "net/protocol/planned.h"

#include <boost/json/parse.hpp>

namespace weir::net {
namespace {

json::value parsed(std::string_view text) {
  return json::parse(json::string_view(text.data(), text.size()));
}

}  // namespace

bool planned_name::asks_nothing(const json::value& v) const {
  return is_neutral(v, neutral) || is_neutral(v, also_neutral);
}

const planned_name* find_planned(place where, std::string_view name) noexcept {
  for (const planned_name& p : planned_names)
    if (p.where == where && p.name == name) return &p;
  return nullptr;
}

core::result<void> judge_planned(const planned_name& field, const json::value& v) {
  if (field.asks_nothing(v)) return {};
  const std::string name(field.name);
  switch (field.kind) {
    case planned_name::value::any:
      break;
    case planned_name::value::count:
      if (v.is_int64() && v.get_int64() < 1)
        return core::bad_param(name, "{} must be at least 1, not {}", name, v.get_int64());
      break;
  }
  return not_supported_yet(name);
}

core::error not_supported_yet(std::string_view name) {
  return core::bad_param(std::string(name), "{} is not supported yet", name);
}

bool is_neutral(const json::value& v, std::string_view neutral) {
  if (v.is_null()) return true;
  const json::value same = parsed(neutral);
  if (!v.is_number() || !same.is_number()) return v == same;
  return *read_number("", v) == *read_number("", same);
}

}  // namespace weir::net
