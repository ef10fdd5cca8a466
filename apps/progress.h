// progress.h — a model's way into memory: a bar on a terminal, log lines elsewhere. To stderr.
#pragma once

#include "actors/messages.h"

namespace weir::apps {

actors::load_progress show_load_progress();

// What all models together took, as a line of the log.
void show_memory(const actors::memory_use& m);

}  // namespace weir::apps
