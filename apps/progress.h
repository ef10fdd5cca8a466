// progress.h — a model's way into memory: a bar on a terminal, log lines elsewhere. To stderr.
#pragma once

#include "actors/messages.h"

namespace weir::apps {

actors::load_progress show_load_progress();

}  // namespace weir::apps
