#include "core/incidents.h"

#include <fmt/format.h>

#include <bit>
#include <cstdio>

namespace weir::core {

std::string incidents::text_of(const std::exception_ptr& what) {
  if (!what) return "unknown";
  try {
    std::rethrow_exception(what);
  } catch (const std::exception& e) {
    return e.what();
  } catch (...) {
    return "not a std::exception";
  }
}

void incidents::note(const char* where, std::exception_ptr what) noexcept {
  try {
    std::uint64_t here = 0;
    {
      const std::lock_guard hold(mutex_);
      ++count_;
      here = ++by_place_[where];
    }
    if (!std::has_single_bit(here)) return;
    const std::string line =
        fmt::format("{}: {} (incident {} here); what was at hand has ended, the rest goes on", where,
                    text_of(what), here);
    log_ ? log_(line) : static_cast<void>(std::fprintf(stderr, "%s\n", line.c_str()));
  } catch (...) {  // there is no memory for the entry or the line
    std::fputs("an incident could not be logged\n", stderr);
  }
}

void incidents::note(const char* where, std::string_view what) noexcept {
  try {
    const std::lock_guard hold(mutex_);
    ++count_;
    ++by_place_[where];
  } catch (...) {  // there is no memory for the entry: it is counted all the same
  }
  tell(where, what);
}

void incidents::tell(const char* where, std::string_view what) noexcept {
  try {
    const std::string line = fmt::format("{}: {}", where, what);
    log_ ? log_(line) : static_cast<void>(std::fprintf(stderr, "%s\n", line.c_str()));
  } catch (...) {
    std::fputs("an incident could not be logged\n", stderr);
  }
}

std::uint64_t incidents::count() const noexcept {
  const std::lock_guard hold(mutex_);
  return count_;
}

}  // namespace weir::core
