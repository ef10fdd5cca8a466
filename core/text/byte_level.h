// byte_level.h — the alphabet in which byte-level vocabularies spell bytes: one printable character a byte.
//
// Pure functions: any thread.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace weir::core {

void append_byte_level(std::string& out, std::string_view bytes);

// The bytes that `spelled` stands for; nothing where a character of it is not in the alphabet.
std::optional<std::string> from_byte_level(std::string_view spelled);

}  // namespace weir::core
