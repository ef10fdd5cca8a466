#include <charconv>
#include <cstdlib>

#include "core/text/template/parser.h"

namespace weir::core::jinja {

expression_ptr parser::read_expression() {
  level deeper(*this);
  return checked(read_condition());
}

// Expressions with commas between them are a tuple. `conditions`: `a if b` is allowed.
expression_ptr parser::read_tuple(bool conditions) {
  const std::uint32_t at = line();
  std::vector<expression_ptr> items;
  bool tuple = false;
  do {
    if (ends_tuple()) break;
    items.push_back(conditions ? read_expression() : read_plain());
    tuple |= is_op(",");
  } while (take_op(","));
  if (items.empty()) wrong("an expression is missing before " + shown(now()));
  if (!tuple) return std::move(items.front());
  return checked(make_list(at, std::move(items), true));
}

expression_ptr parser::read_plain() {
  level deeper(*this);
  return checked(read_or());
}

bool parser::ends_tuple() const {
  return now().what == kind::variable_end || now().what == kind::block_end || is_op(")") ||
         is_name("recursive");
}

expression_ptr parser::read_condition() {
  expression_ptr yes = read_or();
  while (is_name("if")) {
    const std::uint32_t at = line();
    take();
    expression_ptr test = read_or(), no;
    if (take_name("else")) no = read_expression();
    yes = checked(make_condition(at, std::move(test), std::move(yes), std::move(no)));
  }
  return yes;
}

template <class Next>
expression_ptr parser::read_logic(std::string_view word, bool is_and, Next read) {
  const std::uint32_t at = line();
  std::vector<expression_ptr> operands;
  do operands.push_back(read());
  while (take_name(word));
  if (operands.size() == 1) return std::move(operands.front());
  return make_logic(at, is_and, std::move(operands));
}

expression_ptr parser::read_or() {
  return read_logic("or", false, [this] { return read_and(); });
}

expression_ptr parser::read_and() {
  return read_logic("and", true, [this] { return read_not(); });
}

expression_ptr parser::read_not() {
  const std::uint32_t at = line();
  if (!take_name("not")) return read_comparison();
  level deeper(*this);
  return make_not(at, read_not());
}

expression_ptr parser::read_comparison() {
  const std::uint32_t at = line();
  expression_ptr first = read_sum();
  std::vector<std::pair<std::string, expression_ptr>> rest;
  for (;;) {
    std::string op;
    for (const char* o : {"==", "!=", "<=", ">=", "<", ">"})
      if (is_op(o)) op = o;
    if (is_name("in")) op = "in";
    if (is_name("not") && is(next(), kind::name, "in")) {
      take();
      op = "not in";
    }
    if (op.empty()) break;
    take();
    rest.emplace_back(op, read_sum());
  }
  return rest.empty() ? std::move(first) : make_comparison(at, std::move(first), std::move(rest));
}

template <class Next>
expression_ptr parser::read_chain(std::initializer_list<const char*> ops, Next read) {
  expression_ptr x = read();
  for (;;) {
    const char* op = nullptr;
    for (const char* o : ops)
      if (is_op(o)) op = o;
    if (!op) return x;
    const std::uint32_t at = line();
    take();
    expression_ptr y = read();
    x = checked(make_binary(at, op, std::move(x), std::move(y)));
  }
}

expression_ptr parser::read_sum() {
  return read_chain({"+", "-"}, [this] { return read_concatenation(); });
}

expression_ptr parser::read_concatenation() {
  const std::uint32_t at = line();
  std::vector<expression_ptr> operands;
  do operands.push_back(read_product());
  while (take_op("~"));
  if (operands.size() == 1) return std::move(operands.front());
  return make_concatenation(at, std::move(operands));
}

expression_ptr parser::read_product() {
  return read_chain({"*", "/", "//", "%"}, [this] { return read_power(); });
}

expression_ptr parser::read_power() {
  return read_chain({"**"}, [this] { return read_unary(true); });
}

expression_ptr parser::read_unary(bool with_filters) {
  const std::uint32_t at = line();
  if (is_op("-") || is_op("+")) {
    level deeper(*this);
    const bool minus = take().text == "-";
    expression_ptr e = make_sign(at, minus, read_unary(false));
    return with_filters ? read_filters_of(std::move(e)) : std::move(e);
  }
  expression_ptr e = read_postfix(read_primary(), true);
  return with_filters ? read_filters_of(std::move(e)) : std::move(e);
}

expression_ptr parser::read_primary() {
  level deeper(*this);
  const std::uint32_t at = line();
  switch (now().what) {
    case kind::name:
      return read_word();
    case kind::string: {
      std::string all;
      while (now().what == kind::string) all += take().text;
      return make_text_constant(at, std::move(all));
    }
    case kind::integer:
      return make_constant(at, integer_of(take().text));
    case kind::floating:
      // As in Python, a number out of range is infinite or 0.
      return make_constant(at, value(std::strtod(take().text.c_str(), nullptr)));
    default:
      break;
  }
  if (take_op("(")) return read_parentheses(at);
  if (take_op("[")) return read_list(at);
  if (take_op("{")) return read_dict(at);
  wrong(shown(now()) + " is no expression");
}

expression_ptr parser::read_word() {
  const std::uint32_t at = line();
  const std::string name = take().text;
  if (name == "true" || name == "True") return make_constant(at, value(true));
  if (name == "false" || name == "False") return make_constant(at, value(false));
  if (name == "none" || name == "None") return make_constant(at, value(none()));
  return make_name(at, symbol_of(name));
}

value parser::integer_of(const std::string& spelled) const {
  int base = 10;
  std::string_view digits = spelled;
  if (digits.size() > 2 && digits[0] == '0') {
    const char c = static_cast<char>(digits[1] | 0x20);
    base = c == 'x' ? 16 : c == 'o' ? 8 : c == 'b' ? 2 : 10;
    if (base != 10) digits.remove_prefix(2);
  }
  std::int64_t n = 0;
  const auto [end, ec] = std::from_chars(digits.data(), digits.data() + digits.size(), n, base);
  if (ec != std::errc() || end != digits.data() + digits.size())
    wrong("'" + spelled + "' is no integer of 64 bits");
  return n;
}

expression_ptr parser::read_parentheses(std::uint32_t at) {
  if (take_op(")")) return make_list(at, {}, true);
  expression_ptr e = read_tuple(true);
  need_op(")");
  return e;
}

expression_ptr parser::read_list(std::uint32_t at) {
  std::vector<expression_ptr> items;
  while (!take_op("]")) {
    if (!items.empty()) need_op(",");
    if (take_op("]")) break;
    items.push_back(read_expression());
  }
  return checked(make_list(at, std::move(items), false));
}

expression_ptr parser::read_dict(std::uint32_t at) {
  std::vector<std::pair<expression_ptr, expression_ptr>> members;
  while (!take_op("}")) {
    if (!members.empty()) need_op(",");
    if (take_op("}")) break;
    expression_ptr key = read_expression();
    need_op(":");
    members.emplace_back(std::move(key), read_expression());
  }
  return checked(make_dict(at, std::move(members)));
}

// Members, items and calls behind an expression.
expression_ptr parser::read_postfix(expression_ptr e, bool calls) {
  for (;;) {
    const std::uint32_t at = line();
    if (take_op(".")) {
      if (now().what == kind::integer)
        e = make_item(at, std::move(e), make_constant(at, integer_of(take().text)));
      else
        e = make_member(at, std::move(e), need_name());
    } else if (take_op("[")) {
      e = read_subscript(at, std::move(e));
    } else if (calls && is_op("(")) {
      e = make_call(at, std::move(e), read_arguments());
    } else {
      return e;
    }
    e = checked(std::move(e));
  }
}

expression_ptr parser::read_subscript(std::uint32_t at, expression_ptr of) {
  expression_ptr part[3];
  std::size_t colons = 0;
  if (!is_op(":")) part[0] = read_expression();
  while (colons < 2 && take_op(":")) {
    ++colons;
    if (!is_op(":") && !is_op("]")) part[colons] = read_expression();
  }
  need_op("]");
  if (colons == 0) return make_item(at, std::move(of), std::move(part[0]));
  return make_slice(at, std::move(of), std::move(part[0]), std::move(part[1]), std::move(part[2]));
}

call_arguments parser::read_arguments() {
  call_arguments a;
  need_op("(");
  bool first = true;
  while (!take_op(")")) {
    if (!std::exchange(first, false)) need_op(",");
    if (take_op(")")) break;
    if (take_op("**")) {
      a.more_named = read_expression();
    } else if (take_op("*")) {
      a.more_positional = read_expression();
    } else if (now().what == kind::name && is(next(), kind::op, "=")) {
      std::string name = take().text;
      take();
      a.named.emplace_back(std::move(name), read_expression());
    } else {
      if (!a.named.empty()) wrong("an argument without a name follows one with a name");
      a.positional.push_back(read_expression());
    }
  }
  return a;
}

// Filters, tests and calls, which bind weaker than a sign.
expression_ptr parser::read_filters_of(expression_ptr e) {
  for (;;) {
    const std::uint32_t at = line();
    if (take_op("|")) {
      filter_step f = read_filter_step(at);
      e = make_filter(at, std::move(e), std::move(f.name), std::move(f.a));
    } else if (take_name("is")) {
      e = read_test(at, std::move(e));
    } else if (is_op("(")) {
      e = make_call(at, std::move(e), read_arguments());
    } else {
      return e;
    }
    e = checked(std::move(e));
  }
}

expression_ptr parser::read_test(std::uint32_t at, expression_ptr of) {
  const bool negated = take_name("not");
  const std::string name = now().what == kind::op ? take().text : need_name();
  call_arguments a;
  if (is_op("("))
    a = read_arguments();
  else if (opens_operand())
    a.positional.push_back(read_postfix(read_primary(), true));
  return make_test(at, std::move(of), name, std::move(a), negated);
}

bool parser::opens_operand() const {
  const token& t = now();
  if (t.what == kind::name) {
    for (const char* word : {"else", "or", "and", "is", "if", "in", "not", "recursive"})
      if (t.text == word) return false;
    return true;
  }
  if (t.what == kind::op) return t.text == "(" || t.text == "[" || t.text == "{";
  return t.what == kind::string || t.what == kind::integer || t.what == kind::floating;
}

}  // namespace weir::core::jinja
