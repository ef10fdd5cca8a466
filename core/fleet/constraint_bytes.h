// constraint_bytes.h — the source of a constraint in a frame.
//
// Thread safety: none; see bytes.h.
#pragma once

#include <memory>
#include <vector>

#include "core/fleet/bytes.h"
#include "core/grammar/compile.h"
#include "core/text/answer/tools.h"

namespace weir::core::fleet {

void write_constraint(byte_writer& to, const grammar::constraint_text& what);
void write_tools(byte_writer& to, const std::vector<tool_definition>& all);
void read_tools(byte_reader& from, std::vector<tool_definition>& all);
// Null where the reader failed. What was read is no valid constraint yet: compiling says so.
std::shared_ptr<const grammar::constraint_text> read_constraint(byte_reader& from);

}  // namespace weir::core::fleet
