// overloaded.h — the error for a request that there is no room for now, with a time after which the client
// may try again.
//
// Thread safety: any thread; a pure function.
#pragma once

#include <algorithm>
#include <string>
#include <utility>

#include "core/error.h"

namespace weir::actors {

// An error with code `overloaded`. `retry_s`: seconds until a retry may succeed, clamped to 1 s to 1 h, since
// a retry at once adds to the overload and no client waits longer.
inline core::error overloaded(double retry_s, std::string message) {
  constexpr double least = 1, most = 3600;
  core::error e;
  e.code = core::errc::overloaded;
  e.message = std::move(message);
  e.retry_after_ms = static_cast<std::uint32_t>(std::clamp(retry_s, least, most) * 1000);
  return e;
}

}  // namespace weir::actors
