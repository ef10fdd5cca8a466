// fleet_metrics.h — the metrics of a gateway: its workers and what happened to its jobs (docs/metrics.md).
//
// Thread safety: a pure function; any thread.
#pragma once

#include "actors/fleet/gateway_side.h"
#include "net/metrics/prometheus.h"

namespace weir::net {

void append_fleet(prometheus_text& out, const actors::fleet::fleet_figures& now);

}  // namespace weir::net
