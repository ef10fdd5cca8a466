// refused.h — how the parts of the schema front end end a compilation. It does not leave the front end.
#pragma once

#include <fmt/format.h>

#include <string>

namespace weir::core::grammar {

// Thrown where a schema cannot be compiled, and caught in compile_schema().
struct schema_refused {
  std::string pointer;  // JSON pointer of the place that is to blame
  std::string message;  // names the keyword, says why, and what would pass
};

template <class... A>
[[noreturn]] void refuse_schema(std::string pointer, fmt::format_string<A...> format, A&&... args) {
  throw schema_refused{std::move(pointer), fmt::format(format, std::forward<A>(args)...)};
}

}  // namespace weir::core::grammar
