// closed_loop.h — streams on an engine without sockets: each asks again as soon as it is answered, as `weir
// load --streams` does. What a server is compared with.
//
// Thread safety: everything on the thread that calls.
#pragma once

#include "core/engine.h"
#include "net/load/histogram.h"
#include "net/load/questions.h"

namespace weir::apps::bench {

struct loop_options {
  std::uint32_t streams = 1;
  std::uint32_t prompt_tokens = 256, max_tokens = 128;
  // Beside the streams: prompts of so many tokens, evenly in time, of which nobody waits for more than the
  // first token.
  double beside_per_s = 0;
  std::uint32_t beside_tokens = 2000;
  double warmup_s = 4, duration_s = 12;
};

struct loop_figures {
  double tokens_per_s = 0;
  load::histogram gaps_ms, first_ms;  // between two tokens of a stream; from the question to the first one
  std::uint64_t steps = 0;
  bool failed = false;  // a job, or the device
};

// added to the seed: prompts beside the streams are others
inline constexpr std::uint64_t other_prompts = 1u << 20;

// Runs `e` until the time is over, then ends what still runs. REQUIRES: e is idle.
loop_figures run_closed_loop(core::engine& e, const core::tokenizer& words, const core::clock& time,
                             const loop_options& o);

// What stream and prompt number `index` asks, the same for an engine and a server.
load::question_options questions_of(const loop_options& o);

}  // namespace weir::apps::bench
