// Keywords that say more where it matters which schemas speak of a member or an item (evaluation.h).
#include "core/grammar/schema/keywords.h"

namespace weir::core::grammar {
namespace {

constexpr std::size_t most_told = 5;  // schemas of anyOf: 2^5 - 1 sets of them

}  // namespace

std::optional<json_node_id> schema_keywords::unevaluated(json_node_id schema, bool of_items) {
  if (!has(schema_draft::d2019)) return std::nullopt;
  return get_schema(schema, of_items ? "unevaluatedItems" : "unevaluatedProperties");
}

bool schema_keywords::tells_evaluated(json_node_id schema) {
  const auto any = document_.keyword(schema, "anyOf");
  return !any || tree_[*any].items.size() <= most_told;
}

// There is one alternative for each set of schemas that may hold. A value may satisfy schemas beyond a set;
// the alternative of that set then asks more than is needed of what the set leaves unevaluated, and the
// alternative of the larger set allows the value. So the union of all alternatives is exact.
void schema_keywords::add_any(json_node_id schema, bool evaluated, std::vector<alternatives>& out) {
  if (!document_.keyword(schema, "anyOf")) return;
  const std::vector<literal> all = get_schemas(schema, "anyOf");
  alternatives any;
  if (evaluated && all.size() <= most_told) {
    for (std::uint32_t set = 1; set < 1u << all.size(); ++set) {
      alternative& some = any.emplace_back();
      for (std::size_t i = 0; i < all.size(); ++i)
        if (set >> i & 1) some.also.push_back(all[i]);
    }
  } else {
    for (const literal& l : all) any.push_back({{}, {l}});
  }
  if (!any.empty()) out.push_back(std::move(any));
}

void schema_keywords::add_if(json_node_id schema, bool evaluated, std::vector<alternatives>& out) {
  const auto condition = has(schema_draft::d7) ? get_schema(schema, "if") : std::nullopt;
  if (!condition) return;
  const auto then = get_schema(schema, "then"), otherwise = get_schema(schema, "else");
  if (!then && !otherwise && !evaluated) return;
  alternatives both(2);
  both[0].also.push_back({*condition, false});
  if (then) both[0].also.push_back({*then, false});
  if (then || otherwise) both[1].also.push_back({*condition, true});
  if (otherwise) both[1].also.push_back({*otherwise, false});
  out.push_back(std::move(both));
}

void schema_keywords::deny_unevaluated(json_node_id schema, alternatives& out) {
  for (const bool of_items : {false, true}) {
    const auto at = unevaluated(schema, of_items);
    if (!at || (tree_[*at].kind == json_kind::boolean && tree_[*at].truth)) continue;
    relax(*at, fmt::format("the opposite of {} is not supported",
                           of_items ? "unevaluatedItems" : "unevaluatedProperties"));
    out.emplace_back().facts.types = of_items ? type_array : type_object;
  }
}

}  // namespace weir::core::grammar
