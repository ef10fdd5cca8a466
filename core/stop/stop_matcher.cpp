#include "core/stop/stop_matcher.h"

namespace weir::core {
namespace {

unsigned char small(char c) { return static_cast<unsigned char>(c >= 'A' && c <= 'Z' ? c - 'A' + 'a' : c); }

}  // namespace

std::optional<std::uint64_t> stop_matcher::feed(std::string_view bytes) noexcept {
  if (empty()) return std::nullopt;
  for (const char c : bytes) {
    ++fed_;
    at_ = stops_.next(at_, any_case_ ? small(c) : static_cast<unsigned char>(c));
    if (const std::uint32_t length = stops_.matched(at_); length > 0) return fed_ - length;
  }
  return std::nullopt;
}

}  // namespace weir::core
