#include "apps/join.h"

#include <spdlog/spdlog.h>

#include "net/bus/nats_bus.h"

namespace weir::apps {

core::result<std::unique_ptr<actors::bus>> join(const core::join_settings& s, const std::string& role) {
  if (s.join.empty())
    return core::bad_param("join",
                           "--join is missing: the servers of NATS that the fleet uses, such as "
                           "nats://127.0.0.1:4222");
  return net::join_nats(s, {role, [](std::string_view line) { spdlog::warn("{}", line); }});
}

}  // namespace weir::apps
