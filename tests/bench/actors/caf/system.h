// system.h — CAF with as many workers as threads were asked for.
#pragma once

#include <caf/all.hpp>
#include <cstdint>

#include "tests/bench/actors/bench.h"

namespace bench {

class system_config : public caf::actor_system_config {
 public:
  explicit system_config(unsigned threads) { set("scheduler.max-threads", std::size_t(threads)); }
};

}  // namespace bench
