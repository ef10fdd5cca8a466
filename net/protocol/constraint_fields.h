// constraint_fields.h — the fields of a request that say what its answer may be: a JSON Schema, a regular
// expression, a grammar or a list of choices; and the warnings of an answer about what is not enforced. Both
// protocols have them (docs/structured.md).
//
// Pure functions: any thread.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "actors/request.h"
#include "core/grammar/rules.h"
#include "net/protocol/json.h"

namespace weir::net {

// Whether read_constraint_fields() reads this field.
bool is_constraint_field(std::string_view name);

// Reads the fields of a body into `r.constraint`. Fields with neutral values (null, {"type":"text"}) are as
// if they were not there. Error: invalid_param with the field's name, also where two fields each name a
// constraint.
core::result<void> read_constraint_fields(const json::object& body, actors::request& r);

// The same with the Responses API's `text.format` beside them.
core::result<void> read_response_constraint(const json::object& body, actors::request& r);

// Reads Anthropic's `output_config.format` and `output_format`, its older name. Error: invalid_param.
core::result<void> read_anthropic_format(const json::object& body, actors::request& r);

// Returns a body with each JSON Schema, of its constraint and of its tools, replaced by a string that has the
// schema's own text. So the bounds of the body do not apply inside a schema, its members keep their order,
// and its numbers keep their digits.
// `text` is not checked: if it is not JSON, the result is not JSON either.
std::string with_schemas_as_text(std::string_view text);

// Bytes of these schemas in a body, which do not count against a body's own bound.
std::size_t bytes_of_schemas(std::string_view text);

// Appends the member `warnings`, [{"param","message"}]; nothing where there are none. `param` is the place in
// the schema, as a JSON pointer.
void append_warnings(std::string& out, std::span<const core::grammar::warning> warnings);
// The same for what could not be read in an answer (core/text/answer/marks.h), a sentence each.
void append_reading_warnings(std::string& out, std::span<const std::string> sentences);
void add_reading_warnings(std::vector<core::grammar::warning>& to, std::span<const std::string> sentences);

}  // namespace weir::net
