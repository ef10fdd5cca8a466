// parser.h — makes a tree of tokens, by the grammar of Jinja 3.1: one function for each level of its
// precedence. parse_statements.cpp and parse_expressions.cpp implement it.
//
// Thread safety: one parse, one thread.
#pragma once

#include <algorithm>
#include <map>

#include "core/text/template/lexer.h"
#include "core/text/template/tree.h"

namespace weir::core::jinja {

class parser {
 public:
  explicit parser(std::string_view source) : tokens_(cut_into_tokens(source)) {}

  parsed run();

 private:
  using kind = token::kind;
  // Most nested expressions and blocks; most levels of an expression, with chains such as a + b + c.
  static constexpr std::uint32_t deepest_source = 80, deepest_expression = 250;

  // ---- tokens

  const token& now() const { return tokens_[at_]; }
  const token& next(std::size_t n = 1) const { return tokens_[std::min(at_ + n, tokens_.size() - 1)]; }
  token take() { return at_ + 1 < tokens_.size() ? std::move(tokens_[at_++]) : tokens_[at_]; }
  std::uint32_t line() const { return now().line; }
  [[noreturn]] void wrong(std::string why) const { throw failure{std::move(why), line()}; }

  static bool is(const token& t, kind what, std::string_view text) {
    return t.what == what && t.text == text;
  }
  bool is_op(std::string_view op) const { return is(now(), kind::op, op); }
  bool is_name(std::string_view name) const { return is(now(), kind::name, name); }
  bool take_op(std::string_view op) { return is_op(op) && (++at_, true); }
  bool take_name(std::string_view name) { return is_name(name) && (++at_, true); }
  void need_op(std::string_view op) {
    if (!take_op(op)) wrong(fmt::format("'{}' is missing before {}", op, shown(now())));
  }
  std::string need_name() {
    if (now().what != kind::name) wrong("a name is missing before " + shown(now()));
    return take().text;
  }
  void need(kind what, const char* words) {
    if (now().what != what) wrong(fmt::format("{} is missing before {}", words, shown(now())));
    ++at_;
  }
  static std::string shown(const token& t) {
    switch (t.what) {
      case kind::block_end:
        return "'%}'";
      case kind::variable_end:
        return "'}}'";
      case kind::end:
        return "the end of the template";
      default:
        return "'" + t.text + "'";
    }
  }

  symbol symbol_of(const std::string& name) {
    const auto [at, is_new] = symbols_.try_emplace(name, static_cast<symbol>(names_.size()));
    if (is_new) names_.push_back(name);
    if (!macros_.empty()) {
      if (name == "varargs") macros_.back()->uses_varargs = true;
      if (name == "kwargs") macros_.back()->uses_kwargs = true;
      if (name == "caller") macros_.back()->uses_caller = true;
    }
    return at->second;
  }

  // Counts nesting for as long as it lives.
  struct level {
    explicit level(parser& p) : p(p) {
      if (++p.depth_ > deepest_source)
        p.wrong(fmt::format("the source nests deeper than {} levels", deepest_source));
    }
    level(const level&) = delete;
    ~level() { --p.depth_; }
    parser& p;
  };

  expression_ptr checked(expression_ptr e) const {
    if (e->depth > deepest_expression)
      wrong(fmt::format("an expression nests deeper than {} levels", deepest_expression));
    return e;
  }

  // ---- statements
  block read_block(std::initializer_list<std::string_view> ends);
  void end_block() { need(kind::block_end, "'%}'"); }
  block read_body(std::string_view end);
  block read_captured(std::string_view end);
  statement_ptr read_statement();
  statement_ptr read_if(std::uint32_t at);
  statement_ptr read_for(std::uint32_t at);
  statement_ptr read_set(std::uint32_t at);
  target read_target(std::string_view end);
  target read_one_target();
  std::vector<filter_step> read_filters();
  filter_step read_filter_step(std::uint32_t at);
  void read_signature(macro& m);
  void read_macro_body(macro& m, std::string_view end);
  statement_ptr read_macro(std::uint32_t at);
  statement_ptr read_call_block(std::uint32_t at);
  statement_ptr read_filter_block(std::uint32_t at);
  statement_ptr read_with(std::uint32_t at);

  // ---- expressions, from the weakest operator to the strongest
  expression_ptr read_expression();
  expression_ptr read_tuple(bool conditions);
  expression_ptr read_plain();
  bool ends_tuple() const;
  expression_ptr read_condition();
  template <class Next>
  expression_ptr read_logic(std::string_view word, bool is_and, Next read);
  expression_ptr read_or();
  expression_ptr read_and();
  expression_ptr read_not();
  expression_ptr read_comparison();
  template <class Next>
  expression_ptr read_chain(std::initializer_list<const char*> ops, Next read);
  expression_ptr read_sum();
  expression_ptr read_concatenation();
  expression_ptr read_product();
  expression_ptr read_power();
  expression_ptr read_unary(bool with_filters);
  expression_ptr read_primary();
  expression_ptr read_word();
  value integer_of(const std::string& spelled) const;
  expression_ptr read_parentheses(std::uint32_t at);
  expression_ptr read_list(std::uint32_t at);
  expression_ptr read_dict(std::uint32_t at);
  expression_ptr read_postfix(expression_ptr e, bool calls);
  expression_ptr read_subscript(std::uint32_t at, expression_ptr of);
  call_arguments read_arguments();
  expression_ptr read_filters_of(expression_ptr e);
  expression_ptr read_test(std::uint32_t at, expression_ptr of);
  bool opens_operand() const;

  std::vector<token> tokens_;
  std::size_t at_ = 0;
  std::uint32_t depth_ = 0, loops_ = 0;
  std::map<std::string, symbol, std::less<>> symbols_;
  std::vector<std::string> names_;
  std::vector<macro*> macros_;
};

}  // namespace weir::core::jinja
