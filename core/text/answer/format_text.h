// format_text.h — how a model writes calls and reasoning, in words for people.
//
// Thread safety: pure functions; any thread.
#pragma once

#include <string>

#include "core/text/answer/format.h"

namespace weir::core {

// The name of the format of calls, such as hermes; or that there is none, and what follows.
std::string calls_text(const answer_format& f);

// Where reasoning stands, such as "from <think> to </think>"; or that no marks are known, and what follows.
std::string reasoning_text(const answer_format& f);

}  // namespace weir::core
