#include "net/http/event_cursor.h"

#include <charconv>

#include "net/protocol/openai.h"

namespace weir::net {

std::optional<std::vector<std::uint32_t>> parse_event_id(std::string_view text) {
  std::vector<std::uint32_t> out;
  const char* at = text.data();
  const char* const end = at + text.size();
  for (;;) {
    const auto [behind, problem] = std::from_chars(at, end, out.emplace_back());
    if (problem != std::errc() || out.size() > openai::most_choices_in_all) return std::nullopt;
    if (behind == end) return out;
    if (*behind != '.') return std::nullopt;
    at = behind + 1;
  }
}

}  // namespace weir::net
