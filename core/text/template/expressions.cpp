#include <algorithm>

#include "core/text/template/tree.h"

namespace weir::core::jinja {

value expression::of(machine& m) const {
  const budget::level deeper(m.memory);
  m.memory.step();
  try {
    return evaluate(m);
  } catch (failure& f) {
    if (f.line == 0) f.line = line;
    throw;
  }
}

arguments call_arguments::of(machine& m) const {
  arguments a;
  for (const auto& e : positional) a.positional.push_back(e->of(m));
  if (more_positional)
    for (value& v : items_of(m, more_positional->of(m))) a.positional.push_back(std::move(v));
  for (const auto& [name, e] : named) a.named.emplace_back(name, e->of(m));
  if (!more_named) return a;
  const value more = more_named->of(m);
  const dict* d = more.as_dict();
  if (!d) fail("the argument behind ** is a {}, not a dict", more.type_name());
  for (const auto& [key, v] : d->members) {
    const text_ptr name = to_text(m.memory, key);
    m.memory.copy(name->bytes.size());
    a.named.emplace_back(name->bytes, v);
  }
  return a;
}

namespace {

// The depth of an expression with these parts.
template <class... Parts>
std::uint32_t above(const Parts&... parts) {
  std::uint32_t deepest = 0;
  const auto see = [&](const auto& p) {
    if constexpr (requires { p->depth; }) {
      if (p) deepest = std::max(deepest, p->depth);
    } else {
      for (const auto& e : p) deepest = std::max(deepest, e->depth);
    }
  };
  (see(parts), ...);
  return deepest + 1;
}

std::uint32_t above_arguments(const expression_ptr& of, const call_arguments& a) {
  std::uint32_t depth = std::max(above(of, a.more_positional, a.more_named), above(a.positional));
  for (const auto& [name, e] : a.named) depth = std::max(depth, e->depth + 1);
  return depth;
}

struct constant final : expression {
  value v;
  constant(std::uint32_t line, value v) : expression(line), v(std::move(v)) {}
  value evaluate(machine&) const override { return v; }
};

struct text_constant final : expression {
  text_ptr s;
  text_constant(std::uint32_t line, std::string s)
      : expression(line), s(std::make_shared<const text>(std::move(s))) {}
  value evaluate(machine&) const override { return s; }
};

struct name_expression final : expression {
  symbol name;
  name_expression(std::uint32_t line, symbol name) : expression(line), name(name) {}
  value evaluate(machine& m) const override { return m.look_up(name); }
};

struct list_expression final : expression {
  std::vector<expression_ptr> items;
  bool tuple;
  list_expression(std::uint32_t line, std::vector<expression_ptr> of, bool tuple)
      : expression(line), items(std::move(of)), tuple(tuple) {
    depth = above(items);
  }
  value evaluate(machine& m) const override {
    std::vector<value> out;
    out.reserve(items.size());
    for (const auto& e : items) out.push_back(e->of(m));
    return jinja::make_list(m.memory, std::move(out), tuple);
  }
};

struct dict_expression final : expression {
  std::vector<std::pair<expression_ptr, expression_ptr>> members;
  dict_expression(std::uint32_t line, std::vector<std::pair<expression_ptr, expression_ptr>> of)
      : expression(line), members(std::move(of)) {
    for (const auto& [key, v] : members) depth = std::max(depth, above(key, v));
  }
  value evaluate(machine& m) const override {
    std::vector<std::pair<value, value>> out;
    out.reserve(members.size());
    for (const auto& [key, v] : members) {
      value k = key->of(m);
      if (k.as_dict() || (k.as_list() && !k.as_list()->tuple)) fail("a {} cannot be a key", k.type_name());
      out.emplace_back(std::move(k), v->of(m));
    }
    return jinja::make_dict(m.memory, std::move(out));
  }
};

struct not_expression final : expression {
  expression_ptr e;
  not_expression(std::uint32_t line, expression_ptr of) : expression(line), e(std::move(of)) {
    depth = above(e);
  }
  value evaluate(machine& m) const override { return !e->of(m).truth(); }
};

struct sign_expression final : expression {
  bool minus;
  expression_ptr e;
  sign_expression(std::uint32_t line, bool minus, expression_ptr of)
      : expression(line), minus(minus), e(std::move(of)) {
    depth = above(e);
  }
  value evaluate(machine& m) const override {
    const value v = e->of(m);
    if (!v.as_number()) fail("a {} has no sign", v.type_name());
    if (!minus) return v.as_integer() ? value(*v.as_integer()) : v;
    return calculate(m, "-", v.as_integer() ? value(std::int64_t{0}) : value(-0.0), v);
  }
};

struct binary_expression final : expression {
  std::string op;
  expression_ptr x, y;
  binary_expression(std::uint32_t line, std::string op, expression_ptr left, expression_ptr right)
      : expression(line), op(std::move(op)), x(std::move(left)), y(std::move(right)) {
    depth = above(x, y);
  }
  value evaluate(machine& m) const override {
    const value left = x->of(m), right = y->of(m);
    return op == "+" ? add(m, left, right) : calculate(m, op, left, right);
  }
};

struct logic_expression final : expression {
  bool is_and;
  std::vector<expression_ptr> operands;
  logic_expression(std::uint32_t line, bool is_and, std::vector<expression_ptr> of)
      : expression(line), is_and(is_and), operands(std::move(of)) {
    depth = above(operands);
  }
  value evaluate(machine& m) const override {
    value v;
    for (const auto& e : operands) {
      v = e->of(m);
      if (v.truth() != is_and) return v;
    }
    return v;
  }
};

struct concatenation final : expression {
  std::vector<expression_ptr> operands;
  concatenation(std::uint32_t line, std::vector<expression_ptr> of)
      : expression(line), operands(std::move(of)) {
    depth = above(operands);
  }
  value evaluate(machine& m) const override {
    text_builder out(m.memory);
    for (const auto& e : operands) print(out, e->of(m));
    return out.finish();
  }
};

bool compares(machine& m, std::string_view op, const value& x, const value& y) {
  if (op == "==") return equal(m.memory, x, y);
  if (op == "!=") return !equal(m.memory, x, y);
  if (op == "in") return contains(m, y, x);
  if (op == "not in") return !contains(m, y, x);
  const auto o = order(m.memory, x, y);
  return op == "<" ? o < 0 : op == "<=" ? o <= 0 : op == ">" ? o > 0 : o >= 0;
}

struct comparison final : expression {
  expression_ptr first;
  std::vector<std::pair<std::string, expression_ptr>> rest;
  comparison(std::uint32_t line, expression_ptr of,
             std::vector<std::pair<std::string, expression_ptr>> others)
      : expression(line), first(std::move(of)), rest(std::move(others)) {
    depth = above(first);
    for (const auto& [op, e] : rest) depth = std::max(depth, e->depth + 1);
  }
  value evaluate(machine& m) const override {
    value x = first->of(m);
    for (const auto& [op, e] : rest) {
      value y = e->of(m);
      if (!compares(m, op, x, y)) return false;
      x = std::move(y);
    }
    return true;
  }
};

struct condition final : expression {
  expression_ptr test, yes, no;
  condition(std::uint32_t line, expression_ptr when, expression_ptr then, expression_ptr otherwise)
      : expression(line), test(std::move(when)), yes(std::move(then)), no(std::move(otherwise)) {
    depth = above(test, yes, no);
  }
  value evaluate(machine& m) const override {
    if (test->of(m).truth()) return yes->of(m);
    return no ? no->of(m) : value();
  }
};

struct member_expression final : expression {
  expression_ptr e;
  std::string name;
  member_expression(std::uint32_t line, expression_ptr of, std::string name)
      : expression(line), e(std::move(of)), name(std::move(name)) {
    depth = above(e);
  }
  value evaluate(machine& m) const override { return member_of(m, e->of(m), name); }
};

struct item_expression final : expression {
  expression_ptr e, key;
  item_expression(std::uint32_t line, expression_ptr of, expression_ptr at)
      : expression(line), e(std::move(of)), key(std::move(at)) {
    depth = above(e, key);
  }
  value evaluate(machine& m) const override {
    const value whole = e->of(m);
    return item_of(m, whole, key->of(m));
  }
};

struct slice_expression final : expression {
  expression_ptr e, from, to, step;
  slice_expression(std::uint32_t line, expression_ptr of, expression_ptr a, expression_ptr b,
                   expression_ptr c)
      : expression(line), e(std::move(of)), from(std::move(a)), to(std::move(b)), step(std::move(c)) {
    depth = above(e, from, to, step);
  }
  value evaluate(machine& m) const override {
    const auto part = [&](const expression_ptr& p) { return p ? p->of(m) : value(none()); };
    const value whole = e->of(m), a = part(from), b = part(to);
    return slice_of(m, whole, a, b, part(step));
  }
};

struct call_expression final : expression {
  expression_ptr e;
  call_arguments a;
  call_expression(std::uint32_t line, expression_ptr of, call_arguments with)
      : expression(line), e(std::move(of)), a(std::move(with)) {
    depth = above_arguments(e, a);
  }
  value evaluate(machine& m) const override {
    if (const auto* member = dynamic_cast<const member_expression*>(e.get())) {
      const value self = member->e->of(m);
      if (has_method(self, member->name)) {
        arguments with = a.of(m);
        return call_method(m, self, member->name, with);
      }
      const value f = member_of(m, self, member->name);
      arguments with = a.of(m);
      return call(m, f, with);
    }
    const value f = e->of(m);
    arguments with = a.of(m);
    return call(m, f, with);
  }
};

struct filter_expression final : expression {
  expression_ptr e;
  std::string name;
  call_arguments a;
  filter_expression(std::uint32_t line, expression_ptr of, std::string name, call_arguments with)
      : expression(line), e(std::move(of)), name(std::move(name)), a(std::move(with)) {
    depth = above_arguments(e, a);
  }
  value evaluate(machine& m) const override {
    const value subject = e->of(m);
    arguments with = a.of(m);
    return run_filter(m, name, subject, with);
  }
};

struct test_expression final : expression {
  expression_ptr e;
  std::string name;
  call_arguments a;
  bool negated;
  test_expression(std::uint32_t line, expression_ptr of, std::string name, call_arguments with, bool negated)
      : expression(line), e(std::move(of)), name(std::move(name)), a(std::move(with)), negated(negated) {
    depth = above_arguments(e, a);
  }
  value evaluate(machine& m) const override {
    const value subject = e->of(m);
    arguments with = a.of(m);
    return run_test(m, name, subject, with) != negated;
  }
};

template <class T, class... A>
expression_ptr make(A&&... a) {
  return std::make_unique<T>(std::forward<A>(a)...);
}

}  // namespace

expression_ptr make_constant(std::uint32_t line, value v) { return make<constant>(line, std::move(v)); }
expression_ptr make_text_constant(std::uint32_t line, std::string text) {
  return make<text_constant>(line, std::move(text));
}
expression_ptr make_name(std::uint32_t line, symbol name) { return make<name_expression>(line, name); }
expression_ptr make_list(std::uint32_t line, std::vector<expression_ptr> items, bool tuple) {
  return make<list_expression>(line, std::move(items), tuple);
}
expression_ptr make_dict(std::uint32_t line, std::vector<std::pair<expression_ptr, expression_ptr>> members) {
  return make<dict_expression>(line, std::move(members));
}
expression_ptr make_not(std::uint32_t line, expression_ptr of) {
  return make<not_expression>(line, std::move(of));
}
expression_ptr make_sign(std::uint32_t line, bool minus, expression_ptr of) {
  return make<sign_expression>(line, minus, std::move(of));
}
expression_ptr make_binary(std::uint32_t line, std::string op, expression_ptr x, expression_ptr y) {
  return make<binary_expression>(line, std::move(op), std::move(x), std::move(y));
}
expression_ptr make_logic(std::uint32_t line, bool is_and, std::vector<expression_ptr> operands) {
  return make<logic_expression>(line, is_and, std::move(operands));
}
expression_ptr make_concatenation(std::uint32_t line, std::vector<expression_ptr> operands) {
  return make<concatenation>(line, std::move(operands));
}
expression_ptr make_comparison(std::uint32_t line, expression_ptr first,
                               std::vector<std::pair<std::string, expression_ptr>> rest) {
  return make<comparison>(line, std::move(first), std::move(rest));
}
expression_ptr make_condition(std::uint32_t line, expression_ptr test, expression_ptr yes,
                              expression_ptr no) {
  return make<condition>(line, std::move(test), std::move(yes), std::move(no));
}
expression_ptr make_member(std::uint32_t line, expression_ptr of, std::string name) {
  return make<member_expression>(line, std::move(of), std::move(name));
}
expression_ptr make_item(std::uint32_t line, expression_ptr of, expression_ptr key) {
  return make<item_expression>(line, std::move(of), std::move(key));
}
expression_ptr make_slice(std::uint32_t line, expression_ptr of, expression_ptr from, expression_ptr to,
                          expression_ptr step) {
  return make<slice_expression>(line, std::move(of), std::move(from), std::move(to), std::move(step));
}
expression_ptr make_call(std::uint32_t line, expression_ptr of, call_arguments a) {
  return make<call_expression>(line, std::move(of), std::move(a));
}
expression_ptr make_filter(std::uint32_t line, expression_ptr of, std::string name, call_arguments a) {
  return make<filter_expression>(line, std::move(of), std::move(name), std::move(a));
}
expression_ptr make_test(std::uint32_t line, expression_ptr of, std::string name, call_arguments a,
                         bool negated) {
  return make<test_expression>(line, std::move(of), std::move(name), std::move(a), negated);
}

}  // namespace weir::core::jinja
