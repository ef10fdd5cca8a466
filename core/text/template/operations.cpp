// What operators and subscripts do with values.
#include <algorithm>
#include <cmath>

#include "core/text/template/machine.h"
#include "core/text/tokenizer/unicode.h"

namespace weir::core::jinja {
namespace {

undefined missing(machine& m, const value& of, std::string_view name) {
  return {make_text(m.memory,
                    fmt::format("'{}' object has no attribute '{}'", of.type_name(), name.substr(0, 64)))};
}

[[noreturn]] void undefined_used(const value& v) {
  const text_ptr& what = v.get<undefined>()->what;
  fail("{}", what ? what->bytes : std::string("a value is undefined"));
}

// A method that is read without being called.
struct bound_method final : callable_object {
  value self;
  std::string name;
  bound_method(value of, std::string_view name) : self(std::move(of)), name(name) {}
  const char* type_name() const noexcept override { return "method"; }
  value call(machine& m, arguments& a) override { return call_method(m, self, name, a); }
};

// The place that an index means, counted from the end where it is negative; nullopt: outside.
std::optional<std::size_t> place_of(std::int64_t index, std::size_t size) {
  const auto n = static_cast<std::int64_t>(size);
  if (index < 0) index += n;
  return index >= 0 && index < n ? std::optional(static_cast<std::size_t>(index)) : std::nullopt;
}

// A character of a text.
value character_of(machine& m, const text_ptr& t, std::size_t n) {
  m.memory.copy(t->bytes.size());
  const std::size_t begin = byte_of(t->bytes, n);
  return part_of(m.memory, t, begin, begin + character_size(t->bytes[begin]));
}

struct slice_range {
  std::int64_t from, step;
  std::size_t count;
};

// The rule of Python's slice.indices().
slice_range slice_in(std::size_t size, const value& from, const value& to, const value& step) {
  const auto whole = [](const value& v, std::int64_t otherwise) {
    if (v.is_none() || v.is_undefined()) return otherwise;
    if (!v.as_integer()) fail("a bound of a slice is a {}, not an int", v.type_name());
    return *v.as_integer();
  };
  const auto n = static_cast<std::int64_t>(size);
  const std::int64_t by = whole(step, 1);
  if (by == 0) fail("the step of a slice is 0");
  const std::int64_t least = by < 0 ? -1 : 0, most = by < 0 ? n - 1 : n;
  const auto bound = [&](std::int64_t at) {
    if (at < 0) at = at < -n ? least : at + n;
    return std::clamp(at, least, most);
  };
  const std::int64_t begin = from.is_none() ? (by < 0 ? most : least) : bound(whole(from, 0));
  const std::int64_t end = to.is_none() ? (by < 0 ? least : most) : bound(whole(to, 0));
  // In unsigned numbers, since the step may be the smallest integer.
  const auto gap = static_cast<std::uint64_t>(by < 0 ? begin - end : end - begin);
  const auto each = by < 0 ? ~static_cast<std::uint64_t>(by) + 1 : static_cast<std::uint64_t>(by);
  const bool none_at_all = by < 0 ? begin <= end : end <= begin;
  return {begin, by, none_at_all ? 0 : static_cast<std::size_t>((gap - 1) / each + 1)};
}

value slice_of_text(machine& m, const text_ptr& t, const value& from, const value& to, const value& step) {
  m.memory.read(t->bytes.size());
  const bool plain = t->ascii();
  const slice_range r = slice_in(plain ? t->bytes.size() : count_characters(t->bytes), from, to, step);
  const auto at = static_cast<std::size_t>(r.from);
  if (r.count == 0) return m.make_text("");
  if (r.step == 1) {
    const std::size_t begin = plain ? at : byte_of(t->bytes, at);
    const std::size_t size = plain ? r.count : byte_of(std::string_view(t->bytes).substr(begin), r.count);
    return part_of(m.memory, t, begin, begin + size);
  }
  std::vector<std::size_t> places;  // of each character
  for (std::size_t i = 0; i < t->bytes.size(); i += character_size(t->bytes[i])) places.push_back(i);
  m.memory.step(places.size() / 4);
  text_builder out(m.memory);
  for (std::size_t i = 0; i < r.count; ++i) {
    const auto n = static_cast<std::size_t>(r.from + static_cast<std::int64_t>(i) * r.step);
    out.add_part(*t, places[n], places[n] + character_size(t->bytes[places[n]]));
  }
  return out.finish();
}

value repeated(machine& m, const value& x, std::int64_t times) {
  text_builder out(m.memory);
  std::vector<value> items;
  for (std::int64_t i = 0; i < times; ++i) {
    if (const text* t = x.as_text()) {
      if (t->bytes.empty()) break;
      out.add(*t);
    } else {
      const auto& part = x.as_list()->items;
      if (part.empty()) break;
      m.memory.step(1 + part.size());
      items.insert(items.end(), part.begin(), part.end());
    }
  }
  if (x.as_text()) return out.finish();
  return make_list(m.memory, std::move(items), x.as_list()->tuple);
}

[[noreturn]] void too_large() { fail("an integer has more than 64 bits"); }

std::int64_t floor_divided(std::int64_t x, std::int64_t y) {
  if (x == std::numeric_limits<std::int64_t>::min() && y == -1) too_large();
  return x / y - (x % y != 0 && (x < 0) != (y < 0));
}

std::int64_t power(std::int64_t base, std::int64_t exponent) {
  if (base == 0 || base == 1) return exponent == 0 ? 1 : base;
  if (base == -1) return exponent % 2 == 0 ? 1 : -1;
  std::int64_t out = 1;
  for (; exponent > 0; --exponent)
    if (__builtin_mul_overflow(out, base, &out)) too_large();
  return out;
}

// nullopt: the operator has no integer as its result for these.
std::optional<std::int64_t> integer_result(std::string_view op, std::int64_t x, std::int64_t y) {
  std::int64_t out = 0;
  if (op == "-" && __builtin_sub_overflow(x, y, &out)) too_large();
  if (op == "*" && __builtin_mul_overflow(x, y, &out)) too_large();
  if (op == "-" || op == "*") return out;
  if (op == "**") return y < 0 ? std::nullopt : std::optional(power(x, y));
  if (op == "/") return std::nullopt;
  if (y == 0) fail("division by zero");
  return op == "//" ? floor_divided(x, y)
                    : (y == -1 ? 0 : x % y + (x % y != 0 && (x < 0) != (y < 0) ? y : 0));
}

double float_result(std::string_view op, double x, double y) {
  if (op == "-") return x - y;
  if (op == "*") return x * y;
  if (op == "**") return std::pow(x, y);
  if (y == 0) fail("division by zero");
  if (op == "/") return x / y;
  if (op == "//") return std::floor(x / y);
  const double rest = std::fmod(x, y);
  return rest != 0 && (rest < 0) != (y < 0) ? rest + y : rest;
}

}  // namespace

value member_of(machine& m, const value& v, std::string_view name) {
  if (v.is_undefined()) undefined_used(v);
  if (name.starts_with("_")) return missing(m, v, name);  // the sandbox shows nothing of its own
  if (const object* o = v.as_object()) {
    value found = o->member(m.memory, name);
    return found.is_undefined() ? value(missing(m, v, name)) : found;
  }
  if (has_method(v, name)) return object_ptr(std::make_shared<bound_method>(v, name));
  if (const dict* d = v.as_dict())
    if (const value* found = d->find(m.memory, name)) return *found;
  // What groupby gives: a pair with names.
  if (const list* l = v.as_list(); l && l->tuple && l->items.size() == 2) {
    if (name == "grouper") return l->items[0];
    if (name == "list") return l->items[1];
  }
  return missing(m, v, name);
}

value item_of(machine& m, const value& v, const value& key) {
  if (v.is_undefined()) undefined_used(v);
  const text* name = key.as_text();
  if (const dict* d = v.as_dict()) {
    if (const value* found = d->find(m.memory, key)) return *found;
    if (name && has_method(v, name->bytes)) return member_of(m, v, name->bytes);
    return missing(m, v, name ? name->bytes : to_text(m.memory, key)->bytes);
  }
  if (const auto index = key.as_integer()) {
    if (const list* l = v.as_list()) {
      const auto at = place_of(*index, l->items.size());
      return at ? l->items[*at] : value(missing(m, v, std::to_string(*index)));
    }
    if (const auto* t = v.get<text_ptr>()) {
      const auto at = place_of(*index, length_of(m, v));
      return at ? character_of(m, *t, *at) : value(missing(m, v, std::to_string(*index)));
    }
  }
  if (name) return member_of(m, v, name->bytes);
  return missing(m, v, to_text(m.memory, key)->bytes);
}

value slice_of(machine& m, const value& v, const value& from, const value& to, const value& step) {
  if (v.is_undefined()) undefined_used(v);
  if (const auto* t = v.get<text_ptr>()) return slice_of_text(m, *t, from, to, step);
  const list* l = v.as_list();
  if (!l) fail("a {} has no slices", v.type_name());
  const slice_range r = slice_in(l->items.size(), from, to, step);
  std::vector<value> out;
  out.reserve(r.count);
  for (std::size_t i = 0; i < r.count; ++i)
    out.push_back(l->items[static_cast<std::size_t>(r.from + static_cast<std::int64_t>(i) * r.step)]);
  return make_list(m.memory, std::move(out), l->tuple);
}

value call(machine& m, const value& f, arguments& a) {
  if (f.is_undefined()) undefined_used(f);
  object* o = f.as_object();
  if (!o || !o->callable()) fail("a {} cannot be called", f.type_name());
  return static_cast<callable_object*>(o)->call(m, a);
}

std::vector<value> items_of(machine& m, const value& v) {
  if (v.is_undefined()) return {};
  if (const list* l = v.as_list()) {
    m.memory.step(1 + l->items.size() / 4);
    return l->items;
  }
  std::vector<value> out;
  if (const dict* d = v.as_dict()) {
    m.memory.step(1 + d->members.size() / 4);
    for (const auto& [key, member] : d->members) out.push_back(key);
    return out;
  }
  const auto* t = v.get<text_ptr>();
  if (!t) fail("a {} has no items", v.type_name());
  for (std::size_t i = 0; i < (*t)->bytes.size();) {
    const std::size_t size = character_size((*t)->bytes[i]);
    out.push_back(part_of(m.memory, *t, i, i + size));
    i += size;
  }
  return out;
}

std::size_t length_of(machine& m, const value& v) {
  if (v.is_undefined()) return 0;
  if (const list* l = v.as_list()) return l->items.size();
  if (const dict* d = v.as_dict()) return d->members.size();
  if (const text* t = v.as_text()) {
    m.memory.copy(t->bytes.size());
    return count_characters(t->bytes);
  }
  fail("a {} has no length", v.type_name());
}

bool contains(machine& m, const value& whole, const value& part) {
  if (const text* t = whole.as_text()) {
    const text* p = part.as_text();
    if (!p) fail("a {} cannot be in a str", part.type_name());
    return first_place(m.memory, t->bytes, p->bytes) != std::string::npos;
  }
  if (const dict* d = whole.as_dict()) return d->find(m.memory, part) != nullptr;
  if (const list* l = whole.as_list())
    return std::ranges::any_of(l->items, [&](const value& v) { return equal(m.memory, v, part); });
  if (whole.is_undefined()) return false;
  fail("nothing can be in a {}", whole.type_name());
}

value add(machine& m, const value& x, const value& y) {
  if (x.is_undefined()) undefined_used(x);
  if (y.is_undefined()) undefined_used(y);
  if (const text* t = x.as_text(), *u = y.as_text(); t && u) {
    text_builder out(m.memory);
    const bool markup = t->markup || u->markup;
    out.add(markup && !t->markup ? *escaped(m.memory, *t) : *t);
    out.add(markup && !u->markup ? *escaped(m.memory, *u) : *u);
    return out.finish(markup);
  }
  if (const auto i = x.as_integer(), j = y.as_integer(); i && j) {
    std::int64_t sum = 0;
    if (__builtin_add_overflow(*i, *j, &sum)) too_large();
    return sum;
  }
  if (const auto i = x.as_number(), j = y.as_number(); i && j) return *i + *j;
  const list *l = x.as_list(), *r = y.as_list();
  if (!l || !r || l->tuple != r->tuple) fail("a {} and a {} cannot be added", x.type_name(), y.type_name());
  m.memory.step((l->items.size() + r->items.size()) / 4);
  std::vector<value> all = l->items;
  all.insert(all.end(), r->items.begin(), r->items.end());
  return make_list(m.memory, std::move(all), l->tuple);
}

value calculate(machine& m, std::string_view op, const value& x, const value& y) {
  if (x.is_undefined()) undefined_used(x);
  if (y.is_undefined()) undefined_used(y);
  const bool repeatable = x.as_text() || x.as_list();
  if (op == "*" && repeatable && y.as_integer()) return repeated(m, x, *y.as_integer());
  if (op == "*" && (y.as_text() || y.as_list()) && x.as_integer()) return repeated(m, y, *x.as_integer());
  if (op == "%" && x.as_text()) {
    const list* l = y.as_list();
    return percent_format(m, *x.as_text(), l && l->tuple ? l->items : std::vector<value>{y});
  }
  if (const auto i = x.as_integer(), j = y.as_integer(); i && j)
    if (const auto n = integer_result(op, *i, *j)) return *n;
  const auto i = x.as_number(), j = y.as_number();
  if (!i || !j) fail("'{}' has no meaning for a {} and a {}", op, x.type_name(), y.type_name());
  return float_result(op, *i, *j);
}

}  // namespace weir::core::jinja
