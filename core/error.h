// error.h — how a call says that it failed for an outside reason: a file, a request, a device.
//
// Functions that can fail so return result<T>; our own mistakes are assertions, and exceptions do not cross
// rooms. `message` is a sentence for people and names the file, field or value; `param` names the field alone
// where a client could have sent a better one. Values are plain data: any thread.
#pragma once

#include <fmt/format.h>

#include <boost/system/result.hpp>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <utility>

namespace weir::core {

enum class errc {
  invalid_param,     // a field, option or value out of its range; `param` names it
  bad_file,          // a file that is not what its format says
  not_supported,     // understood, and refused by name
  prompt_too_long,   // does not fit the model's context
  model_not_found,
  not_found,
  overloaded,        // come back later
  unavailable,       // loading, draining or down
  does_not_fit,      // memory
  internal,          // our fault or the device's
};

struct error {
  errc code = errc::internal;
  std::string message;
  std::string param;
  std::uint32_t retry_after_ms = 0;  // with overloaded: when to come again; 0: nobody knows
};

template <class T = void>
using result = boost::system::result<T, error>;

[[noreturn]] inline void throw_exception_from_error(const error& e, const boost::source_location&) {
  throw std::runtime_error(e.message);
}

template <class... A>
error make_error(errc code, fmt::format_string<A...> format, A&&... args) {
  return error{code, fmt::format(format, std::forward<A>(args)...), {}};
}

template <class... A>
error bad_param(std::string param, fmt::format_string<A...> format, A&&... args) {
  return error{errc::invalid_param, fmt::format(format, std::forward<A>(args)...), std::move(param)};
}

}  // namespace weir::core
