#include <algorithm>

#include "core/text/template/tree.h"

namespace weir::core::jinja {

flow statement::run(machine& m) const {
  const budget::level deeper(m.memory);
  m.memory.step();
  try {
    return execute(m);
  } catch (failure& f) {
    if (f.line == 0) f.line = line;
    throw;
  }
}

flow run(machine& m, const block& b) {
  for (const auto& s : b)
    if (const flow how = s->run(m); how != flow::next) return how;
  return flow::next;
}

void assign(machine& m, const target& to, const value& v) {
  if (!to.items.empty()) {
    const std::vector<value> parts = items_of(m, v);
    if (parts.size() != to.items.size())
      fail("{} values cannot be assigned to {} names", parts.size(), to.items.size());
    for (std::size_t i = 0; i < parts.size(); ++i) assign(m, to.items[i], parts[i]);
  } else if (to.member.empty()) {
    m.set(to.name, v);
  } else {
    const value owner = m.look_up(to.name);
    auto* names = dynamic_cast<namespace_object*>(owner.as_object());
    if (!names) fail("only a member of a namespace can be set, and {} is none", m.name_of(to.name));
    names->set(to.member, v);
  }
}

namespace {

// What a block prints.
text_ptr printed(machine& m, const block& b) {
  text_builder out(m.memory);
  const machine::capture into(m, out);
  run(m, b);
  return out.finish();
}

value filtered(machine& m, value v, const std::vector<filter_step>& filters) {
  for (const filter_step& f : filters) {
    arguments a = f.a.of(m);
    v = run_filter(m, f.name, v, a);
  }
  return v;
}

struct output final : statement {
  std::string s;
  output(std::uint32_t line, std::string s) : statement(line), s(std::move(s)) {}
  flow execute(machine& m) const override {
    m.out().add(s);
    return flow::next;
  }
};

struct print_statement final : statement {
  expression_ptr e;
  print_statement(std::uint32_t line, expression_ptr e) : statement(line), e(std::move(e)) {}
  flow execute(machine& m) const override {
    print(m.out(), e->of(m));
    return flow::next;
  }
};

struct if_statement final : statement {
  std::vector<std::pair<expression_ptr, block>> branches;
  block otherwise;
  if_statement(std::uint32_t line, std::vector<std::pair<expression_ptr, block>> b, block o)
      : statement(line), branches(std::move(b)), otherwise(std::move(o)) {}
  flow execute(machine& m) const override {
    for (const auto& [test, body] : branches)
      if (test->of(m).truth()) return jinja::run(m, body);
    return jinja::run(m, otherwise);
  }
};

struct for_statement;

// The `loop` of a for statement.
struct loop_object final : callable_object, std::enable_shared_from_this<loop_object> {
  const for_statement& of;
  const std::vector<value>& items;  // of the statement that runs
  const std::weak_ptr<frame> home;  // the frame around the statement
  std::size_t at = 0;
  std::int64_t nesting;                                 // 0: the outermost of a recursive loop
  bool alive = true;                                    // the statement still runs
  mutable std::optional<std::vector<value>> last_seen;  // of changed()

  loop_object(const for_statement& of, const std::vector<value>& items, frame_ptr home, std::int64_t nesting)
      : of(of), items(items), home(home), nesting(nesting) {}
  const char* type_name() const noexcept override { return "loop"; }
  value member(budget& b, std::string_view name) const override;
  value call(machine& m, arguments& a) override;
};

struct for_statement final : statement, for_parts {
  for_statement(std::uint32_t line, for_parts p) : statement(line), for_parts(std::move(p)) {}
  flow execute(machine& m) const override {
    go(m, over->of(m), m.here(), 0);
    return flow::next;
  }

  void go(machine& m, const value& over_what, const frame_ptr& home, std::int64_t nesting) const {
    const std::vector<value> items = chosen(m, items_of(m, over_what), home);
    if (items.empty()) {
      const machine::scope inside(m, home);
      jinja::run(m, otherwise);
      return;
    }
    const auto state = std::make_shared<loop_object>(*this, items, home, nesting);
    const struct ended {
      loop_object& l;
      ~ended() { l.alive = false; }
    } at_end{*state};
    const object_ptr shown = state;
    machine::scope inside(m, home);
    for (std::size_t i = 0; i < items.size(); ++i) {
      m.memory.allocate();
      if (i > 0) inside.renew();
      state->at = i;
      m.set(loop, value(shown));
      assign(m, to, items[i]);
      if (jinja::run(m, body) == flow::broken) break;
    }
  }

