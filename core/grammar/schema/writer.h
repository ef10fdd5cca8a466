// writer.h — writes a schema as rules: a rule for each goal that a value has to satisfy.
//
// Goals that are equal have one rule, so that recursion ends. Goals wait in a list until their rule is
// written; nothing recurses into the schema.
//
// Thread safety: one thread.
#pragma once

#include <algorithm>
#include <map>
#include <string>
#include <vector>

#include "core/grammar/json_text.h"
#include "core/grammar/schema.h"
#include "core/grammar/schema/document.h"
#include "core/grammar/schema/normal_form.h"
#include "core/grammar/schema/numbers.h"
#include "core/grammar/schema/texts.h"
#include "core/grammar/schema/validator.h"

namespace weir::core::grammar {

// What is left of a count, which may be `unbounded`, behind `by` items.
inline std::uint32_t count_left(std::uint32_t count, std::uint32_t by) {
  return count == unbounded ? unbounded : count - std::min(count, by);
}

class schema_writer {
 public:
  schema_writer(rules& out, json_space space, const value_notation& how, const json_tree& tree,
                schema_keywords& keywords);

  // Writes the whole schema; `only_objects`: its values that are objects. Throws schema_refused.
  part_id write(bool only_objects);
  // Writes the parameters (schema.h). Throws schema_refused.
  std::vector<schema_parameters> write_parameters(bool texts_apart);

 private:
  // Names that no schema declares, and what their values have to satisfy.
  struct cell {
    regex_id names = regex_pool::nothing;
    goal value;
  };
  // An object's case, taken apart for writing.
  struct object_plan {
    struct known_member {
      std::string name;
      goal value;
      bool required = false;
    };
    std::vector<known_member> known;  // in the order in which they are generated
    std::vector<cell> others;
    std::vector<std::vector<cell>> needed;  // for each list, at least one other member is in a cell of it
    std::uint32_t min = 0, max = unbounded;
  };

  void write_waiting();
  part_id objects();
  part_id value_of(goal g);
  void write_rule(rule_id rule, const goal& g);
  part_id case_of(const constraints& c, const goal& g);
  bool denies_value(const constraints& c, json_kind kind, bool truth) const;
  part_id constants(const value_set& values, const goal& g, bool no_strings = false);
  part_id constant(json_node_id value);
  std::optional<std::string> scalar_text(json_node_id value) const;
  part_id number(const constraints& c);
  struct some_multiples {
    regex_id texts;
    bool within;  // the texts are within the limits: numbers_within() is not needed
  };
  std::optional<some_multiples> multiples_of(json_node_id value, const number_limits& limits);
  regex_id multiples_of_all(const constraints& c);
  regex_id string_content(const constraints& c, bool& free, spelling as);
  regex_id strings(const constraints& c, spelling as);
  part_id string(const constraints& c);
  regex_id name_language(const goal& names);

  part_id array(const constraints& c, const goal& g);
  class few_values;
  std::optional<part_id> distinct_items(const constraints& c);
  part_id items_counted(const constraints& c, const goal& g);
  part_id items_with_contains(const constraints& c, const goal& g);
  goal item_goal(const constraints& c, std::uint32_t index) const;

  part_id object(const constraints& c, const goal& g);
  part_id object_with_needed(constraints c, const goal& g, std::vector<std::vector<cell>> needed);
  bool plan_known(const constraints& c, object_plan& plan);
  void plan_others(const constraints& c, object_plan& plan, const goal& g);
  std::vector<cell> cells(const constraints& c, regex_id names, const goal& g);
  part_id members(const object_plan& plan, const goal& g);
  part_id tail(const object_plan& plan, std::uint32_t count);
  part_id other_member(const std::vector<cell>& cells);
  part_id needed_members(const object_plan& plan, bool first, std::vector<std::size_t> order);

  std::optional<schema_parameters> parameters(constraints c, const goal& g, bool texts_apart);
  schema_parameters::value parameter(const goal& g, bool texts_apart);
  regex_id texts(const constraints& c, const goal& g);

  std::string where(const goal& g) const;
  json_node_id blamed(const goal& g) const { return g.empty() ? json_tree::root : g.front().schema; }
  bool is_false(const goal& g) const;

  rules& rules_;
  regex_pool& pool_;
  json_text json_;
  const spelling spelling_;  // of declared names, constants, and strings with a pattern
  const json_tree& tree_;
  schema_keywords& keywords_;
  schema_texts texts_;
  normal_form normal_form_;
  schema_validator validator_;
  std::map<goal, rule_id> known_;
  std::vector<std::pair<rule_id, goal>> waiting_;
  std::map<goal, regex_id> name_languages_;
};

}  // namespace weir::core::grammar
