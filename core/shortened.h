// shortened.h — makes text that came from outside fit to be shown in messages and in a log.
//
// Thread safety: pure functions; any thread.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace weir::core {

inline constexpr std::size_t longest_shown = 64;  // bytes

// `utf8` in at most `longest_shown` bytes. A longer text is cut between two characters and ends with "…".
std::string shortened(std::string_view utf8);

// `text` fit for one line of a log: control, format and separator characters, and bytes that are not UTF-8,
// are shown as an escape: \n, \x1b, \u{202e}.
std::string one_line(std::string_view text);

}  // namespace weir::core
