// unicode_names.h — the code points of a Unicode property, by its name in a regular expression.
//
// Thread safety: pure function; any thread.
#pragma once

#include <optional>
#include <string_view>

#include "core/grammar/regex/code_points.h"

namespace weir::core::grammar {

// Looks at every code point, which takes milliseconds: unicode_property() remembers what this finds. General
// categories by their short and long names come from utf8proc; scripts and binary properties from PCRE2.
std::optional<code_points> find_unicode_property(std::string_view name);

}  // namespace weir::core::grammar
