// progress.h — shows the progress of loading on stderr: a bar on a terminal, log lines otherwise.
//
// Thread safety: a progress function is called by one thread at a time.
#pragma once

#include <chrono>
#include <optional>
#include <string>

#include "actors/messages.h"

namespace weir::apps {

// The log lines of loading: one every five seconds. So a program whose stderr is a file or a pipe says
// nothing about a short load.
class loading_lines {
 public:
  static constexpr std::chrono::seconds every{5};

  // `at`: time since loading began. `done` and `total`: bytes of the model. nullopt: there is nothing to say.
  std::optional<std::string> next(std::chrono::nanoseconds at, const std::string& model, std::uint64_t done,
                                  std::uint64_t total);

 private:
  std::chrono::nanoseconds next_ = every;
};

// Loading begins with this call.
actors::load_progress show_load_progress();

// Whether stderr is a terminal.
bool on_terminal();

// Prints that models run on the cpu, and why. Nothing for an empty reason.
void show_device(const std::string& why_cpu);

// Logs the memory of all models together, in one line.
void show_memory(const actors::memory_use& m);

}  // namespace weir::apps
