// overloaded.h — the refusal of what there is no room for now, with the time after which it may come again.
//
// Thread safety: a pure function; any thread.
#pragma once

#include <algorithm>
#include <string>
#include <utility>

#include "core/error.h"

namespace weir::actors {

// `retry_s` is brought into 1 s to an hour: who comes again at once only makes it worse, and who waits longer
// has left.
inline core::error overloaded(double retry_s, std::string message) {
  constexpr double least = 1, most = 3600;
  core::error e;
  e.code = core::errc::overloaded;
  e.message = std::move(message);
  e.retry_after_ms = static_cast<std::uint32_t>(std::clamp(retry_s, least, most) * 1000);
  return e;
}

}  // namespace weir::actors
