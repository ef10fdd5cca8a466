// trace.h — reads a file of requests: the time of each, and the lengths of its prompt and its answer.
//
// The first line decides the format:
//   t,in,out                                              seconds, tokens, tokens: this harness's own
//   TIMESTAMP,ContextTokens,GeneratedTokens               Azure LLM inference traces
//   Timestamp,Model,Request tokens,Response tokens,…      BurstGPT
//   {"timestamp":…,"input_length":…,"output_length":…}    Mooncake: one JSON object in each line; times in ms
//   num_prefill_tokens,num_decode_tokens,…                lengths only; --rate or --streams decide the times
//
// Requests without an answer are left out: in BurstGPT, these failed.
//
// Thread safety: pure functions; any thread.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "core/error.h"

namespace weir::load {

struct traced_request {
  double at_s = 0;                // since the first request
  std::uint32_t in = 1, out = 1;  // tokens
};

struct trace {
  bool timed = true;  // false: the file has no times
  std::vector<traced_request> requests;  // sorted by at_s
};

// `text`: content of the file. Error: invalid_param, with the number of the line in the message.
core::result<trace> parse_trace(std::string_view text);

}  // namespace weir::load
