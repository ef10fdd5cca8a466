#include "core/text/template/parser.h"

namespace weir::core::jinja {

parsed parser::run() {
  parsed out;
  out.body = read_block({});
  if (now().what != kind::end) wrong("'" + now().text + "' ends nothing");
  out.symbols = std::move(names_);
  return out;
}

// Reads up to a block tag whose name is one of `ends`. The name itself is left to be read.
block parser::read_block(std::initializer_list<std::string_view> ends) {
  level deeper(*this);
  block out;
  for (;;) {
    const std::uint32_t at = line();
    switch (now().what) {
      case kind::data:
        out.push_back(make_output(at, take().text));
        break;
      case kind::variable_begin:
        take();
        out.push_back(make_print(at, read_tuple(true)));
        need(kind::variable_end, "'}}'");
        break;
      case kind::block_begin:
        take();
        if (now().what != kind::name) wrong("a statement is missing before " + shown(now()));
        if (std::ranges::find(ends, now().text) != ends.end()) return out;
        out.push_back(read_statement());
        break;
      default:
        if (ends.size() == 0) return out;
        wrong(fmt::format("'{}' is missing before {}", *(ends.end() - 1), shown(now())));
    }
  }
}

// The body of a block, with its end.
block parser::read_body(std::string_view end) {
  end_block();
  block out = read_block({end});
  take();
  end_block();
  return out;
}

// A body whose output is a value: break and continue cannot leave it.
block parser::read_captured(std::string_view end) {
  const std::uint32_t loops = std::exchange(loops_, 0);
  block body = read_body(end);
  loops_ = loops;
  return body;
}

statement_ptr parser::read_statement() {
  const std::uint32_t at = line();
  const std::string what = take().text;
  if (what == "if") return read_if(at);
  if (what == "for") return read_for(at);
  if (what == "set") return read_set(at);
  if (what == "macro") return read_macro(at);
  if (what == "call") return read_call_block(at);
  if (what == "filter") return read_filter_block(at);
  if (what == "with") return read_with(at);
  if (what == "generation") return make_group(at, read_body("endgeneration"));
  if (what == "break" || what == "continue") {
    if (loops_ == 0) wrong("'" + what + "' is outside a loop");
    end_block();
    return make_jump(at, what == "break" ? flow::broken : flow::continued);
  }
  for (const char* other : {"include", "import", "from", "extends", "block", "do", "autoescape", "trans"})
    if (what == other) wrong("the statement '" + what + "' is not supported");
  wrong("there is no statement '" + what + "'");
}

statement_ptr parser::read_if(std::uint32_t at) {
  std::vector<std::pair<expression_ptr, block>> branches;
  block otherwise;
  for (;;) {
    expression_ptr test = read_tuple(false);
    end_block();
    block body = read_block({"elif", "else", "endif"});
    branches.emplace_back(std::move(test), std::move(body));
    const token end = take();
    if (end.text == "elif") continue;
    if (end.text == "else") otherwise = read_body("endif");
    if (end.text == "endif") end_block();
    return make_if(at, std::move(branches), std::move(otherwise));
  }
}

statement_ptr parser::read_for(std::uint32_t at) {
  for_parts p;
  p.to = read_target("in");
  if (!take_name("in")) wrong("'in' is missing before " + shown(now()));
  p.over = read_tuple(false);
  if (take_name("if")) p.only_if = read_expression();
  p.recursive = take_name("recursive");
  p.loop = symbol_of("loop");
  end_block();
  ++loops_;
  p.body = read_block({"else", "endfor"});
  --loops_;
  if (take().text == "else")
    p.otherwise = read_body("endfor");
  else
    end_block();
  return make_for(at, std::move(p));
}

statement_ptr parser::read_set(std::uint32_t at) {
  target to = read_target("=");
  if (take_op("=")) {
    expression_ptr e = read_tuple(true);
    end_block();
    return make_set(at, std::move(to), std::move(e));
  }
  std::vector<filter_step> filters = read_filters();
  return make_set_block(at, std::move(to), read_captured("endset"), std::move(filters));
}

// Names, a tuple of names, or a member of a namespace.
target parser::read_target(std::string_view end) {
  level deeper(*this);
  std::vector<target> items;
  bool tuple = false;
  do {
    if (is_name(end) || is_op(end) || is_op(")")) break;
    items.push_back(read_one_target());
    tuple |= is_op(",");
  } while (take_op(","));
  if (items.empty()) wrong("a name is missing before " + shown(now()));
  if (!tuple) return std::move(items.front());
  target all;
  all.items = std::move(items);
  return all;
}

target parser::read_one_target() {
  if (take_op("(")) {
    target inner = read_target(")");
    need_op(")");
    return inner;
  }
  target one;
  const std::string name = need_name();
  for (const char* fixed : {"true", "false", "none", "True", "False", "None"})
    if (name == fixed) wrong("nothing can be assigned to '" + name + "'");
  one.name = symbol_of(name);
  if (take_op(".")) one.member = need_name();
  return one;
}

std::vector<filter_step> parser::read_filters() {
  std::vector<filter_step> out;
  while (is_op("|")) {
    const std::uint32_t at = line();
    take();
    out.push_back(read_filter_step(at));
  }
  return out;
}

filter_step parser::read_filter_step(std::uint32_t at) {
  filter_step f;
  f.line = at;
  f.name = need_name();
  if (is_op("(")) f.a = read_arguments();
  return f;
}

// The signature and the body of a macro or a call block.
void parser::read_signature(macro& m) {
  need_op("(");
  while (!take_op(")")) {
    if (!m.parameters.empty()) need_op(",");
    if (take_op(")")) break;
    m.parameters.push_back(symbol_of(need_name()));
    if (take_op("="))
      m.defaults.push_back(read_expression());
    else if (!m.defaults.empty())
      wrong("a parameter without a default follows one with a default");
  }
}

void parser::read_macro_body(macro& m, std::string_view end) {
  m.varargs = symbol_of("varargs");
  m.kwargs = symbol_of("kwargs");
  m.caller = symbol_of("caller");
  macros_.push_back(&m);
  m.body = read_captured(end);
  macros_.pop_back();
}

statement_ptr parser::read_macro(std::uint32_t at) {
  auto m = std::make_unique<macro>();
  m->line = at;
  m->name = need_name();
  const symbol name = symbol_of(m->name);
  read_signature(*m);
  read_macro_body(*m, "endmacro");
  return make_macro(at, name, std::move(m));
}

statement_ptr parser::read_call_block(std::uint32_t at) {
  auto m = std::make_unique<macro>();
  m->line = at;
  m->name = "caller";
  if (is_op("(")) read_signature(*m);
  expression_ptr of = read_postfix(read_primary(), false);
  if (!is_op("(")) wrong("a call is missing before " + shown(now()));
  call_arguments a = read_arguments();
  read_macro_body(*m, "endcall");
  return make_call_block(at, std::move(m), std::move(of), std::move(a));
}

statement_ptr parser::read_filter_block(std::uint32_t at) {
  std::vector<filter_step> filters;
  filters.push_back(read_filter_step(at));
  for (filter_step& f : read_filters()) filters.push_back(std::move(f));
  return make_filter_block(at, read_captured("endfilter"), std::move(filters));
}

statement_ptr parser::read_with(std::uint32_t at) {
  std::vector<std::pair<target, expression_ptr>> names;
  while (now().what != kind::block_end) {
    if (!names.empty()) need_op(",");
    target to = read_target("=");
    need_op("=");
    names.emplace_back(std::move(to), read_expression());
  }
  return make_with(at, std::move(names), read_body("endwith"));
}

parsed parse(std::string_view source) {
  constexpr std::size_t most_source = 4u << 20;  // bytes
  if (source.size() > most_source)
    fail("the template has {} bytes, more than {}", source.size(), most_source);
  return parser(source).run();
}

}  // namespace weir::core::jinja
