// terminate.h — the report of the program when it ends by std::terminate.
#pragma once

namespace weir::apps {

// Installs a handler: std::terminate then writes to standard error the thread that called it, the current
// exception and the addresses of the call stack (addr2line -e weir ADDRESS names them), and aborts.
void say_where_on_terminate();

}  // namespace weir::apps
