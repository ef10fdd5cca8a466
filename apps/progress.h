// progress.h — shows the progress of loading on stderr: a bar on a terminal, log lines otherwise.
//
// Thread safety: a progress function is called by one thread at a time.
#pragma once

#include <string>

#include "actors/messages.h"

namespace weir::apps {

// Loading begins with this call.
actors::load_progress show_load_progress();

// Whether stderr is a terminal.
bool on_terminal();

// Prints that models run on the cpu, and why. Nothing for an empty reason.
void show_device(const std::string& why_cpu);

// Logs the memory of all models together, in one line.
void show_memory(const actors::memory_use& m);

}  // namespace weir::apps
