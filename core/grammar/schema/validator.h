// validator.h — whether a value that is written in the schema satisfies a goal. The values of enum and const
// are filtered by what else the schema asks at that place.
//
// Thread safety: one thread.
#pragma once

#include <map>
#include <vector>

#include "core/grammar/schema/keywords.h"
#include "core/grammar/schema/normal_form.h"
#include "core/grammar/schema/texts.h"

namespace weir::core::grammar {

class schema_validator {
 public:
  schema_validator(const json_tree& tree, schema_keywords& keywords, schema_texts& texts, normal_form& forms)
      : tree_(tree), keywords_(keywords), texts_(texts), forms_(forms) {}

  // What is relaxed when the schema is compiled is not judged here. Throws schema_refused if the check takes
  // too many steps or is nested too deep.
  bool satisfies(json_node_id value, const goal& g);

 private:
  bool satisfies(json_node_id value, const literal& l);
  bool is_evaluated(const literal& l);
  bool satisfies_a_case(json_node_id value, const literal& l);
  const std::vector<alternatives>& said(const literal& l);
  bool satisfies(json_node_id value, const constraints& c);
  bool number_satisfies(json_node_id value, const constraints& c);
  bool string_satisfies(const std::string& text, const constraints& c);
  bool array_satisfies(json_node_id value, const constraints& c);
  bool object_satisfies(json_node_id value, const constraints& c);
  bool names_satisfy(json_node_id value, const constraints& c);
  bool member_satisfies(const std::string& name, json_node_id value, const member_rule& rule);

  const json_tree& tree_;
  schema_keywords& keywords_;
  schema_texts& texts_;
  normal_form& forms_;
  std::map<literal, std::vector<constraints>> cases_;  // of schemas with unevaluatedProperties or …Items
  std::map<literal, std::vector<alternatives>> said_;
  std::uint32_t depth_ = 0;
  std::uint64_t left_ = 2'000'000;  // checks, over the whole schema
};

// Type bits of a value.
std::uint8_t types_of(const json_tree& tree, json_node_id value);
// Code points of a UTF-8 text.
std::size_t characters(std::string_view utf8);

}  // namespace weir::core::grammar
