// base64_text.h — writes base64 for tests.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace weir::tests {

inline std::string to_base64(std::string_view bytes) {
  constexpr std::string_view alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string out;
  for (std::size_t i = 0; i < bytes.size(); i += 3) {
    std::uint32_t three = 0;
    for (std::size_t k = i; k < i + 3; ++k)
      three = three << 8 | (k < bytes.size() ? static_cast<unsigned char>(bytes[k]) : 0u);
    for (std::size_t k = 0; k < 4; ++k)
      out.push_back(i + k <= bytes.size() ? alphabet[three >> (18 - 6 * k) & 63] : '=');
  }
  return out;
}

}  // namespace weir::tests
