// policy.h — the rules by which a simulated gateway chooses a device.
//
// Thread safety: one thread.
#pragma once

#include <memory>
#include <random>
#include <span>
#include <string_view>
#include <vector>

#include "core/error.h"
#include "core/fleet/pick.h"
#include "tests/bench/fleet/engine.h"

namespace weir::bench::fleet {

// What a gateway knows when a request comes.
struct question {
  const job& asked;
  // By device, as its boards and its own jobs since then say. place_load::known is set where the policy
  // asks for it.
  std::span<const core::place_load> seen;
  std::span<const std::uint32_t> own;  // by device: jobs of this gateway alone
  std::uint64_t beginning = 0;         // see core::pick()
};

// What no gateway knows: the present state of all devices.
struct truth {
  std::span<const std::unique_ptr<engine>> engines;
  std::span<const std::uint32_t> jobs;  // by device, with those that are on their way
  const trace& all;
  // Prompt tokens of a job that are in the device's cache.
  std::uint32_t found(const job& j, std::uint32_t device) const;
};

class policy {
 public:
  virtual ~policy() = default;
  virtual bool asks_landmarks() const noexcept { return false; }
  // Devices, the best one first: all of them, or as many as a job may ask (3) and more.
  virtual void choose(const question& q, std::vector<std::uint32_t>& out) = 0;
};

inline constexpr std::string_view policy_names =
    "weir, random, round-robin, least-loaded, sglang, weir-now, oracle";

// weir: core::pick(). random, round-robin: of a gateway. least-loaded: fewest jobs, as weir sees them.
// sglang: the rule of SGLang's router as published (cache_threshold 0.3, balance_abs_threshold 64,
// balance_rel_threshold 1.5; https://docs.sglang.io/advanced_features/sgl_model_gateway.html): every gateway
// guesses caches from its own traffic. weir-now: core::pick() where nothing is late and every page is known.
// oracle: the device that now has most of the prompt, among those with at most a quarter more jobs than the
// mean. Error: there is no policy of that name.
core::result<std::vector<std::unique_ptr<policy>>> make_policies(std::string_view name,
                                                                 std::uint32_t gateways,
                                                                 std::uint32_t devices, const truth& t,
                                                                 std::uint64_t seed);

}  // namespace weir::bench::fleet
