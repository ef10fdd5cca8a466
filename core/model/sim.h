// sim.h — a device that computes nothing and keeps time like one: for tests of everything above a model, and
// for load tests of servers.
//
// Output token i of a job with seed s is splitmix64(s * 2^32 + i) mod 1000: whoever knows the seed knows the
// text. Prompt ids are bytes, 0 to 255. A sim has no logits; sampling parameters change nothing, stop
// strings, limits and deadlines work as ever.
//
// It paces the engine through model::due(), a pure function of a sequence's progress: tokens fall due on a
// grid of 1/rate seconds that starts at the clock's own zero, and each token at the first point of the grid
// after the last. An owner that comes late therefore makes a stream slower, as a device would, and never lets
// it catch up in a rush.
//
// Thread safety: as model.
#pragma once

#include <cstdint>
#include <memory>
#include <string_view>

#include "core/model/model.h"

namespace weir::core {

struct sim_spec {
  double rate = 50;         // rate=N: tokens a second of one sequence, (0, 1e6]; 0 is the default, too
  bool staggered = false;   // arrive=together: one grid for all; staggered: sim_turns of them, evenly apart
  double prefill = 20000;   // prefill=N: prompt tokens a second of one sequence, (0, 1e9]
  std::uint32_t burst = 1;  // burst=N: tokens come N at once, every N/rate seconds; [1, 10000]
  duration stall_every{};   // stall=EVERY_MS/FOR_MS: every EVERY_MS nothing falls due for FOR_MS; zero: never
  duration stall_for{};     //   0 < FOR_MS < EVERY_MS
  // fault=sampler@N: the N-th draw of the device is a fault of its job; sampler@N-M: all up to the M-th; 0:
  // none
  std::uint64_t sampler_fault = 0, last_sampler_fault = 0;
  std::uint64_t device_fault = 0;  // fault=device@N: the N-th forward of the device fails; 0: none
  std::uint32_t context = 131072;  // ctx=N: [2, 2^24]
};

// What follows `sim:` in `--device sim[:K=V,…]`; empty: all defaults. Errors name the key.
result<sim_spec> parse_sim_spec(std::string_view text);

// Enough that tokens flow and do not come in surges; no more, since every turn is a step, in which an engine
// looks at all its sequences.
inline constexpr int sim_turns = 16;

inline constexpr std::uint32_t sim_vocab_size = 1000;
token_id sim_token(std::uint64_t seed, std::uint32_t index);

std::unique_ptr<model> make_sim_model(const sim_spec& spec);

}  // namespace weir::core
