// Bodies with JSON Schemas: what was JSON is JSON still, and each schema has its own text.
#include <boost/json.hpp>
#include <cstdint>
#include <string_view>

#include "core/read_json.h"
#include "net/constraint_fields.h"

using namespace weir;

namespace {

// Puts the schemas that stand as text back.
void unfold(boost::json::value& v, int depth) {
  if (v.is_string() && depth > 0) {
    boost::json::error_code ec;
    auto inner = boost::json::parse(v.get_string(), ec);
    if (!ec && (inner.is_object() || inner.is_array())) v = std::move(inner);
  }
  if (auto* o = v.if_object(); o && depth < 3)
    for (auto& [key, value] : *o) unfold(value, depth + 1);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view body(reinterpret_cast<const char*>(data), size);
  const auto before = core::read_json(body, {30, 10'000});
  const auto text = net::with_schemas_as_text(body);
  auto after = core::read_json(text, {30, 10'000});
  if (!before) return 0;
  if (!after) __builtin_trap();
  auto same = *before;
  unfold(same, 0);
  unfold(*after, 0);
  if (same != *after) __builtin_trap();
  actors::request r;
  if (before->is_object()) (void)net::read_constraint_fields(after->get_object(), r);
  return 0;
}
