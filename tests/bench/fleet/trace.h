// trace.h — requests as a published trace has them: when they come, how long prompts and answers are, and
// which pages of prompts are equal.
//
// Prompts are never made: a page of a prompt is its name and the 64 ids that stand for it. Many users of a
// fleet are copies of one trace: pages of different copies differ, as do those of different salts.
//
// Thread safety: constant once read; any thread.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/cache/prefix_tree.h"
#include "core/error.h"

namespace weir::bench::fleet {

// Page name of a copy: another one for each copy, and nothing else about it is different.
struct copy_key {
  std::uint64_t hi = 0, lo = 0;
};
copy_key key_of(std::uint64_t copy) noexcept;

struct traced_request {
  double at_s = 0;                      // since the beginning of the trace
  std::uint32_t input = 0, output = 0;  // tokens, each >= 1
  std::uint32_t first_block = 0;        // index in trace::blocks
};

struct trace {
  static constexpr std::uint32_t block_tokens = 512, pages_a_block = block_tokens / core::page_tokens;

  std::string name;
  double length_s = 0;
  std::vector<traced_request> requests;  // by time
  // Numbers of blocks of 512 tokens, by request. Empty: no page of a prompt is equal to another's.
  std::vector<std::uint32_t> blocks;
  std::vector<core::page_name> names;  // [blocks, pages_a_block], of copy 0 without its key

  std::vector<bool> again;  // by block: more than one request has it

  bool has_prefixes() const noexcept { return !blocks.empty(); }
  // Whether another request of the copy has this page too. A page of which no other request has any is looked
  // for in no cache.
  bool repeats(std::uint32_t request, std::uint32_t page) const noexcept {
    return has_prefixes() && again[blocks[requests[request].first_block + page / pages_a_block]];
  }
  // Name and ids of a full page of a request's prompt.
  core::page_name name_of(std::uint32_t request, copy_key copy, std::uint32_t page) const noexcept;
  void read_ids(std::uint32_t request, copy_key copy, std::uint32_t page, core::token_id* out) const noexcept;
  // Share of prompt tokens that a cache without end would find in one copy.
  double repeated() const;
};

// Adds a request; `hashes`: numbers of its blocks, as many as `input` takes, or none.
void add(trace& t, double at_s, std::uint32_t input, std::uint32_t output,
         const std::vector<std::uint32_t>& hashes);
// Names the pages and sorts out the times, once all requests are there. Error: a block does not always follow
// the same block, so that its pages have no one name.
core::result<void> complete(trace& t);

// Reads Mooncake's lines of JSON (`.jsonl`: https://github.com/kvcache-ai/Mooncake, FAST25-release/traces) or
// Azure's table (`.csv`: https://github.com/Azure/AzurePublicDataset, AzureLLMInferenceTrace_*.csv).
core::result<trace> read_trace(const std::string& path);

}  // namespace weir::bench::fleet
