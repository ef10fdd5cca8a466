// visible.h — makes text that came from outside fit for a terminal: what would be a command to the terminal
// is shown as text.
//
// Thread safety: pure functions; any thread.
#pragma once

#include <string>
#include <string_view>

namespace weir::core {

// Control characters, but for tabs and line ends, become escapes such as \u001b, and so does a byte that is
// no UTF-8. Everything else stays.
std::string visible(std::string_view text);

}  // namespace weir::core
