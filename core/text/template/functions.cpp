// The functions that a template can call by name.
#include "core/text/template/parameters.h"
#include "core/text/template/strftime.h"

namespace weir::core::jinja {
namespace {

constexpr std::int64_t most_range = 100'000;  // items of range(), as in Jinja's sandbox

using function = value (*)(machine& m, arguments& a);

struct function_object final : callable_object {
  function run;
  explicit function_object(function f) : run(f) {}
  const char* type_name() const noexcept override { return "function"; }
  value call(machine& m, arguments& a) override { return run(m, a); }
};

value range(machine& m, arguments& a) {
  if (a.positional.empty() || a.positional.size() > 3 || !a.named.empty())
    fail("range() takes 1 to 3 integers");
  std::int64_t n[3] = {0, 0, 1};
  for (std::size_t i = 0; i < a.positional.size(); ++i) {
    const auto whole = a.positional[i].as_integer();
    if (!whole) fail("range(): a {} is no int", a.positional[i].type_name());
    n[i] = *whole;
  }
  if (a.positional.size() == 1) std::swap(n[0], n[1]);
  if (n[2] == 0) fail("range(): the step is 0");
  std::vector<value> out;
  for (std::int64_t i = n[0]; n[2] > 0 ? i < n[1] : i > n[1];) {
    if (static_cast<std::int64_t>(out.size()) == most_range)
      fail("range() has more than {} items", most_range);
    out.emplace_back(i);
    if (__builtin_add_overflow(i, n[2], &i)) break;
  }
  return make_list(m.memory, std::move(out));
}

// The members that dict() and namespace() are given: those of a dict, or named arguments.
std::vector<std::pair<value, value>> members_of(machine& m, arguments& a, const char* function) {
  std::vector<std::pair<value, value>> out;
  if (a.positional.size() > 1) fail("{}() takes one dict", function);
  if (!a.positional.empty()) {
    const value& first = a.positional[0];
    if (const dict* d = first.as_dict()) {
      out = d->members;
    } else {
      for (const value& pair : items_of(m, first)) {
        std::vector<value> both = items_of(m, pair);
        if (both.size() != 2) fail("{}(): an item is no pair", function);
        out.emplace_back(std::move(both[0]), std::move(both[1]));
      }
    }
  }
  for (auto& [name, v] : a.named) out.emplace_back(m.make_text(name), std::move(v));
  return out;
}

value make_namespace(machine& m, arguments& a) {
  auto made = std::make_shared<namespace_object>(m.memory);
  for (auto& [key, v] : members_of(m, a, "namespace")) made->set(to_text(m.memory, key)->bytes, std::move(v));
  return object_ptr(std::move(made));
}

value make_dict_of(machine& m, arguments& a) { return make_dict(m.memory, members_of(m, a, "dict")); }

value raise(machine& m, arguments& a) {
  parameters p(m, "raise_exception", a);
  const text_ptr why = to_text(m.memory, p.need("message"));
  p.end();
  throw failure{why->bytes, 0, true};
}

value time_now(machine& m, arguments& a) {
  parameters p(m, "strftime_now", a);
  const text_ptr format = p.need_text("format");
  p.end();
  m.memory.copy(format->bytes.size() * 8);
  return m.make_text(formatted_time(m.now(), format->bytes));
}

struct next_of_cycler final : callable_object {
  std::vector<value> items;
  std::size_t at = 0;
  held_memory memory;
  next_of_cycler(budget& b, std::vector<value> of)
      : items(std::move(of)), memory(b, sizeof *this + items.size() * sizeof(value)) {}
  const char* type_name() const noexcept override { return "Cycler"; }
  value member(budget&, std::string_view name) const override {
    return name == "current" ? items[at] : value();
  }
  value call(machine&, arguments&) override {
    const value out = items[at];
    at = (at + 1) % items.size();
    return out;
  }
};

// cycler(…).next().
struct cycler_object final : object {
  std::shared_ptr<next_of_cycler> state;
  cycler_object(budget& b, std::vector<value> of)
      : state(std::make_shared<next_of_cycler>(b, std::move(of))) {}
  const char* type_name() const noexcept override { return "Cycler"; }
  value member(budget& b, std::string_view name) const override {
    return name == "next" ? value(object_ptr(state)) : state->member(b, name);
  }
};

value make_cycler(machine& m, arguments& a) {
  if (a.positional.empty() || !a.named.empty()) fail("cycler() takes at least one value");
  return object_ptr(std::make_shared<cycler_object>(m.memory, std::move(a.positional)));
}

struct joiner_object final : callable_object {
  text_ptr between;
  bool used = false;
  const char* type_name() const noexcept override { return "Joiner"; }
  value call(machine& m, arguments&) override {
    return std::exchange(used, true) ? value(between) : m.make_text("");
  }
};

value make_joiner(machine& m, arguments& a) {
  parameters p(m, "joiner", a);
  const text_ptr between = p.text_or_null("sep");
  p.end();
  auto made = std::make_shared<joiner_object>();
  made->between = between ? between : make_text(m.memory, ", ");
  return object_ptr(std::move(made));
}

struct function_row {
  std::string_view name;
  function run;
};
constexpr function_row function_rows[] = {
    {"range", range},           {"namespace", make_namespace}, {"dict", make_dict_of},
    {"cycler", make_cycler},    {"joiner", make_joiner},       {"raise_exception", raise},
    {"strftime_now", time_now},
};

}  // namespace

value global_function(machine&, std::string_view name) {
  const auto at = std::ranges::find(function_rows, name, &function_row::name);
  if (at == std::end(function_rows)) return value();
  return value(object_ptr(std::make_shared<function_object>(at->run)));
}

}  // namespace weir::core::jinja
