#include "core/job.h"

#include <charconv>

namespace weir::core {

std::string job_id::text() const { return fmt::format("{:016x}{:016x}", hi, lo); }

std::optional<job_id> job_id::parse(std::string_view text) {
  if (text.size() != 32 || text.find_first_not_of("0123456789abcdef") != text.npos) return std::nullopt;
  job_id id;
  std::from_chars(text.data(), text.data() + 16, id.hi, 16);
  std::from_chars(text.data() + 16, text.data() + 32, id.lo, 16);
  return id;
}

}  // namespace weir::core
