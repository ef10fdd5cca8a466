// error.h — errors whose cause is outside the program: a file, a request, a device.
//
// A function that can fail in this way returns result<T>. Mistakes of the program itself are assertions.
// Exceptions do not cross the boundaries between kernels, core, actors and net.
//
// Thread safety: plain data; any thread.
#pragma once

#include <fmt/format.h>

#include <boost/system/result.hpp>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <utility>

namespace weir::core {

enum class errc {
  invalid_param,    // a field, option or value is out of its range; `param` names it
  bad_file,         // a file cannot be read, or does not have its format
  not_supported,    // a valid feature that weir does not have; the message names it
  prompt_too_long,  // the prompt does not fit the model's context
  model_not_found,
  not_found,
  overloaded,     // the client may try again later
  unavailable,    // loading, draining or down
  does_not_fit,   // memory is too small
  busy,           // another order of this kind is being carried out
  already_there,  // what is to be made has a name that is taken
  internal,       // a fault of the program or of the device
  adopted,        // a job goes on at another gateway of the fleet; never in a frame
  handed_over,    // the gateway ends, and its job runs on for others to adopt; never in a frame
  class_changed,  // a job had to move to a worker of another arithmetic, and may not; never in a frame
};

struct error {
  errc code = errc::internal;
  std::string message;  // for people; names the file, field or value
  std::string param;    // name of the field or option that a client should change; empty: none
  std::uint32_t retry_after_ms = 0;  // with overloaded: when to try again; 0: unknown
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
