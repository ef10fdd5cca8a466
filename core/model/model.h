// model.h — weights on a device, behind the seam that every backend fills: llama on reference, cpu and cuda, and sim.
//
// Thread safety: info() from any thread once loaded; everything else on the owner's thread.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "core/error.h"
#include "core/schedule/batch.h"

namespace weir::core {

class sampler;  // core/sample/pipeline.h: one sequence's sampling state

struct model_info {
  std::string architecture;             // as config.json names it, or "sim"
  std::uint32_t vocab_size = 0;
  std::uint32_t context = 0;            // longest sequence, prompt and output together
  std::vector<token_id> stop_ids;       // the model's own ending tokens (generation_config.json, else config.json)
  std::uint64_t weight_bytes = 0;       // on the device
  std::uint64_t page_bytes = 0;         // keys and values of one page, all layers
};

// One sequence's draw in a step.
struct draw {
  sampler* from = nullptr;          // the sequence's own state; never null
  std::uint32_t logits_row = 0;     // of this step's forward
  std::uint32_t position = 0;       // index of the token being drawn in the sequence (prompt included)
  std::uint64_t seed = 0;           // as in batch_slice
  std::uint32_t prompt_tokens = 0;
};

struct drawn {
  token_id id = -1;
  bool fault = false;               // logits without a finite maximum: ends that job alone
};

class model {
 public:
  virtual ~model() = default;
  virtual const model_info& info() const noexcept = 0;

  // Takes the KV memory for `count` pages at once and touches it. Called once, before the first forward.
  virtual result<void> allocate_pages(std::uint32_t count) = 0;

  // One pass over the batch. An error is the device's fault, and concerns every job on it.
  virtual result<void> forward(const batch& b) = 0;

  // Chooses one token for each draw, from the logits of the last forward. Same length: draws and out.
  virtual result<void> sample(std::span<const draw> draws, std::span<drawn> out) = 0;

  // The last forward's logits [vocab_size] of one row, for tests and logprobs; empty where a model has none (sim).
  virtual std::span<const float> logits(std::uint32_t row) const = 0;
};

}  // namespace weir::core
