// playout.h — when the tokens of a stream would be seen by a reader whose client shows them evenly. It is the
// playout buffer of the browser client (Playout in net/page/weir.js) without its margin for drawn frames.
//
// 1. The first frame is shown at once. None is shown later than playout_longest_ms after it arrived.
// 2. Within these bounds, frames follow at the mean rate of the last 64, held back just enough that all but 5
//    in 100 of them are still in time.
//
// Thread safety: a pure function; any thread.
#pragma once

#include <span>
#include <vector>

#include "net/load/record.h"

namespace weir::load {

inline constexpr double playout_longest_ms = 250;

// The times in ms, on the clock of the frames, at which frames in order of arrival are shown. The answer is
// taken to complete: a client that loses its stream shows at once what it holds.
std::vector<double> play_out(std::span<const frame> frames);

}  // namespace weir::load
