// pool.h — the part of `weir bench sleep` that measures a pool of pages: it gives a fifth of its memory back
// and takes it again, round by round, while the model decodes beside it.
#pragma once

#include <boost/json/object.hpp>
#include <cstdint>
#include <functional>

#include "core/model/model.h"

namespace weir::apps::bench {

// `decode`: decodes a while in the first pages of the pool, and returns the time of its longest step, in
// seconds. `free_bytes`: what is free on the device. Where the pool cannot change, the figures are the
// reason. Errors: of the model, and `internal` where the bytes that come and go are not those of the pages.
// REQUIRES: `decode` uses no page in the last fifth
core::result<boost::json::object> measure_pool(core::model& m, std::uint32_t rounds,
                                               const std::function<core::result<double>()>& decode,
                                               const std::function<std::uint64_t()>& free_bytes);

}  // namespace weir::apps::bench
