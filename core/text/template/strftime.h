// strftime.h — a time as text, in the C locale.
//
// Thread safety: pure function; any thread.
#pragma once

#include <chrono>
#include <string>
#include <string_view>

namespace weir::core::jinja {

// Conversions are those of C's strftime() without the time zone, and glibc's `-`: %-d is a day without a
// zero. Throws failure for any other, and for a format above 1 KiB.
std::string formatted_time(std::chrono::local_seconds at, std::string_view format);

}  // namespace weir::core::jinja