  // The items for which the condition holds.
  std::vector<value> chosen(machine& m, std::vector<value> items, const frame_ptr& home) const {
    if (!only_if) return items;
    machine::scope inside(m, home);
    std::erase_if(items, [&](const value& v) {
      m.memory.allocate();
      inside.renew();
      assign(m, to, v);
      return !only_if->of(m).truth();
    });
    return items;
  }
};

// loop.cycle(…) and loop.changed(…).
struct loop_method final : callable_object {
  std::shared_ptr<const loop_object> loop;
  bool cycles;
  loop_method(std::shared_ptr<const loop_object> of, bool cycles) : loop(std::move(of)), cycles(cycles) {}
  const char* type_name() const noexcept override { return "method"; }
  value call(machine& m, arguments& a) override {
    if (!cycles) {
      const bool same =
          loop->last_seen && loop->last_seen->size() == a.positional.size() &&
          std::ranges::equal(*loop->last_seen, a.positional,
                             [&](const value& x, const value& y) { return equal(m.memory, x, y); });
      for (const value& v : a.positional)
        if (v.has_object()) fail("loop.changed() cannot keep a {}", v.type_name());
      loop->last_seen = a.positional;
      return !same;
    }
    if (a.positional.empty()) fail("loop.cycle() takes at least one value");
    return a.positional[loop->at % a.positional.size()];
  }
};

value loop_object::member(budget&, std::string_view name) const {
  if (!alive) fail("the loop of 'loop' has ended");
  const std::size_t n = items.size();
  if (name == "index") return value::number(at + 1);
  if (name == "index0") return value::number(at);
  if (name == "revindex") return value::number(n - at);
  if (name == "revindex0") return value::number(n - at - 1);
  if (name == "first") return at == 0;
  if (name == "last") return at + 1 == n;
  if (name == "length") return value::number(n);
  if (name == "previtem") return at > 0 ? items[at - 1] : value();
  if (name == "nextitem") return at + 1 < n ? items[at + 1] : value();
  if (name == "cycle" || name == "changed")
    return object_ptr(std::make_shared<loop_method>(shared_from_this(), name == "cycle"));
  if (name == "depth") return nesting + 1;
  if (name == "depth0") return nesting;
  return {};
}

value loop_object::call(machine& m, arguments& a) {
  const frame_ptr around = home.lock();
  if (!of.recursive || !alive || !around) fail("loop() needs a for statement that is recursive");
  if (a.positional.size() != 1 || !a.named.empty()) fail("loop() takes one value");
  text_builder out(m.memory);
  const machine::capture into(m, out);
  of.go(m, a.positional[0], around, nesting + 1);
  return out.finish();
}

struct set_statement final : statement {
  target to;
  expression_ptr e;
  set_statement(std::uint32_t line, target to, expression_ptr e)
      : statement(line), to(std::move(to)), e(std::move(e)) {}
  flow execute(machine& m) const override {
    assign(m, to, e->of(m));
    return flow::next;
  }
};

struct set_block final : statement {
  target to;
  block body;
  std::vector<filter_step> filters;
  set_block(std::uint32_t line, target to, block b, std::vector<filter_step> f)
      : statement(line), to(std::move(to)), body(std::move(b)), filters(std::move(f)) {}
  flow execute(machine& m) const override {
    value v;
    {
      const machine::scope inside(m);
      v = filtered(m, printed(m, body), filters);
    }
    assign(m, to, v);
    return flow::next;
  }
};

// A macro as a value. It sees the names of the frame in which it was defined, as long as that frame lives.
struct macro_object final : callable_object {
  const macro& of;
  const std::weak_ptr<frame> home;
  macro_object(const macro& of, const frame_ptr& home) : of(of), home(home) {}
  const char* type_name() const noexcept override { return "Macro"; }
  value member(budget& b, std::string_view name) const override {
    return name == "name" ? value(jinja::make_text(b, of.name)) : value();
  }

  value call(machine& m, arguments& a) override {
    const frame_ptr around = home.lock();
    if (!around) fail("the macro '{}' is called outside the block that defines it", of.name);
    const machine::scope inside(m, around);
    bind(m, a);
    return printed(m, of.body);
  }

 private:
  void bind(machine& m, arguments& a) const {
    const std::size_t n = of.parameters.size();
    for (std::size_t i = 0; i < n; ++i) bind_parameter(m, a, i);
    std::vector<value> more;
    for (std::size_t i = n; i < a.positional.size(); ++i) more.push_back(a.positional[i]);
    if (!more.empty() && !of.uses_varargs)
      fail("the macro '{}' takes {} arguments, not {}", of.name, n, a.positional.size());
    if (of.uses_varargs) m.set(of.varargs, make_list(m.memory, std::move(more), true));
    bind_named(m, a);
  }

  void bind_parameter(machine& m, arguments& a, std::size_t i) const {
    const symbol name = of.parameters[i];
    m.memory.step(a.named.size() / 8);
    const auto given = std::ranges::find(a.named, m.name_of(name), &std::pair<std::string, value>::first);
    if (i < a.positional.size()) {
      if (given != a.named.end()) fail("the macro '{}' gets '{}' twice", of.name, given->first);
      return m.set(name, a.positional[i]);
    }
    if (given != a.named.end()) {
      m.set(name, std::move(given->second));
      a.named.erase(given);
      return;
    }
    const std::size_t without = of.parameters.size() - of.defaults.size();
    m.set(name, i >= without ? of.defaults[i - without]->of(m) : value());
  }

