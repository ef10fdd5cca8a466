// uri.h — resolves the references of schemas against their bases (RFC 3986, section 5), and unescapes
// fragments.
//
// Thread safety: pure functions; any thread.
#pragma once

#include <string>
#include <string_view>

namespace weir::core::grammar {

// `reference` as a URI, seen from `base`, which may be empty. Neither has a fragment.
std::string resolve_uri(std::string_view base, std::string_view reference);
// %41 becomes A. What is no such escape stays.
std::string percent_decoded(std::string_view text);

}  // namespace weir::core::grammar
