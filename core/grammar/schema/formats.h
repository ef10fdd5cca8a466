// formats.h — the formats of strings that are asserted, as regular expressions.
//
// Sources: RFC 3339 (dates, times, durations), RFC 5321 (mail addresses), RFC 1123 (host names), RFC 2673 and
// 4291 (addresses), RFC 3986 (URIs), RFC 4122 (UUIDs), RFC 6901 (pointers), RFC 4648 (base64). Dates are
// exact: 29 February exists in leap years alone. A leap second exists at 23:59:60 UTC alone.
//
// Thread safety: constant data.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "core/grammar/regex/regex_pool.h"

namespace weir::core::grammar {

enum class format_use {
  asserted,    // the string follows format_expression()
  annotation,  // a word that asks nothing of a string, such as OpenAPI's `password`
  missing,     // a format of the standard that is not supported
  unknown,
};

format_use use_of_format(std::string_view name);
// All names of one use; of `unknown` none.
std::vector<std::string> formats_of(format_use);
// The expression, to be matched from beginning to end. REQUIRES: the format is asserted.
const std::string& format_expression(std::string_view name);
// Most characters of such a string; `unbounded`: only the expression limits it.
std::uint32_t format_max_length(std::string_view name);

}  // namespace weir::core::grammar
