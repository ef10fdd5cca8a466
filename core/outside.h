// outside.h — names that came from outside, as a message may show them.
//
// Thread safety: pure functions; any thread.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace weir::core {

inline constexpr std::size_t longest_shown = 64;  // bytes

// `utf8` in at most `longest_shown` bytes: what is longer is cut between two characters, and ends in "…".
std::string shortened(std::string_view utf8);

}  // namespace weir::core
