#include "core/text/template/value.h"

#include <algorithm>
#include <bit>
#include <cmath>

namespace weir::core::jinja {
namespace {

constexpr std::size_t few_members = 8;

// Roles of messages that count as template text.
constexpr std::string_view known_roles[] = {"system", "user",     "assistant",   "tool",  "developer",
                                            "model",  "function", "observation", "human", "ipython"};

bool is_known_role(std::string_view key, const boost::json::value& v) {
  if (key != "role" || !v.is_string()) return false;
  const std::string_view role = v.get_string();
  return std::ranges::find(known_roles, role) != std::ranges::end(known_roles);
}

std::uint32_t nested(std::uint32_t deepest, const value& v) {
  const auto depth = std::max(deepest, v.depth() + 1);
  if (depth > deepest_value) stop("a value nests deeper than {} levels", deepest_value);
  return depth;
}

std::strong_ordering order_of(double x, double y) {
  return x < y   ? std::strong_ordering::less
         : x > y ? std::strong_ordering::greater
                 : std::strong_ordering::equal;
}

bool equal_lists(budget& b, const list& x, const list& y) {
  if (x.tuple != y.tuple || x.items.size() != y.items.size()) return false;
  for (std::size_t i = 0; i < x.items.size(); ++i)
    if (!equal(b, x.items[i], y.items[i])) return false;
  return true;
}

bool equal_dicts(budget& b, const dict& x, const dict& y) {
  if (x.members.size() != y.members.size()) return false;
  for (const auto& [key, v] : x.members) {
    const value* other = y.find(b, key);
    if (!other || !equal(b, v, *other)) return false;
  }
  return true;
}

}  // namespace

std::optional<std::int64_t> value::as_integer() const noexcept {
  if (const auto* n = get<std::int64_t>()) return *n;
  if (const auto* t = get<bool>()) return *t;
  return std::nullopt;
}

std::optional<double> value::as_number() const noexcept {
  if (const auto* d = get<double>()) return *d;
  const auto n = as_integer();
  return n ? std::optional(static_cast<double>(*n)) : std::nullopt;
}

std::uint32_t value::depth() const noexcept {
  if (const list* l = as_list()) return l->depth;
  if (const dict* d = as_dict()) return d->depth;
  return 0;
}

bool value::has_object() const noexcept {
  if (const list* l = as_list()) return l->has_object;
  if (const dict* d = as_dict()) return d->has_object;
  return as_object() != nullptr;
}

bool value::truth() const noexcept {
  if (is_undefined() || is_none()) return false;
  if (const auto n = as_integer()) return *n != 0;
  if (const auto* d = get<double>()) return *d != 0;
  if (const text* t = as_text()) return !t->bytes.empty();
  if (const list* l = as_list()) return !l->items.empty();
  if (const dict* d = as_dict()) return !d->members.empty();
  return true;
}

const char* value::type_name() const noexcept {
  if (is_undefined()) return "Undefined";
  if (is_none()) return "NoneType";
  if (get<bool>()) return "bool";
  if (get<std::int64_t>()) return "int";
  if (get<double>()) return "float";
  if (as_text()) return "str";
  if (const list* l = as_list()) return l->tuple ? "tuple" : "list";
  if (as_dict()) return "dict";
  return as_object()->type_name();
}

bool equal(budget& b, const value& x, const value& y) {
  b.step();
  if (x.is_undefined() || y.is_undefined()) return x.is_undefined() && y.is_undefined();
  if (x.is_none() || y.is_none()) return x.is_none() && y.is_none();
  if (const auto i = x.as_integer(), j = y.as_integer(); i && j) return *i == *j;
  if (const auto i = x.as_number(), j = y.as_number(); i && j) return *i == *j;
  if (const text* t = x.as_text(), *u = y.as_text(); t && u) {
    b.copy(std::min(t->bytes.size(), u->bytes.size()));
    return t->bytes == u->bytes;
  }
  if (const list* l = x.as_list(), *m = y.as_list(); l && m) return l == m || equal_lists(b, *l, *m);
  if (const dict* d = x.as_dict(), *e = y.as_dict(); d && e) return d == e || equal_dicts(b, *d, *e);
  return x.as_object() && x.as_object() == y.as_object();
}

std::strong_ordering order(budget& b, const value& x, const value& y) {
  b.step();
  if (const auto i = x.as_integer(), j = y.as_integer(); i && j) return *i <=> *j;
  if (const auto i = x.as_number(), j = y.as_number(); i && j) return order_of(*i, *j);
  if (const text* t = x.as_text(), *u = y.as_text(); t && u) {
    b.copy(std::min(t->bytes.size(), u->bytes.size()));
    return t->bytes.compare(u->bytes) <=> 0;  // the order of UTF-8's bytes is that of the characters
  }
  if (const list* l = x.as_list(), *m = y.as_list(); l && m && l->tuple == m->tuple) {
    for (std::size_t i = 0; i < std::min(l->items.size(), m->items.size()); ++i)
      if (!equal(b, l->items[i], m->items[i])) return order(b, l->items[i], m->items[i]);
    return l->items.size() <=> m->items.size();
  }
  fail("a {} and a {} have no order", x.type_name(), y.type_name());
}

list::list(budget& b, std::vector<value> of, bool is_tuple)
    : items(std::move(of)), tuple(is_tuple), memory(b, sizeof(list) + items.size() * sizeof(value)) {
  b.allocate();
  b.step(items.size() / 4);
  for (const value& v : items) {
    depth = nested(depth, v);
    has_object |= v.has_object();
  }
}

dict::dict(budget& b, std::vector<std::pair<value, value>> of)
    : memory(b, sizeof(dict) + of.size() * (2 * sizeof(value) + 64)) {
  members.reserve(of.size());
  std::map<std::string_view, std::size_t> seen;
  for (auto& pair : of) {
    value &key = pair.first, &v = pair.second;
    b.step();
    depth = nested(depth, v);
    has_object |= v.has_object();
    const text* t = key.as_text();
    if (!t) {
      const auto same = std::ranges::find_if(members, [&](const auto& m) { return equal(b, m.first, key); });
      if (same != members.end())
        same->second = std::move(v);
      else
        members.emplace_back(std::move(key), std::move(v));
      continue;
    }
    b.step(t->bytes.size() / 32 * static_cast<unsigned>(std::bit_width(seen.size())));
    const auto [at, is_new] = seen.try_emplace(t->bytes, members.size());
    if (is_new)
      members.emplace_back(std::move(key), std::move(v));
    else
      members[at->second].second = std::move(v);
  }
  if (seen.size() > few_members) places = std::move(seen);
}

const value* dict::find(budget& b, std::string_view key) const {
  b.step((1 + key.size() / 32) * static_cast<unsigned>(std::bit_width(members.size())));
  if (!places.empty()) {
    const auto at = places.find(key);
    return at == places.end() ? nullptr : &members[at->second].second;
  }
  for (const auto& [name, v] : members)
    if (const text* t = name.as_text(); t && t->bytes == key) return &v;
  return nullptr;
}

const value* dict::find(budget& b, const value& key) const {
  if (const text* t = key.as_text()) return find(b, t->bytes);
  for (const auto& [name, v] : members)
    if (equal(b, name, key)) return &v;
  return nullptr;
}

value make_list(budget& b, std::vector<value> items, bool tuple) {
  return list_ptr(std::make_shared<const list>(b, std::move(items), tuple));
}

value make_dict(budget& b, std::vector<std::pair<value, value>> members) {
  return dict_ptr(std::make_shared<const dict>(b, std::move(members)));
}

value namespace_object::member(budget& b, std::string_view name) const {
  b.step(name.size() / 32 * static_cast<unsigned>(std::bit_width(members.size())));
  const auto at = members.find(name);
  return at == members.end() ? value() : at->second;
}

void namespace_object::set(std::string_view name, value v) {
  if (v.has_object()) fail("a member of a namespace cannot be a {}", v.type_name());
  const auto at = members.find(name);
  if (at != members.end()) {
    at->second = std::move(v);
    return;
  }
  memory.grow(name.size() + 128);
  members.emplace(name, std::move(v));
}

value from_json(budget& b, const boost::json::value& v, bool from_client) {
  switch (v.kind()) {
    case boost::json::kind::null:
      return none();
    case boost::json::kind::bool_:
      return v.get_bool();
    case boost::json::kind::int64:
      return v.get_int64();
    case boost::json::kind::uint64:
      fail("the number {} has more than 64 bits with its sign", v.get_uint64());
    case boost::json::kind::double_:
      return v.get_double();
    case boost::json::kind::string:
      return make_text(b, v.get_string(), from_client);
    case boost::json::kind::array: {
      std::vector<value> items;
      items.reserve(v.get_array().size());
      for (const auto& item : v.get_array()) items.push_back(from_json(b, item, from_client));
      return make_list(b, std::move(items));
    }
    case boost::json::kind::object: {
      std::vector<std::pair<value, value>> members;
      members.reserve(v.get_object().size());
      for (const auto& [key, member] : v.get_object())
        members.emplace_back(make_text(b, key, from_client),
                             from_json(b, member, from_client && !is_known_role(key, member)));
      return make_dict(b, std::move(members));
    }
  }
  return {};
}

}  // namespace weir::core::jinja
