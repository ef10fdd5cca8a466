// choose_loader.h — which worker of a fleet is asked to load a model that requests wait for and nobody has
// ready.
//
//   1. One that loads it already, or wakes it: two gateways that ask at once make one load.
//   2. One where another gateway wishes for it.
//   3. One where it sleeps in memory.
//   4. One where it fits into what is free; of these the one with most free memory.
//   5. One where it fits once models without jobs have left; of these the one where the least has to leave.
//   6. One where models have jobs that have to end before; of these the one with the fewest jobs.
// What is equal otherwise is decided by a hash of worker and model, so that all gateways choose alike and
// models spread (rendezvous hashing, as in pick.h).
//
// Thread safety: a pure function; any thread.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

namespace weir::core::fleet {

// A worker that knows the model and could load it, as its board says.
struct load_place {
  enum class stand : std::uint8_t { loading, wished, asleep, absent };
  std::string_view worker;  // its name
  stand now = stand::absent;
  std::optional<std::uint64_t> free;  // bytes, of the device with most of them; nullopt: not known
  std::uint64_t resting = 0;          // bytes of its models that have no job and may leave
  std::uint32_t jobs = 0;             // of all its models
};

// Index of the worker to ask. `bytes`: that the model takes; 0: not known, and it counts as one that fits.
// nullopt: there is none.
std::optional<std::size_t> choose_loader(std::span<const load_place> places, std::string_view model,
                                         std::uint64_t bytes);

}  // namespace weir::core::fleet
