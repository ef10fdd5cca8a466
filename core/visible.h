// visible.h — makes text that came from outside fit for a terminal, or for one line of a log: what would be a
// command to the terminal, or would look like other text, is shown as an escape.
//
// Bytes that are not UTF-8 are shown as \xff.
//
// Thread safety: pure functions; any thread.
#pragma once

#include <string>
#include <string_view>

namespace weir::core {

// For a terminal: control characters, but for tabs and line ends, become escapes such as \u001b.
std::string visible(std::string_view text);

// For a log: control, format and separator characters become escapes: \n, \x1b, \u{202e}.
std::string one_line(std::string_view text);

}  // namespace weir::core
