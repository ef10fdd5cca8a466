// base64.h — reads base64 as files of tokenizers write it: the usual alphabet, with '=' at the end.
//
// Thread safety: pure function; any thread.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace weir::core {

// The bytes; nullopt for anything that is not base64: another character, a length that is no multiple of four,
// or bits behind the last byte.
std::optional<std::string> from_base64(std::string_view text);

}  // namespace weir::core
