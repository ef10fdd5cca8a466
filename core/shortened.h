// shortened.h — makes text that came from outside short enough to be shown in messages.
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

}  // namespace weir::core
