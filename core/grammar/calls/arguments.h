// arguments.h — the arguments of tools as the calls of a format write them: JSON, parameters between tags,
// literals of Python, or Gemma's values.
//
// Only for core/grammar. Thread safety: none; one thread builds.
#pragma once

#include <map>
#include <string>
#include <tuple>
#include <vector>

#include "core/grammar/calls/answer_parts.h"
#include "core/grammar/fuel.h"
#include "core/grammar/schema.h"
#include "core/text/answer/foreign_value.h"
#include "core/text/answer/tools.h"

namespace weir::core::grammar {

class argument_writer {
 public:
  argument_writer(answer_parts& parts, const call_format& f, std::vector<warning>& warnings, fuel* budget);

  // The arguments of a call of this tool, with what stands around them. Errors: `param` is the client's name
  // of what is to blame.
  result<part_id> arguments_of(const tool_definition& t);
  // What the arguments are where the schema cannot be followed for this reason, whose `param` is a place in
  // the schema: any object, with a warning. An error for a strict tool.
  result<part_id> instead_of(const tool_definition& t, const error& why);

 private:
  struct input {
    std::string schema;  // empty: any object
    bool custom = false;
  };
  result<input> input_of(const tool_definition& t);
  result<part_id> write(std::string_view schema, bool strict, std::vector<warning>& warnings);
  result<part_id> write_list(std::string_view schema, bool strict, std::vector<warning>& warnings);
  schema_options options(bool strict);
  void warn(const tool_definition& t, const std::string& pointer, std::string_view message);

  result<part_id> one_list(const schema_parameters& p, const parameter_types& types, bool strict,
                           std::vector<warning>& warnings);
  part_id in_order(const std::vector<std::pair<part_id, bool>>& members, part_id other);
  part_id member(std::string_view name, const schema_parameters::value& v, const parameter_types& types);
  part_id other_member(const schema_parameters::other& o);
  part_id tagged(part_id key_with_open, const schema_parameters::value& v, json_types wanted);
  regex_id raw_text(regex_id texts, json_types wanted);
  regex_id looks_like_json();
  regex_id parameter_names();

  answer_parts& parts_;
  rules& rules_;
  const call_format& f_;
  std::vector<warning>& warnings_;
  fuel* budget_;
  std::map<std::pair<std::string, bool>, part_id> known_;  // by schema, and whether it is strict
  std::map<std::pair<std::string, bool>, std::vector<warning>> known_warnings_;
};

}  // namespace weir::core::grammar
