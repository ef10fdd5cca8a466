// force.h — what a text has to go on with, whatever a model would draw.
//
// Both depend on the constraint and the text alone, so a job that uses them stays a function of its own.
//
// Thread safety: any thread, as constraint.h says.
#pragma once

#include <cstddef>
#include <optional>
#include <string>

#include "core/grammar/cursor.h"

namespace weir::core::grammar {

// The bytes that every allowed text has behind this one, up to the first place where several can follow, a
// token is named by its id, or the text may end; at most `most`.
std::string forced_bytes(constraint&, config_id, std::size_t most = 64);
inline std::string forced_bytes(const cursor& c, std::size_t most = 64) {
  return forced_bytes(c.over(), c.at(), most);
}

// The one token that may come. nullopt: several, or the text may end, or the constraint has failed.
std::optional<token_id> single_token(const cursor&);

}  // namespace weir::core::grammar
