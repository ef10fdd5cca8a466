// fleet_table.h — the workers of a fleet as text, from their boards.
//
// Thread safety: pure functions; any thread.
#pragma once

#include <map>
#include <string>

#include "core/fleet/fleet_board.h"

namespace weir::net {

using seen_boards = std::map<std::string, core::fleet::fleet_board>;  // by worker

// A line for each model of each worker, below a line of headings. What workers say is shown fit for a
// terminal.
std::string fleet_table(const seen_boards& boards);
// {"workers":[board, …]}, and a line end.
std::string fleet_json(const seen_boards& boards);

}  // namespace weir::net
