// Bodies with JSON Schemas: what was JSON is JSON still, and each schema has its own text.
#include <algorithm>
#include <boost/json.hpp>
#include <cmath>
#include <cstdint>
#include <string_view>

#include "core/read_json.h"
#include "net/protocol/constraint_fields.h"
#include "net/protocol/tools.h"

using namespace weir;

namespace {

// Equality, except that doubles may differ in the last place: what Boost.JSON reads of a number with many
// digits can depend on whether more bytes follow.
bool same(const boost::json::value& a, const boost::json::value& b) {
  if (a.is_double() && b.is_double()) {
    const double x = a.get_double(), y = b.get_double();
    return x == y || std::abs(x - y) <= 1e-15 * std::abs(x);
  }
  if (a.is_array() && b.is_array()) return std::ranges::equal(a.get_array(), b.get_array(), same);
  if (!a.is_object() || !b.is_object()) return a == b;
  const auto& in = b.get_object();
  return a.get_object().size() == in.size() && std::ranges::all_of(a.get_object(), [&](const auto& member) {
    const auto* other = in.if_contains(member.key());
    return other && same(member.value(), *other);
  });
}

// Turns schemas that stand as text back into JSON values.
void unfold(boost::json::value& v, int depth) {
  if (v.is_string() && depth > 0) {
    boost::json::error_code ec;
    auto inner = boost::json::parse(v.get_string(), ec);
    if (!ec && (inner.is_object() || inner.is_array())) v = std::move(inner);
  }
  constexpr int deepest = 5;  // of a schema's place
  if (auto* o = v.if_object(); o && depth < deepest)
    for (auto& [key, value] : *o) unfold(value, depth + 1);
  if (auto* list = v.if_array(); list && depth < deepest)
    for (auto& value : *list) unfold(value, depth + 1);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view body(reinterpret_cast<const char*>(data), size);
  const auto before = core::read_json(body, {30, 10'000});
  const auto text = net::with_schemas_as_text(body);
  auto after = core::read_json(text, {30, 10'000});
  if (!before) return 0;
  if (!after) __builtin_trap();
  auto expected = *before;
  unfold(expected, 0);
  unfold(*after, 0);
  if (!same(expected, *after)) __builtin_trap();
  actors::request r;
  if (!before->is_object()) return 0;
  (void)net::read_constraint_fields(after->get_object(), r);
  r.input = core::conversation();
  std::vector<core::grammar::warning> dropped;
  for (const auto d : {net::tool_dialect::chat, net::tool_dialect::messages})
    (void)net::read_tools(after->get_object(), d, r, dropped);
  return 0;
}
