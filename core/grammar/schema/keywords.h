// keywords.h — what a schema says, keyword by keyword, and what its opposite says.
//
// All that the keywords of a schema say holds together. Some keywords say one thing, and some say «one of
// these». The opposite of a schema is that one of its keywords does not hold. Opposites are pushed down to
// keywords on single values (negation normal form), so that `not`, `oneOf`, `if` and dependencies need
// nothing but «and» and «or».
//
// What cannot be enforced is refused if `strict`, and otherwise relaxed to a superset, with a warning. A
// keyword whose value is none of that keyword's is refused in any case: the text is no schema.
//
// Thread safety: one thread.
#pragma once

#include <map>
#include <span>
#include <string>
#include <vector>

#include "core/grammar/rules.h"
#include "core/grammar/schema/constraints.h"
#include "core/grammar/schema/document.h"

namespace weir::core::grammar {

// One way to satisfy something: facts, and schemas that hold beside them.
struct alternative {
  constraints facts;
  goal also;
};
using alternatives = std::vector<alternative>;  // one of them

class schema_keywords {
 public:
  schema_keywords(const schema_document& document, bool strict, std::vector<warning>& warnings)
      : document_(document), tree_(document.tree()), strict_(strict), warnings_(warnings) {}

  // What has to hold for a schema, or for its opposite: one alternative of each element. `evaluated`: it
  // matters which of the schemas of anyOf and if hold, so that each set of those is an alternative. Throws
  // schema_refused.
  std::vector<alternatives> say(const literal& l, bool evaluated = false);
  // The schema of unevaluatedItems, or of unevaluatedProperties; nullopt: none.
  std::optional<json_node_id> unevaluated(json_node_id schema, bool of_items);
  // Whether say() can tell which schemas hold: anyOf has only a few, or is missing.
  bool tells_evaluated(json_node_id schema);

  // Warns that `where` is relaxed to a superset; if strict, throws schema_refused.
  void relax(json_node_id where, const std::string& message);
  // Adds a warning about `where`, unless the same warning was added before.
  void warn(json_node_id where, const std::string& message);

 private:
  std::vector<alternatives> says(json_node_id schema, bool evaluated);
  alternatives denies(json_node_id schema);
  void check(json_node_id schema);

  constraints scalar_facts(json_node_id schema);
  void number_facts(json_node_id schema, constraints& c);
  void string_facts(json_node_id schema, constraints& c);
  void array_facts(json_node_id schema, constraints& c);
  void object_facts(json_node_id schema, constraints& c);
  void value_facts(json_node_id schema, constraints& c);
  void deny_scalars(json_node_id schema, alternatives& out);
  void deny_array(json_node_id schema, alternatives& out);
  void deny_object(json_node_id schema, alternatives& out);
  void deny_applicators(json_node_id schema, alternatives& out);
  void deny_dependencies(json_node_id schema, alternatives& out);
  void deny_unevaluated(json_node_id schema, alternatives& out);
  void add_choices(json_node_id schema, bool evaluated, std::vector<alternatives>& out);
  void add_any(json_node_id schema, bool evaluated, std::vector<alternatives>& out);
  void add_if(json_node_id schema, bool evaluated, std::vector<alternatives>& out);
  void add_dependencies(json_node_id schema, std::vector<alternatives>& out);
  alternatives exactly_one(json_node_id list);
  bool disjoint(json_node_id a, json_node_id b);

  bool has(schema_draft since) const { return document_.draft() >= since; }
  std::optional<json_node_id> get(json_node_id schema, std::string_view name, json_kind kind);
  std::optional<json_node_id> get_schema(json_node_id schema, std::string_view name);
  std::vector<literal> get_schemas(json_node_id schema, std::string_view name);
  std::optional<std::uint32_t> get_count(json_node_id schema, std::string_view name);
  std::optional<decimal> get_number(json_node_id schema, std::string_view name);
  std::vector<std::string> get_names(json_node_id list);
  std::optional<std::uint8_t> get_types(json_node_id schema);
  std::optional<number_bound> get_bound(json_node_id schema, std::string_view inclusive,
                                        std::string_view exclusive, bool low);
  // The schema that a reference names. Refuses a chain of references that leads back into itself.
  std::optional<json_node_id> referred(json_node_id schema);
  std::optional<json_node_id> next_reference(json_node_id schema);
  std::shared_ptr<const member_rule> members_of(json_node_id schema);
  std::shared_ptr<const item_rule> items_of(json_node_id schema);
  std::shared_ptr<const value_set> values_of(json_node_id where, std::span<const json_node_id> values);

  const schema_document& document_;
  const json_tree& tree_;
  bool strict_;
  std::vector<warning>& warnings_;
  std::set<json_node_id> checked_;
  std::set<std::pair<json_node_id, std::string>> warned_;
  std::map<json_node_id, std::shared_ptr<const member_rule>> member_rules_;
  std::map<json_node_id, std::shared_ptr<const item_rule>> item_rules_;
  std::map<json_node_id, std::shared_ptr<const value_set>> value_sets_;  // by the value of enum or const
};

}  // namespace weir::core::grammar
