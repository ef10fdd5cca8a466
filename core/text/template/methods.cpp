// The methods of dicts and lists that a template can call, as in Python. Those that change their value are
// refused, as transformers' sandbox does.
#include "core/text/template/methods.h"

namespace weir::core::jinja {
namespace {

// ---- dicts

value dict_items(machine& m, const value& self, parameters&) {
  std::vector<value> out;
  for (const auto& [key, v] : self.as_dict()->members) out.push_back(make_list(m.memory, {key, v}, true));
  return make_list(m.memory, std::move(out));
}
value dict_keys(machine& m, const value& self, parameters&) { return make_list(m.memory, items_of(m, self)); }
value dict_values(machine& m, const value& self, parameters&) {
  std::vector<value> out;
  for (const auto& [key, v] : self.as_dict()->members) out.push_back(v);
  return make_list(m.memory, std::move(out));
}
value dict_get(machine& m, const value& self, parameters& p) {
  const value* found = self.as_dict()->find(m.memory, p.need("key"));
  const value* otherwise = p.find("default");
  return found ? *found : otherwise ? *otherwise : value(none());
}
value same(machine&, const value& self, parameters&) { return self; }
value changing(machine&, const value& self, parameters&) {
  fail("a template cannot change a {}", self.type_name());
}

constexpr method_row dict_methods[] = {
    {"items", dict_items}, {"keys", dict_keys},      {"values", dict_values}, {"get", dict_get},
    {"copy", same},        {"update", changing},     {"pop", changing},       {"popitem", changing},
    {"clear", changing},   {"setdefault", changing},
};

// ---- lists

value list_index(machine& m, const value& self, parameters& p) {
  const value& what = p.need("value");
  const auto& items = self.as_list()->items;
  for (std::size_t i = 0; i < items.size(); ++i)
    if (equal(m.memory, items[i], what)) return value::number(i);
  fail("index(): the value is not there");
}
value list_count(machine& m, const value& self, parameters& p) {
  const value& what = p.need("value");
  return static_cast<std::int64_t>(
      std::ranges::count_if(self.as_list()->items, [&](const value& v) { return equal(m.memory, v, what); }));
}

constexpr method_row list_methods[] = {
    {"index", list_index}, {"count", list_count}, {"copy", same},        {"append", changing},
    {"extend", changing},  {"insert", changing},  {"pop", changing},     {"remove", changing},
    {"clear", changing},   {"sort", changing},    {"reverse", changing},
};

const method_row* find_row(std::span<const method_row> rows, std::string_view name) {
  const auto at = std::ranges::find(rows, name, &method_row::name);
  return at == rows.end() ? nullptr : &*at;
}

const method_row* find_method(const value& self, std::string_view name) {
  if (self.as_text()) return find_row(text_methods(), name);
  if (self.as_dict()) return find_row(dict_methods, name);
  if (self.as_list()) return find_row(list_methods, name);
  return nullptr;
}

}  // namespace

bool has_method(const value& self, std::string_view name) {
  return find_method(self, name) || (self.as_text() && name == "format");
}

value call_method(machine& m, const value& self, std::string_view name, arguments& a) {
  if (self.as_text() && name == "format") return brace_format(m, *self.as_text(), a);
  parameters p(m, name, a);
  value out = find_method(self, name)->run(m, self, p);
  p.end();
  return out;
}

}  // namespace weir::core::jinja
