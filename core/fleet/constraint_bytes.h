// constraint_bytes.h — the source of a constraint in a frame.
//
// Thread safety: none; see bytes.h.
#pragma once

#include <memory>

#include "core/fleet/bytes.h"
#include "core/grammar/compile.h"

namespace weir::core::fleet {

void write_constraint(byte_writer& to, const grammar::constraint_text& what);
// Null where the reader failed. What was read is no valid constraint yet: compiling says so.
std::shared_ptr<const grammar::constraint_text> read_constraint(byte_reader& from);

}  // namespace weir::core::fleet
