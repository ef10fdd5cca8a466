#include <algorithm>

#include "core/text/template/filters.h"
#include "core/text/tokenizer/unicode.h"

namespace weir::core::jinja {
namespace {

value list_of(machine& m, std::vector<value> items) { return make_list(m.memory, std::move(items)); }

// The member that a dotted path such as `function.name` or `0.id` names. `otherwise`: the value of a missing
// member; null: such a member stays undefined.
value at_path(machine& m, value v, std::string_view path, const value* otherwise) {
  for (;;) {
    const std::size_t dot = path.find('.');
    const std::string_view part = path.substr(0, dot);
    const bool index = !part.empty() && part.find_first_not_of("0123456789") == part.npos && part.size() < 10;
    v = item_of(m, v,
                index ? value(static_cast<std::int64_t>(std::stoul(std::string(part)))) : m.make_text(part));
    if (otherwise && v.is_undefined()) v = *otherwise;
    if (dot == path.npos) return v;
    path.remove_prefix(dot + 1);
  }
}

value at_attribute(machine& m, const value& v, const value& attribute, const value* otherwise = nullptr) {
  if (const text* path = attribute.as_text()) return at_path(m, v, path->bytes, otherwise);
  value found = item_of(m, v, attribute);
  return otherwise && found.is_undefined() ? *otherwise : found;
}

// What the filters compare: the item or its attribute, without case where that is asked.
struct sort_key {
  explicit sort_key(bool ignore_case, const value* attribute = nullptr)
      : ignore_case(ignore_case), attribute(attribute) {}
  const bool ignore_case;
  const value* const attribute;  // null: the item itself

  value of(machine& m, const value& item) const {
    return folded(m, attribute && !attribute->is_none() ? at_attribute(m, item, *attribute) : item);
  }

  // The same, but `attribute` may name several attributes, as in 'age,name'.
  value of_each(machine& m, const value& item) const {
    const text* paths = attribute ? attribute->as_text() : nullptr;
    if (!paths || paths->bytes.find(',') == std::string::npos) return of(m, item);
    std::vector<value> keys;
    for (std::string_view rest = paths->bytes;;) {
      const std::size_t comma = rest.find(',');
      keys.push_back(folded(m, at_path(m, item, rest.substr(0, comma), nullptr)));
      if (comma == rest.npos) return make_list(m.memory, std::move(keys));
      rest.remove_prefix(comma + 1);
    }
  }

