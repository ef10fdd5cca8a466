// terminate.h — what the program says when it ends by std::terminate.
#pragma once

namespace weir::apps {

// From now on std::terminate writes to standard error which thread called it, what exception was under way,
// and the addresses of the calls that led there (addr2line -e weir ADDRESS names them); then it aborts.
void say_where_on_terminate();

}  // namespace weir::apps
