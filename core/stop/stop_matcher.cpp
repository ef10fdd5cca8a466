#include "core/stop/stop_matcher.h"

namespace weir::core {

std::optional<std::uint64_t> stop_matcher::feed(std::string_view bytes) noexcept {
  if (empty()) return std::nullopt;
  for (const char c : bytes) {
    ++fed_;
    at_ = stops_.next(at_, static_cast<unsigned char>(c));
    if (const std::uint32_t length = stops_.matched(at_); length > 0) return fed_ - length;
  }
  return std::nullopt;
}

}  // namespace weir::core
