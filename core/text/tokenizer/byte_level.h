// byte_level.h — the alphabet of byte-level vocabularies: it spells each byte as one printable character.
//
// Thread safety: pure functions; any thread.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace weir::core {

// Appends the spelling of `bytes`.
void append_byte_level(std::string& out, std::string_view bytes);

// The bytes that `spelled` stands for; nullopt if a character is not in the alphabet. REQUIRES: `spelled` is
// valid UTF-8.
std::optional<std::string> from_byte_level(std::string_view spelled);

}  // namespace weir::core
