// loading_lines.h — says how far the load of a model is, in the lines of a log.
//
// Nothing is said in the first second, so that a program whose stderr is a file or a pipe says nothing about
// a short load; then one line for each quarter of a model.
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
  static constexpr std::chrono::seconds quiet{1};

  // `at`: time since loading began. `done` and `total`: bytes of the model. nullopt: there is nothing to say.
  std::optional<std::string> next(std::chrono::nanoseconds at, const std::string& model, std::uint64_t done,
                                  std::uint64_t total);

 private:
  int quarter_ = -1;  // of the last line
};

}  // namespace weir::actors
