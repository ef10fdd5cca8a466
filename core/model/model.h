// model.h — weights on a device, behind the seam that every backend fills: llama on reference, cpu and cuda,
// and sim.
//
// Thread safety: info() from any thread once loaded; everything else on the owner's thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "core/error.h"
#include "core/schedule/batch.h"

namespace weir::core {

class sampler;  // core/sample/pipeline.h: one sequence's sampling state

struct model_info {
  std::string architecture;  // as config.json names it, or "sim"
  std::uint32_t vocab_size = 0;
  std::uint32_t context = 0;       // longest sequence, prompt and output together
  std::vector<token_id> stop_ids;  // the model's own ending tokens (generation_config.json, else config.json)
  std::uint64_t weight_bytes = 0;  // on the device
  std::uint64_t page_bytes = 0;    // keys and values of one page, all layers
  std::uint32_t prompt_rows = 512; // of a step, that are enough to be quick
  bool paced = false;              // rows wait for their due(); otherwise they are computed as soon as asked
  bool runs_ahead =
      false;  // a step may begin before the one before it has given its tokens; never with paced
};

// Rows of one sequence that could be computed next, as model::due() is told of them.
struct upcoming {
  std::uint64_t ordinal = 0;   // of the sequence: 0, 1, … in order of admission
  std::uint32_t position = 0;  // of the first row
  std::uint32_t rows = 0;
  std::uint32_t prompt_tokens = 0;
  time_point last{};  // when the sequence's previous rows were computed; before that, when admitted
};

// One sequence's draw in a step.
struct draw {
  sampler* from = nullptr;       // the sequence's own state; never null
  std::uint32_t logits_row = 0;  // of this step's forward
  std::uint32_t position = 0;    // index of the token being drawn in the sequence (prompt included)
  std::uint64_t seed = 0;        // as in batch_slice
  std::uint32_t prompt_tokens = 0;
};

struct drawn {
  token_id id = -1;
  bool fault = false;  // logits without a finite maximum: ends that job alone
};

class model {
 public:
  virtual ~model() = default;
  virtual const model_info& info() const noexcept = 0;

  // Takes the KV memory for `count` pages at once and touches it. Before the first forward; called again it
  // takes other pages instead, and what was in the old ones is lost.
  virtual result<void> allocate_pages(std::uint32_t count) = 0;

  // Takes host memory for `count` pages besides: slots that save_page() and restore_page() name. Only where
  // page_bytes > 0.
  virtual result<void> allocate_host_pages([[maybe_unused]] std::uint32_t count) {
    return make_error(errc::internal, "{} has no pages to save", info().architecture);
  }

  // Does now what the first steps would take longer for: at most so many sequences decode, with so many rows
  // of prompts. After allocate_pages and before the first forward.
  virtual result<void> warm_up([[maybe_unused]] std::uint32_t max_batch,
                               [[maybe_unused]] std::uint32_t prompt_rows) {
    return {};
  }

  // A page's keys and values to a slot in host memory, and back. A copy may only begin: it comes behind every
  // forward that was begun before it, and before every one that is begun later.
  virtual result<void> save_page([[maybe_unused]] page_id page, [[maybe_unused]] std::uint32_t slot) {
    return make_error(errc::internal, "{} has no pages to save", info().architecture);
  }
  virtual result<void> restore_page([[maybe_unused]] page_id page, [[maybe_unused]] std::uint32_t slot) {
    return make_error(errc::internal, "{} has no pages to restore", info().architecture);
  }

  // Where info().paced: when these rows may be computed at the earliest. A pure function; the engine leaves
  // rows that are not due out of the batch, and says through step_report::wait_until when the next ones are.
  virtual time_point due(const upcoming&) const { return {}; }

  // One pass over the batch. An error is the device's fault, and concerns every job on it.
  virtual result<void> forward(const batch& b) = 0;

  // Chooses one token for each draw, from the logits of the last forward. Same length: draws and out.
  virtual result<void> sample(std::span<const draw> draws, std::span<drawn> out) = 0;

  // Where info().runs_ahead, a device works off in order what it is given: forward() and begin_draws() return
  // at once, and collect() waits. Each forward is followed by one begin_draws(), and that by one collect();
  // the next forward may come between those two, and take rows' tokens from these draws (drawn_by in
  // batch.h). What `draws` refer to is read before begin_draws() returns; there may be none. A draw that is a
  // fault gives later rows any token.
  virtual result<void> begin_draws([[maybe_unused]] std::span<const draw> draws) {
    return make_error(errc::internal, "{} does not run ahead", info().architecture);
  }
  // Waits for the draws that were begun, and for nothing that was begun after them. Same length: those draws
  // and out.
  virtual result<void> collect([[maybe_unused]] std::span<drawn> out) {
    return make_error(errc::internal, "{} does not run ahead", info().architecture);
  }

  // The last forward's logits [vocab_size] of one row, for tests and logprobs; empty where a model has none
  // (sim).
  virtual std::span<const float> logits(std::uint32_t row) const = 0;
};

}  // namespace weir::core
