// closed_loop.h — runs streams on an engine without sockets. Each stream sends its next request after an
// answer, like `weir load --streams`. A server is compared with the result.
//
// Thread safety: any thread. The engine runs on the calling thread.
#pragma once

#include "core/engine.h"
#include "net/load/histogram.h"
#include "net/load/questions.h"

namespace weir::apps::bench {

struct loop_options {
  std::uint32_t streams = 1;
  std::uint32_t prompt_tokens = 256, max_tokens = 128;
  double spread = 0;  // lengths are drawn from (1 - spread) to (1 + spread) times these; [0, 1)
  // Further jobs beside the streams, evenly in time. Each has a prompt of `beside_tokens` and an answer of
  // one token.
  double beside_per_s = 0;
  std::uint32_t beside_tokens = 2000;
  double warmup_s = 4, duration_s = 12;
  core::objective slo;  // decides which answers are good; not set: none is
};

struct loop_figures {
  double tokens_per_s = 0;
  // Times between two tokens of a stream, and from a request to its first token.
  load::histogram gaps_ms, first_ms;
  std::uint64_t steps = 0;
  // Answers to requests since the warm-up, and those of them that kept the objective. A request that is
  // unanswered at the end counts as an answer if its first token is late already.
  std::uint64_t answers = 0, good = 0;
  bool failed = false;  // a job or the device has failed
};

// Added to the seed for the jobs beside the streams, whose prompts must be different.
inline constexpr std::uint64_t other_prompts = 1u << 20;

// Runs `e` for the time of the options, and then ends all jobs. REQUIRES: `e` is idle.
loop_figures run_closed_loop(core::engine& e, const core::tokenizer& words, const core::clock& time,
                             const loop_options& o);

// The requests of the streams; they are the same for an engine and for a server.
load::question_options questions_of(const loop_options& o);

}  // namespace weir::apps::bench
