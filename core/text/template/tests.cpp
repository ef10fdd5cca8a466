// The tests behind `is`.
#include <span>

#include "core/text/template/parameters.h"
#include "core/text/tokenizer/unicode.h"

namespace weir::core::jinja {
namespace {

struct test_row {
  std::string_view name;
  bool (*holds)(machine& m, const value& v, parameters& p);
};

std::int64_t need_integer(const value& v) {
  if (!v.as_integer()) fail("a {} is no int", v.type_name());
  return *v.as_integer();
}

bool is_cased(machine& m, const value& v, const char* method) {
  arguments none;
  return call_method(m, to_text(m.memory, v), method, none).truth();
}

constexpr test_row plain_rows[] = {
    {"boolean", [](machine&, const value& v, parameters&) { return v.get<bool>() != nullptr; }},
    {"callable",
     [](machine&, const value& v, parameters&) { return v.as_object() && v.as_object()->callable(); }},
    {"defined", [](machine&, const value& v, parameters&) { return !v.is_undefined(); }},
    {"divisibleby",
     [](machine& m, const value& v, parameters& p) {
       return *calculate(m, "%", need_integer(v), need_integer(p.need("num"))).as_integer() == 0;
     }},
    {"even", [](machine&, const value& v, parameters&) { return need_integer(v) % 2 == 0; }},
    {"false", [](machine&, const value& v, parameters&) { return v.get<bool>() && !*v.get<bool>(); }},
    {"filter",
     [](machine& m, const value& v, parameters&) { return has_filter(to_text(m.memory, v)->bytes); }},
    {"float", [](machine&, const value& v, parameters&) { return v.get<double>() != nullptr; }},
    {"in", [](machine& m, const value& v, parameters& p) { return contains(m, p.need("seq"), v); }},
    {"integer", [](machine&, const value& v, parameters&) { return v.get<std::int64_t>() != nullptr; }},
    {"iterable", [](machine&, const value& v,
                    parameters&) { return v.is_undefined() || v.as_text() || v.as_list() || v.as_dict(); }},
    {"lower", [](machine& m, const value& v, parameters&) { return is_cased(m, v, "islower"); }},
    {"mapping", [](machine&, const value& v, parameters&) { return v.as_dict() != nullptr; }},
    {"none", [](machine&, const value& v, parameters&) { return v.is_none(); }},
    {"number", [](machine&, const value& v, parameters&) { return v.as_number().has_value(); }},
    {"odd", [](machine&, const value& v, parameters&) { return need_integer(v) % 2 != 0; }},
    {"sameas",
     [](machine& m, const value& v, parameters& p) {
       const value& other = p.need("other");
       return std::string_view(v.type_name()) == other.type_name() && equal(m.memory, v, other);
     }},
    {"sequence", [](machine&, const value& v,
                    parameters&) { return v.is_undefined() || v.as_text() || v.as_list() || v.as_dict(); }},
    {"string", [](machine&, const value& v, parameters&) { return v.as_text() != nullptr; }},
    {"test", [](machine& m, const value& v, parameters&) { return has_test(to_text(m.memory, v)->bytes); }},
    {"true", [](machine&, const value& v, parameters&) { return v.get<bool>() && *v.get<bool>(); }},
    {"undefined", [](machine&, const value& v, parameters&) { return v.is_undefined(); }},
    {"upper", [](machine& m, const value& v, parameters&) { return is_cased(m, v, "isupper"); }},
};

bool equals(machine& m, const value& v, parameters& p) { return equal(m.memory, v, p.need("other")); }
bool differs(machine& m, const value& v, parameters& p) { return !equals(m, v, p); }
bool below(machine& m, const value& v, parameters& p) { return order(m.memory, v, p.need("other")) < 0; }
bool at_most(machine& m, const value& v, parameters& p) { return order(m.memory, v, p.need("other")) <= 0; }
bool above(machine& m, const value& v, parameters& p) { return !at_most(m, v, p); }
bool at_least(machine& m, const value& v, parameters& p) { return !below(m, v, p); }

constexpr test_row comparisons[] = {
    {"==", equals}, {"eq", equals}, {"equalto", equals},    {"!=", differs},  {"ne", differs},
    {"<", below},   {"lt", below},  {"lessthan", below},    {"<=", at_most},  {"le", at_most},
    {">", above},   {"gt", above},  {"greaterthan", above}, {">=", at_least}, {"ge", at_least},
};

const test_row* find_test(std::string_view name) {
  for (const auto table : {std::span<const test_row>(plain_rows), std::span<const test_row>(comparisons)}) {
    const auto at = std::ranges::find(table, name, &test_row::name);
    if (at != table.end()) return &*at;
  }
  return nullptr;
}

}  // namespace

bool has_test(std::string_view name) { return find_test(name) != nullptr; }

bool run_test(machine& m, std::string_view name, const value& subject, arguments& a) {
  const test_row* test = find_test(name);
  if (!test) fail("there is no test '{}' here", name.substr(0, 64));
  parameters p(m, name, a);
  const bool holds = test->holds(m, subject, p);
  p.end();
  return holds;
}

}  // namespace weir::core::jinja
