#include "actors/loading_lines.h"

#include <fmt/format.h>

#include "core/size_text.h"

namespace weir::actors {

std::optional<std::string> loading_lines::next(std::chrono::nanoseconds at, const std::string& model,
                                               std::uint64_t done, std::uint64_t total) {
  if (at < next_) return std::nullopt;
  next_ = at + every;
  return fmt::format("loading {}: {} % of {}", model, total ? done * 100 / total : 100,
                     core::size_text(total));
}

}  // namespace weir::actors
