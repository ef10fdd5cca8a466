// trace.h — a file of requests: when each came, how long its prompt and its answer were.
//
// Read by their first line:
//   t,in,out                                              seconds, tokens, tokens: this harness's own
//   TIMESTAMP,ContextTokens,GeneratedTokens               Azure LLM inference traces
//   Timestamp,Model,Request tokens,Response tokens,…      BurstGPT (rows that failed, with no answer, are
//   left out)
//   {"timestamp":…,"input_length":…,"output_length":…}    Mooncake: JSON, one object a line, ms
//   num_prefill_tokens,num_decode_tokens,…                lengths alone: when they come is --rate's or
//   --streams' affair
//
// Pure functions: any thread.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "core/error.h"

namespace weir::load {

struct traced_request {
  double at_s = 0;            // since the first
  std::uint32_t in = 1, out = 1;
};

struct trace {
  bool timed = true;
  std::vector<traced_request> requests;  // sorted by at_s
};

// Errors name the line.
core::result<trace> parse_trace(std::string_view text);

}  // namespace weir::load
