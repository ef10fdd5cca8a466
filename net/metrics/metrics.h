// metrics.h — the text of GET /metrics: every figure that docs/metrics.md lists.
//
// Thread safety: any thread. It waits for nobody: an engine's figures are those that its owner published
// last, and it takes no lock that a step needs.
#pragma once

#include <string>

namespace weir::net {

struct server_state;

// In the format of net/metrics/prometheus.h.
std::string metrics_text(const server_state& all);

}  // namespace weir::net
