// printable.h — text of models and servers on its way to standard output: exact in a file or a pipe, and
// without commands on a terminal.
//
// Thread safety: any thread.
#pragma once

#include <unistd.h>

#include <string>
#include <string_view>

#include "core/visible.h"

namespace weir::apps {

inline std::string printable(std::string_view text) {
  return isatty(STDOUT_FILENO) ? core::visible(text) : std::string(text);
}

}  // namespace weir::apps