 private:
  value folded(machine& m, value v) const {
    return ignore_case && v.as_text() ? value(in_case(m.memory, *v.as_text(), letter_case::lower)) : v;
  }
};

// Sorts by keys that are made once for each item. The order of equal items stays.
std::vector<value> sorted(machine& m, const std::vector<value>& items, auto key, bool reverse) {
  std::vector<std::pair<value, std::size_t>> keys;
  for (std::size_t i = 0; i < items.size(); ++i) keys.emplace_back(key(items[i]), i);
  const auto less = [&](const auto& x, const auto& y) {
    const auto o = order(m.memory, x.first, y.first);
    return reverse ? o > 0 : o < 0;
  };
  std::stable_sort(keys.begin(), keys.end(), less);
  std::vector<value> out;
  for (const auto& [k, i] : keys) out.push_back(items[i]);
  return out;
}

value sort(machine& m, const value& v, arguments& a) {
  parameters p(m, "sort", a);
  const bool reverse = p.flag("reverse", false);
  const bool ignore_case = !p.flag("case_sensitive", false);
  const sort_key by(ignore_case, p.find("attribute"));
  p.end();
  return list_of(m, sorted(
                        m, items_of(m, v), [&](const value& item) { return by.of_each(m, item); }, reverse));
}

value sort_dict(machine& m, const value& v, arguments& a) {
  parameters p(m, "dictsort", a);
  const bool ignore_case = !p.flag("case_sensitive", false);
  const text_ptr by = p.text_or_null("by");
  const bool reverse = p.flag("reverse", false);
  p.end();
  if (!v.as_dict()) fail("dictsort: a {} is no dict", v.type_name());
  if (by && by->bytes != "key" && by->bytes != "value") fail("dictsort: 'by' is neither key nor value");
  const std::size_t place = by && by->bytes == "value" ? 1 : 0;
  std::vector<value> pairs;
  for (const auto& [key, member] : v.as_dict()->members)
    pairs.push_back(make_list(m.memory, {key, member}, true));
  const sort_key how(ignore_case);
  return list_of(
      m, sorted(
             m, pairs, [&](const value& pair) { return how.of(m, pair.as_list()->items[place]); }, reverse));
}

template <bool largest>
value extreme(machine& m, const value& v, arguments& a) {
  parameters p(m, largest ? "max" : "min", a);
  const bool ignore_case = !p.flag("case_sensitive", false);
  const sort_key by(ignore_case, p.find("attribute"));
  p.end();
  value best, best_key;
  bool some = false;
  for (const value& item : items_of(m, v)) {
    value key = by.of(m, item);
    if (some) {
      const auto o = order(m.memory, key, best_key);
      if (largest ? o <= 0 : o >= 0) continue;
    }
    some = true;
    best = item;
    best_key = std::move(key);
  }
  return best;
}

value unique(machine& m, const value& v, arguments& a) {
  parameters p(m, "unique", a);
  const bool ignore_case = !p.flag("case_sensitive", false);
  const sort_key by(ignore_case, p.find("attribute"));
  p.end();
  std::vector<value> out, seen;
  for (const value& item : items_of(m, v)) {
    value key = by.of(m, item);
    if (std::ranges::any_of(seen, [&](const value& s) { return equal(m.memory, s, key); })) continue;
    seen.push_back(std::move(key));
    out.push_back(item);
  }
  return list_of(m, std::move(out));
}

value grouped_by(machine& m, const value& v, arguments& a) {
  parameters p(m, "groupby", a);
  const value& attribute = p.need("attribute");
  const value* otherwise = p.find("default");
  const bool ignore_case = !p.flag("case_sensitive", false);
  p.end();
  const auto key = [&](const value& item) {
    value k = at_attribute(m, item, attribute, otherwise);
    if (ignore_case && k.as_text()) k = in_case(m.memory, *k.as_text(), letter_case::lower);
    return k;
  };
  std::vector<value> out, members;
  value current, name;
  const auto close = [&] {
    if (!members.empty())
      out.push_back(make_list(m.memory, {name, list_of(m, std::exchange(members, {}))}, true));
  };
  for (const value& item : sorted(m, items_of(m, v), key, false)) {
    value k = key(item);
    if (members.empty() || !equal(m.memory, k, current)) {
      close();
      current = std::move(k);
      name = at_attribute(m, item, attribute, otherwise);
    }
    members.push_back(item);
  }
  close();
  return list_of(m, std::move(out));
}

value map(machine& m, const value& v, arguments& a) {
  std::vector<value> out;
  if (!v.truth()) return list_of(m, {});  // none, too, as in Jinja
  const auto attribute = std::ranges::find(a.named, "attribute", &std::pair<std::string, value>::first);
  if (a.positional.empty() && attribute == a.named.end()) fail("map needs a filter or an attribute");
  if (a.positional.empty()) {
    const auto given = std::ranges::find(a.named, "default", &std::pair<std::string, value>::first);
    const value* otherwise = given == a.named.end() ? nullptr : &given->second;
    for (const value& item : items_of(m, v))
      out.push_back(at_attribute(m, item, attribute->second, otherwise));
    return list_of(m, std::move(out));
  }
  if (!a.positional[0].as_text()) fail("map: the name of a filter is a {}", a.positional[0].type_name());
  const std::string filter = a.positional[0].as_text()->bytes;
  for (const value& item : items_of(m, v)) {
    arguments rest{{a.positional.begin() + 1, a.positional.end()}, a.named};
    out.push_back(run_filter(m, filter, item, rest));
  }
  return list_of(m, std::move(out));
}

// select, reject, selectattr, rejectattr.
template <bool wanted, bool by_attribute>
value chosen(machine& m, const value& v, arguments& a) {
  const std::size_t named = by_attribute ? 1 : 0;
  if (a.positional.size() < named) fail("selectattr needs an attribute");
  std::string test;
  if (a.positional.size() > named) {
    if (!a.positional[named].as_text()) fail("the name of a test is a {}", a.positional[named].type_name());
    test = a.positional[named].as_text()->bytes;
  }
  if (!v.truth()) return list_of(m, {});  // none, too, as in Jinja
  std::vector<value> out;
  for (const value& item : items_of(m, v)) {
    const value judged = by_attribute ? at_attribute(m, item, a.positional[0]) : item;
    bool holds = judged.truth();
    if (!test.empty()) {
      arguments rest{{a.positional.begin() + static_cast<std::ptrdiff_t>(named) + 1, a.positional.end()},
                     a.named};
      holds = run_test(m, test, judged, rest);
    }
    if (holds == wanted) out.push_back(item);
  }
  return list_of(m, std::move(out));
}

value join(machine& m, const value& v, arguments& a) {
  parameters p(m, "join", a);
  const value* between = p.find("d");
  const value* attribute = p.find("attribute");
  p.end();
  const text_ptr by = between ? to_text(m.memory, *between) : make_text(m.memory, "");
  text_builder out(m.memory);
  bool first = true;
  for (const value& item : items_of(m, v)) {
    if (!std::exchange(first, false)) out.add(*by);
    print(out, attribute && !attribute->is_none() ? at_attribute(m, item, *attribute) : item);
  }
  return out.finish();
}

value sum(machine& m, const value& v, arguments& a) {
  parameters p(m, "sum", a);
  const value* attribute = p.find("attribute");
  const value* start = p.find("start");
  p.end();
  value total = start ? *start : value(std::int64_t{0});
  for (const value& item : items_of(m, v))
    total = add(m, total, attribute && !attribute->is_none() ? at_attribute(m, item, *attribute) : item);
  return total;
}

value first(machine& m, const value& v, arguments&) {
  std::vector<value> items = items_of(m, v);
  return items.empty() ? value() : items.front();
}
value last(machine& m, const value& v, arguments&) {
  std::vector<value> items = items_of(m, v);
  return items.empty() ? value() : items.back();
}
value as_list(machine& m, const value& v, arguments&) { return list_of(m, items_of(m, v)); }
value pairs(machine& m, const value& v, arguments&) {
  if (v.is_undefined()) return list_of(m, {});
  if (!v.as_dict()) fail("items: a {} is no dict", v.type_name());
  arguments none;
  return call_method(m, v, "items", none);
}

value reversed(machine& m, const value& v, arguments&) {
  if (v.as_text()) {
    text_builder out(m.memory);
    std::vector<value> characters = items_of(m, v);
    for (std::size_t i = characters.size(); i > 0; --i) out.add(*characters[i - 1].as_text());
    return out.finish();
  }
  std::vector<value> items = items_of(m, v);
  std::ranges::reverse(items);
  return list_of(m, std::move(items));
}

// Lists of `size` items; the last is filled up if there is something to fill it with.
value batch(machine& m, const value& v, arguments& a) {
  parameters p(m, "batch", a);
  const std::int64_t size = p.integer("linecount").value_or(0);
  const value* fill = p.find("fill_with");
  p.end();
  if (size < 1 || size > 100'000) fail("batch: a size of {}", size);
  std::vector<value> out, row;
  for (value& item : items_of(m, v)) {
    row.push_back(std::move(item));
    if (static_cast<std::int64_t>(row.size()) == size) out.push_back(list_of(m, std::exchange(row, {})));
  }
  if (!row.empty()) {
    if (fill && !fill->is_none()) row.resize(static_cast<std::size_t>(size), *fill);
    out.push_back(list_of(m, std::move(row)));
  }
  return list_of(m, std::move(out));
}

// `count` lists of nearly the same size.
value slice(machine& m, const value& v, arguments& a) {
  parameters p(m, "slice", a);
  const std::int64_t count = p.integer("slices").value_or(0);
  const value* fill = p.find("fill_with");
  p.end();
  if (count < 1 || count > 100'000) fail("slice: {} slices", count);
  const std::vector<value> items = items_of(m, v);
  const std::size_t n = static_cast<std::size_t>(count), each = items.size() / n, more = items.size() % n;
  std::vector<value> out;
  std::size_t at = 0;
  for (std::size_t i = 0; i < n; ++i) {
    const std::size_t size = each + (i < more ? 1 : 0);
    std::vector<value> row(items.begin() + static_cast<std::ptrdiff_t>(at),
                           items.begin() + static_cast<std::ptrdiff_t>(at + size));
    at += size;
    if (fill && !fill->is_none() && i >= more) row.push_back(*fill);
    out.push_back(list_of(m, std::move(row)));
  }
  return list_of(m, std::move(out));
}

constexpr filter_row sequence_rows[] = {
    {"batch", batch},
    {"dictsort", sort_dict},
    {"first", first},
    {"groupby", grouped_by},
    {"items", pairs},
    {"join", join},
    {"last", last},
    {"list", as_list},
    {"map", map},
    {"max", extreme<true>},
    {"min", extreme<false>},
    {"reject", chosen<false, false>},
    {"rejectattr", chosen<false, true>},
    {"reverse", reversed},
    {"select", chosen<true, false>},
    {"selectattr", chosen<true, true>},
    {"slice", slice},
    {"sort", sort},
    {"sum", sum},
    {"unique", unique},
};

}  // namespace

std::span<const filter_row> sequence_filters() { return sequence_rows; }

}  // namespace weir::core::jinja
