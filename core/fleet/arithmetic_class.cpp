#include "core/fleet/arithmetic_class.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "core/fingerprint.h"

namespace weir::core::fleet {

std::uint64_t class_of(const arithmetic_facts& f, std::string_view build) {
  if (f.weights == 0) return 0;
  fingerprint all;
  all.add(f.weights);
  all.add(build);
  all.add(f.backend);
  all.add(f.kv_type);
  all.add(f.activations);
  all.add(std::uint64_t{f.deterministic});
  return std::max<std::uint64_t>(all.value(), 1);
}

std::string class_text(std::uint64_t arithmetic) {
  return arithmetic == 0 ? std::string() : fmt::format("{:016x}", arithmetic);
}

std::uint64_t parse_class(std::string_view text) {
  std::uint64_t out = 0;
  if (text.size() != 16) return 0;
  const auto [end, ec] = std::from_chars(text.data(), text.data() + text.size(), out, 16);
  return ec == std::errc() && end == text.data() + text.size() ? out : 0;
}

std::string backend_without_number(std::string_view name) {
  constexpr std::string_view cuda = "cuda:";
  if (!name.starts_with(cuda)) return std::string(name);
  const auto rest = name.find_first_not_of("0123456789", cuda.size());
  return "cuda" + std::string(rest == name.npos ? std::string_view() : name.substr(rest));
}

}  // namespace weir::core::fleet
