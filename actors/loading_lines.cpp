#include "actors/loading_lines.h"

#include <fmt/format.h>

namespace weir::actors {

std::optional<std::string> loading_lines::next(std::chrono::nanoseconds at, const std::string& model,
                                               std::uint64_t done, std::uint64_t total) {
  const int now = total ? static_cast<int>(done * 4 / total) : 4;
  if (at < quiet || now == quarter_) return std::nullopt;
  quarter_ = now == 4 ? -1 : now;
  return fmt::format("loading {}: {} % of {:.1f} MB", model, now * 25, static_cast<double>(total) / 1e6);
}

}  // namespace weir::actors
