// progress.h — shows the progress of loading on stderr: a bar on a terminal, log lines otherwise.
#pragma once

#include "actors/messages.h"

namespace weir::apps {

actors::load_progress show_load_progress();

// Logs the memory of all models together, in one line.
void show_memory(const actors::memory_use& m);

}  // namespace weir::apps
