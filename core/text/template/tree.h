// tree.h — a compiled template: expressions and statements that a machine runs.
//
// Thread safety: immutable once parsed; any thread.
#pragma once

#include "core/text/template/machine.h"

namespace weir::core::jinja {

class expression {
 public:
  explicit expression(std::uint32_t line) : line(line) {}
  virtual ~expression() = default;
  // The value. A failure gets the line of the innermost expression or statement that has one.
  value of(machine& m) const;

  const std::uint32_t line;
  std::uint32_t depth = 1;  // of the expressions inside one another

 protected:
  virtual value evaluate(machine& m) const = 0;
};
using expression_ptr = std::unique_ptr<expression>;

enum class flow { next, broken, continued };  // how a statement ended: as usual, or by break or continue

class statement {
 public:
  explicit statement(std::uint32_t line) : line(line) {}
  virtual ~statement() = default;
  flow run(machine& m) const;

  const std::uint32_t line;

 protected:
  virtual flow execute(machine& m) const = 0;
};
using statement_ptr = std::unique_ptr<statement>;
using block = std::vector<statement_ptr>;

flow run(machine& m, const block& b);

// ---- expressions

struct call_arguments {
  std::vector<expression_ptr> positional;
  std::vector<std::pair<std::string, expression_ptr>> named;
  expression_ptr more_positional, more_named;  // *list, **dict; null: none
  arguments of(machine& m) const;
};

// What an assignment names: names in a (nested) tuple, or a member of a namespace.
struct target {
  symbol name = 0;
  std::string member;         // of the namespace `name`; empty: the name itself
  std::vector<target> items;  // not empty: the targets of a tuple
};
void assign(machine& m, const target& to, const value& v);

expression_ptr make_constant(std::uint32_t line, value v);
expression_ptr make_text_constant(std::uint32_t line, std::string text);
expression_ptr make_name(std::uint32_t line, symbol name);
expression_ptr make_list(std::uint32_t line, std::vector<expression_ptr> items, bool tuple);
expression_ptr make_dict(std::uint32_t line, std::vector<std::pair<expression_ptr, expression_ptr>> members);
expression_ptr make_not(std::uint32_t line, expression_ptr of);
expression_ptr make_sign(std::uint32_t line, bool minus, expression_ptr of);
expression_ptr make_binary(std::uint32_t line, std::string op, expression_ptr x, expression_ptr y);
expression_ptr make_logic(std::uint32_t line, bool is_and, std::vector<expression_ptr> operands);
expression_ptr make_concatenation(std::uint32_t line, std::vector<expression_ptr> operands);
// first op[0] rest[0] op[1] rest[1] …
expression_ptr make_comparison(std::uint32_t line, expression_ptr first,
                               std::vector<std::pair<std::string, expression_ptr>> rest);
expression_ptr make_condition(std::uint32_t line, expression_ptr test, expression_ptr yes, expression_ptr no);
expression_ptr make_member(std::uint32_t line, expression_ptr of, std::string name);
expression_ptr make_item(std::uint32_t line, expression_ptr of, expression_ptr key);
expression_ptr make_slice(std::uint32_t line, expression_ptr of, expression_ptr from, expression_ptr to,
                          expression_ptr step);
expression_ptr make_call(std::uint32_t line, expression_ptr of, call_arguments a);
expression_ptr make_filter(std::uint32_t line, expression_ptr of, std::string name, call_arguments a);
expression_ptr make_test(std::uint32_t line, expression_ptr of, std::string name, call_arguments a,
                         bool negated);

// ---- statements

struct macro {
  std::string name;
  std::vector<symbol> parameters;
  std::vector<expression_ptr> defaults;  // of the last parameters
  block body;
  symbol varargs = 0, kwargs = 0, caller = 0;  // names of what a call has beyond its parameters
  bool uses_varargs = false, uses_kwargs = false, uses_caller = false;
  std::uint32_t line = 0;
};

struct filter_step {
  std::string name;
  call_arguments a;
  std::uint32_t line = 0;
};

statement_ptr make_output(std::uint32_t line, std::string text);
statement_ptr make_print(std::uint32_t line, expression_ptr e);
statement_ptr make_if(std::uint32_t line, std::vector<std::pair<expression_ptr, block>> branches,
                      block otherwise);
struct for_parts {
  target to;
  expression_ptr over, only_if;  // only_if: null without a filter
  block body, otherwise;
  bool recursive = false;
  symbol loop = 0;
};
statement_ptr make_for(std::uint32_t line, for_parts parts);
statement_ptr make_set(std::uint32_t line, target to, expression_ptr e);
statement_ptr make_set_block(std::uint32_t line, target to, block body, std::vector<filter_step> filters);
statement_ptr make_macro(std::uint32_t line, symbol name, std::unique_ptr<macro> of);
statement_ptr make_call_block(std::uint32_t line, std::unique_ptr<macro> caller, expression_ptr of,
                              call_arguments a);
statement_ptr make_filter_block(std::uint32_t line, block body, std::vector<filter_step> filters);
statement_ptr make_with(std::uint32_t line, std::vector<std::pair<target, expression_ptr>> names, block body);
statement_ptr make_jump(std::uint32_t line, flow how);
statement_ptr make_group(std::uint32_t line, block body);  // its body alone

// The whole template.
struct parsed {
  block body;
  std::vector<std::string> symbols;
};
// Throws failure.
parsed parse(std::string_view source);

}  // namespace weir::core::jinja
