// service_doors.h — the parts of a service that a fleet uses (actors/fleet). They live as long as the
// service.
//
// Thread safety: as each part says.
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "actors/host.h"
#include "actors/model_list.h"
#include "actors/text_pool.h"
#include "core/delays.h"
#include "core/grammar/cache.h"
#include "core/incidents.h"
#include "core/memory/account.h"

namespace weir::actors {

struct service_doors {
  model_list& list;
  text_pool& texts;        // for short work on texts
  text_pool& constraints;  // for compiling
  const std::vector<std::unique_ptr<host>>& hosts;
  std::shared_ptr<const core::clock> lasting;
  std::shared_ptr<core::memory_account> memory;
  std::shared_ptr<core::grammar::constraint_cache> compiled;
  std::shared_ptr<core::delays> cancel_to_release;
  std::shared_ptr<core::incidents> seen;
  // Keeps `what` until no host of the service is left: a thread to which hosts send news of jobs.
  std::function<void(std::shared_ptr<const void> what)> keep;
};

}  // namespace weir::actors
