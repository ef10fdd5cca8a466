// origin.h — the origins of --allow-origin, spelled as browsers spell them in their Origin header.
//
// Pure functions: any thread.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "core/error.h"

namespace weir::net {

// Origin of pages that have none of their own: files, and frames that a site has put into a sandbox.
inline constexpr std::string_view no_origin = "null";
// What Chromium sends in its place for files, but over WebSockets alone.
inline constexpr std::string_view file_origin = "file://";

// The origin with small letters and without the default port of its scheme: what a browser sends. Error: no
// browser sends this, such as a path, a `*` or a list; the message says what is wrong.
core::result<std::string> parse_origin(std::string_view text);

// The same for each of a list. The first error counts.
core::result<std::vector<std::string>> parse_origins(const std::vector<std::string>& texts);

}  // namespace weir::net
