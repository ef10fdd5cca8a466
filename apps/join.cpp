#include "apps/join.h"

#include <spdlog/spdlog.h>

#include <algorithm>

#include "net/bus/join_plan.h"
#include "net/bus/nats_bus.h"

namespace weir::apps {

core::result<std::unique_ptr<actors::bus>> join(const core::join_settings& s, const std::string& role) {
  if (s.join.empty())
    return core::bad_param("join",
                           "--join is missing: the servers of NATS that the fleet uses, such as "
                           "nats://127.0.0.1:4222");
  return net::join_nats(s, {role, [](std::string_view line) { spdlog::warn("{}", line); }});
}

core::result<> check_demo(const core::join_settings& s) {
  const auto urls = net::parse_join_urls(s.join);
  if (!urls) return urls.error();
  if (std::ranges::all_of(*urls, &net::join_url::is_loopback)) return {};
  return core::bad_param("demo",
                         "--demo: a demonstration lets a reader kill workers, and every server of "
                         "--join has to be on this machine");
}

}  // namespace weir::apps
