// sim.h — a simulated model, which computes nothing but takes the time that a device would. For tests of
// everything above a model, and for load tests of servers.
//
// Output token i of a job with seed s is splitmix64(s * 2^32 + i) mod 1000, so a client that knows the seed
// knows the text. Under a constraint it is the first allowed token from that id upwards; after id 999 comes
// id 0. Prompt ids are bytes, 0 to 255. A sim has no logits, so sampling parameters change nothing. Stop
// strings, limits and deadlines work as with any model. Logprobs are simulated: the drawn token is the
// likeliest, and the k-th likeliest after it is token (drawn + k) mod 1000, with probability 2^-(k + 1).
//
// A sim paces the engine through model::due(), a pure function of a sequence's progress. Tokens are due at
// the points of a grid with a spacing of burst / rate seconds, which begins at the clock's zero. Each token
// (or burst of tokens) is due at the first point after the previous one was computed. If the owner is late,
// a stream thus becomes slower, as on a device, and never catches up with a burst.
//
// With `step` a sim takes the time of a device instead, and rate, prefill, arrive, burst and stall have no
// effect: rows are always due, and each forward takes longer the more rows it has.
//
// With `script` a sim answers what a file says (sim_script.h): ids 0 to 255 are bytes, and 256 ends an
// answer. Output token i is byte i of the answer, and behind the last byte comes the end. Under a constraint
// it is the first allowed token from that one upwards, and after the end comes byte 0; i counts on, whatever
// was drawn. min_tokens and ignore_eos thus get ends without text behind the answer. With rate=0 the answer
// comes as fast as it goes: rate, prefill, arrive, burst and stall have no effect then.
//
// With `pages` a sim has a pool, which is large on the account and takes no memory: pages of KB kilobytes
// each, which come and go in steps of STEP.
//
// A sim sleeps as a real model does, in simulated time (`sleep`); its weights take mb= of host memory then.
// While it sleeps it computes nothing: a forward is a failure of the device.
//
// Thread safety: see model.h.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "core/model/model.h"
#include "core/model/sim_script.h"

namespace weir::core {

struct sim_spec {
  // rate=N: tokens per second of one sequence, [0.001, 1e6]; N = 0: the default, and with a script no limit,
  // which is 0 here.
  double rate = 50;
  bool staggered = false;   // arrive=together: one grid for all; staggered: sim_phases grids, evenly shifted
  double prefill = 20000;   // prefill=N: prompt tokens per second of one sequence, [0.001, 1e9]
  std::uint32_t burst = 1;  // burst=N: tokens come N at a time, every N/rate seconds; [1, 10000]
  duration stall_every{};   // stall=EVERY_MS/FOR_MS: every EVERY_MS, nothing is due for FOR_MS; zero: never
  duration stall_for{};     //   0 < FOR_MS < EVERY_MS
  // fault=sampler@N: the N-th draw of the device is a fault of its job; sampler@N-M: draws N to M are. 0:
  // none.
  std::uint64_t sampler_fault = 0, last_sampler_fault = 0;
  std::uint64_t device_fault = 0;  // fault=device@N: the N-th forward of the device fails; 0: none
  bool load_fault = false;         // fault=load: the load of the model fails, after the time that it takes
  // pages=KB/STEP/MOST: a page takes KB kilobytes, at most 2^20; pages come and go in steps of STEP, 0:
  // never; MOST: there are addresses for so many, at most 2^24. Without it pages take no memory.
  std::uint32_t page_kb = 0, page_step = 0, most_pages = 0;
  // fault=pages@N: the N-th change of the pool is a failure of the device; pages_room@N: the memory for it is
  // short. 0: none.
  std::uint64_t pages_fault = 0, pages_room_fault = 0;
  // fault=sleep@N, wake@N: the N-th sleep or wake breaks the model; sleep_room@N, wake_room@N: the memory for
  // it is short. 0: none.
  std::uint64_t sleep_fault = 0, wake_fault = 0, sleep_room_fault = 0, wake_room_fault = 0;
  duration load{};                 // load=MS: how long the load of the model takes; at most 600000
  bool sleeps = true;              // sleep=SLEEP_MS/WAKE_MS: how long each takes; sleep=never: it cannot
  duration sleep{}, wake{};        //   each at most 600000 ms
  std::uint64_t weight_bytes = 0;  // mb=N: size of the weights, which take no memory; at most 1000000
  std::uint32_t context = 131072;  // ctx=N: [2, 2^24]
  // step=BASE/PROMPT/STREAM, in us, each at most 1e6, BASE above 0: a forward takes BASE, and for each row of
  // a prompt and each row of a stream. Zero: none.
  duration step{}, step_prompt_row{}, step_stream_row{};
  std::string script;  // script=FILE: what is answered; a path without a comma; empty: none
};

// Parses what follows `sim:` in `--device sim[:K=V,…]`; empty: all defaults. Error: invalid_param, with the
// key in the message.
result<sim_spec> parse_sim_spec(std::string_view text);

// Number of staggered grids. They are enough that the tokens of all sequences together come evenly. There
// are no more, because each grid costs a step, in which the engine visits all its sequences.
inline constexpr int sim_phases = 16;

inline constexpr std::uint32_t sim_vocab_size = 1000;
// Output token `index` of a job with this seed.
token_id sim_token(std::uint64_t seed, std::uint32_t index);

// `script`: what spec.script says, read; null: none. `spend` spends the time of a forward pass, where
// spec.step is set: it waits, or moves a clock. Without it forwards take no time.
std::unique_ptr<model> make_sim_model(const sim_spec& spec, std::function<void(duration)> spend = {},
                                      std::shared_ptr<const sim_script> script = {});

}  // namespace weir::core
