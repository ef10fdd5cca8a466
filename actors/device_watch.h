// device_watch.h — says when something that is not weir slows its device down: heat, power, other processes.
//
// Thread safety: one thread.
#pragma once

#include <chrono>
#include <optional>
#include <string>

#include "kernels/cuda/nvml.h"

namespace weir::actors {

// The state as a line for people, for example "1410 of 1980 MHz, held down by heat, 83 °C; 2 other processes
// on it with 1024 MiB".
std::string text_of(const kernels::device_state& state);

class device_watch {
 public:
  static constexpr std::chrono::seconds every{10};  // between two calls of tick()

  struct line {
    bool slower;  // whether something slows the device down now
    std::string text;
  };
  // The line that is due: of the first state, and whenever heat, power or the number of other processes is
  // not what it was.
  std::optional<line> tick(const kernels::device_state& now);

 private:
  std::optional<kernels::device_state> last_;
};

}  // namespace weir::actors
