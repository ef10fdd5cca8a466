// Arrays whose items are all different: where an item is one of a few scalars, the list is one terminal.
#include <map>

#include "core/grammar/distinct_texts.h"
#include "core/grammar/schema/writer.h"

namespace weir::core::grammar {
namespace {

// Numbers of one value have one key, however they are written.
std::string key_of(const decimal& d) {
  return fmt::format("{}{}e{}", d.negative ? "-" : "", d.digits, d.exponent);
}

}  // namespace

// Lists the values of a goal, each once. texts() returns nullopt if there are more than a list may have, or
// if they are not all known.
class schema_writer::few_values {
 public:
  few_values(schema_writer& w, const goal& g) : writer_(w), goal_(g) {}

  std::optional<std::vector<std::string>> texts() {
    for (const constraints& c : writer_.normal_form_.cases(goal_))
      if (!(c.values ? add_values(*c.values) : add_types(c))) return std::nullopt;
    std::vector<std::string> out;
    for (auto& [key, text] : found_) out.push_back(std::move(text));
    return out;
  }

 private:
  bool add(std::string key, std::string text) {
    found_.emplace(std::move(key), std::move(text));
    return found_.size() <= distinct_texts::most_texts;
  }

  bool add_values(const value_set& values) {
    for (json_node_id v : values.all()) {
      if (!writer_.validator_.satisfies(v, goal_)) continue;
      const json_node& node = writer_.tree_[v];
      const bool number = node.kind == json_kind::number;
      const auto text = writer_.scalar_text(v);
      if (!text || !add(number ? key_of(decimal::of(node.text)) : *text, *text)) return false;
    }
    return true;
  }

  bool add_types(const constraints& c) {
    if (c.types & ~(type_null | type_boolean | type_integer)) return false;
    if ((c.types & type_null) && !denied(c, json_kind::null, false) && !add("null", "null")) return false;
    for (const bool truth : {false, true}) {
      const std::string text = truth ? "true" : "false";
      if ((c.types & type_boolean) && !denied(c, json_kind::boolean, truth) && !add(text, text)) return false;
    }
    return !(c.types & type_integer) || add_integers(c);
  }

  // Looks at the whole numbers around the bounds as well, so that it need not round them.
  bool add_integers(const constraints& c) {
    if (!c.low || !c.high || c.low->at.digit_count() > 17 || c.high->at.digit_count() > 17) return false;
    const std::int64_t low = whole(c.low->at), high = whole(c.high->at);
    if (high - low > 4 * std::int64_t{distinct_texts::most_texts}) return false;
    for (std::int64_t n = low - 1; n <= high + 1; ++n) {
      const auto is = holds(c, n);
      if (!is || (*is && !add(key_of(decimal::of(n)), std::to_string(n)))) return false;
    }
    return true;
  }

  static std::int64_t whole(const decimal& d) {
    const auto magnitude = std::stoll(d.whole_digits());
    return d.negative ? -magnitude : magnitude;
  }

  // nullopt: it cannot be told.
  std::optional<bool> holds(const constraints& c, std::int64_t n) const {
    const decimal d = decimal::of(n);
    if (d < c.low->at || c.high->at < d) return false;
    if ((c.low->exclusive && d == c.low->at) || (c.high->exclusive && d == c.high->at)) return false;
    for (const auto* list : {&c.multiples, &c.not_multiples}) {
      for (json_node_id m : *list) {
        const auto is = is_multiple(d, decimal::of(writer_.tree_[m].text));
        if (!is) return std::nullopt;
        if (*is != (list == &c.multiples)) return false;
      }
    }
    return std::ranges::none_of(c.not_values, [&](json_node_id v) {
      return writer_.tree_[v].kind == json_kind::number && decimal::of(writer_.tree_[v].text) == d;
    });
  }

  bool denied(const constraints& c, json_kind kind, bool truth) const {
    return writer_.denies_value(c, kind, truth);
  }

  schema_writer& writer_;
  const goal& goal_;
  std::map<std::string, std::string> found_;
};

// nullopt: the items cannot be written as distinct_texts.
std::optional<part_id> schema_writer::distinct_items(const constraints& c) {
  const goal items = item_goal(c, 0);
  const bool alike = std::ranges::all_of(c.items, [](const auto& rule) { return rule->first.empty(); });
  if (items.empty() || !alike || !c.contains.empty()) return std::nullopt;
  auto texts = few_values(*this, items).texts();
  if (!texts) return std::nullopt;
  const std::uint32_t max = std::min(c.max_items, static_cast<std::uint32_t>(texts->size()));
  if (c.min_items > max) return rules::nothing;
  const part_id none = c.min_items == 0 ? rules::empty : rules::nothing;
  if (max == 0) return none;
  auto list = std::make_shared<const distinct_texts>(std::move(*texts));
  const auto start = list->start(std::max(c.min_items, 1u), max);
  return rules_.choice({none, rules_.terminal(pool_.language(std::move(list), start, json_.comma_text()))});
}

}  // namespace weir::core::grammar