  void bind_named(machine& m, arguments& a) const {
    std::vector<std::pair<value, value>> rest;
    value caller;
    for (auto& [name, v] : a.named) {
      if (name == "caller" && of.uses_caller)
        caller = std::move(v);
      else if (of.uses_kwargs)
        rest.emplace_back(m.make_text(name), std::move(v));
      else
        fail("the macro '{}' has no parameter '{}'", of.name, name);
    }
    if (of.uses_caller) m.set(of.caller, caller);
    if (of.uses_kwargs) m.set(of.kwargs, make_dict(m.memory, std::move(rest)));
  }
};

struct macro_statement final : statement {
  symbol name;
  std::unique_ptr<macro> of;
  macro_statement(std::uint32_t line, symbol name, std::unique_ptr<macro> m)
      : statement(line), name(name), of(std::move(m)) {}
  flow execute(machine& m) const override {
    m.set(name, object_ptr(std::make_shared<macro_object>(*of, m.here())));
    return flow::next;
  }
};

struct call_block final : statement {
  std::unique_ptr<macro> caller;
  expression_ptr e;
  call_arguments a;
  call_block(std::uint32_t line, std::unique_ptr<macro> caller, expression_ptr of, call_arguments with)
      : statement(line), caller(std::move(caller)), e(std::move(of)), a(std::move(with)) {}
  flow execute(machine& m) const override {
    const value f = e->of(m);
    arguments with = a.of(m);
    with.named.emplace_back("caller", object_ptr(std::make_shared<macro_object>(*caller, m.here())));
    print(m.out(), call(m, f, with));
    return flow::next;
  }
};

struct filter_block final : statement {
  block body;
  std::vector<filter_step> filters;
  filter_block(std::uint32_t line, block b, std::vector<filter_step> f)
      : statement(line), body(std::move(b)), filters(std::move(f)) {}
  flow execute(machine& m) const override {
    const machine::scope inside(m);
    const value v = filtered(m, printed(m, body), filters);
    print(m.out(), v);
    return flow::next;
  }
};

struct with_statement final : statement {
  std::vector<std::pair<target, expression_ptr>> names;
  block body;
  with_statement(std::uint32_t line, std::vector<std::pair<target, expression_ptr>> n, block b)
      : statement(line), names(std::move(n)), body(std::move(b)) {}
  flow execute(machine& m) const override {
    std::vector<value> values;
    for (const auto& [to, e] : names) values.push_back(e->of(m));
    const machine::scope inside(m);
    for (std::size_t i = 0; i < names.size(); ++i) assign(m, names[i].first, values[i]);
    return jinja::run(m, body);
  }
};

struct jump final : statement {
  flow how;
  jump(std::uint32_t line, flow how) : statement(line), how(how) {}
  flow execute(machine&) const override { return how; }
};

struct group final : statement {
  block body;
  group(std::uint32_t line, block b) : statement(line), body(std::move(b)) {}
  flow execute(machine& m) const override { return jinja::run(m, body); }
};

template <class T, class... A>
statement_ptr make(A&&... a) {
  return std::make_unique<T>(std::forward<A>(a)...);
}

}  // namespace

statement_ptr make_output(std::uint32_t line, std::string text) {
  return make<output>(line, std::move(text));
}
statement_ptr make_print(std::uint32_t line, expression_ptr e) {
  return make<print_statement>(line, std::move(e));
}
statement_ptr make_if(std::uint32_t line, std::vector<std::pair<expression_ptr, block>> branches,
                      block otherwise) {
  return make<if_statement>(line, std::move(branches), std::move(otherwise));
}
statement_ptr make_for(std::uint32_t line, for_parts parts) {
  return make<for_statement>(line, std::move(parts));
}
statement_ptr make_set(std::uint32_t line, target to, expression_ptr e) {
  return make<set_statement>(line, std::move(to), std::move(e));
}
statement_ptr make_set_block(std::uint32_t line, target to, block body, std::vector<filter_step> filters) {
  return make<set_block>(line, std::move(to), std::move(body), std::move(filters));
}
statement_ptr make_macro(std::uint32_t line, symbol name, std::unique_ptr<macro> of) {
  return make<macro_statement>(line, name, std::move(of));
}
statement_ptr make_call_block(std::uint32_t line, std::unique_ptr<macro> caller, expression_ptr of,
                              call_arguments a) {
  return make<call_block>(line, std::move(caller), std::move(of), std::move(a));
}
statement_ptr make_filter_block(std::uint32_t line, block body, std::vector<filter_step> filters) {
  return make<filter_block>(line, std::move(body), std::move(filters));
}
statement_ptr make_with(std::uint32_t line, std::vector<std::pair<target, expression_ptr>> names,
                        block body) {
  return make<with_statement>(line, std::move(names), std::move(body));
}
statement_ptr make_jump(std::uint32_t line, flow how) { return make<jump>(line, how); }
statement_ptr make_group(std::uint32_t line, block body) { return make<group>(line, std::move(body)); }

}  // namespace weir::core::jinja
