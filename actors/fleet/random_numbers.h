// random_numbers.h — numbers that nobody can guess, by which a member of a fleet knows answers to its
// questions, and who may give an order.
//
// Thread safety: one thread at a time a function.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <random>

namespace weir::actors::fleet {

inline std::function<std::uint64_t()> random_numbers() {
  return [source = std::make_shared<std::random_device>()] {
    return std::uint64_t{(*source)()} << 32 | (*source)();
  };
}

}  // namespace weir::actors::fleet
