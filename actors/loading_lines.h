// loading_lines.h — says how far the load of a model is, in the lines of a log.
//
// A line comes every five seconds, so that a program whose stderr is a file or a pipe says nothing about a
// short load.
//
// Thread safety: one thread at a time.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>

namespace weir::actors {

class loading_lines {
 public:
  static constexpr std::chrono::seconds every{5};

  // `at`: time since loading began. `done` and `total`: bytes of the model. nullopt: there is nothing to say.
  std::optional<std::string> next(std::chrono::nanoseconds at, const std::string& model, std::uint64_t done,
                                  std::uint64_t total);

 private:
  std::chrono::nanoseconds next_ = every;
};

}  // namespace weir::actors
