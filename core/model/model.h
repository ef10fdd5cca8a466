// model.h — weights on a device, behind one interface. Implementations: decoder_model on the reference, cpu
// and cuda backends, and sim.
//
// Errors: a model that was loaded fails only where memory is short or the device is broken.
//
// Thread safety: info() from any thread once the model is loaded; everything else on the owner's thread.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/error.h"
#include "core/model/batch.h"
#include "core/token_set.h"
#include "kernels/logprobs.h"
#include "kernels/pool_steps.h"

namespace weir::core {

class sampler;  // core/sample/pipeline.h: one sequence's sampling state

struct model_info {
  std::string architecture;         // as config.json names it, or "sim"
  std::uint32_t vocab_size = 0;     // ids are 0 to vocab_size - 1
  std::uint32_t context = 0;        // most tokens of a sequence, prompt and output together
  token_set stop_ids;               // the model's own, from generation_config.json or else config.json
  std::uint64_t weight_bytes = 0;   // of the weights, on the device
  std::uint64_t page_bytes = 0;     // of the keys and values of one page, all layers; 0: it has no pages
  std::string_view kv_type;         // of the keys and values in pages, such as q8; empty: it has no pages
  kernels::pool_steps pool;         // how its pool of pages can change; by default it cannot
  std::uint32_t prompt_rows = 512;  // prompt rows of a step with which prompts reach nearly their full speed
  bool paced = false;               // rows may not be computed before due(); otherwise they always may
  // A step may begin before the tokens of the one before it are known; see begin_draws(). Never with paced.
  bool runs_ahead = false;
};

// Rows of one sequence that could be computed next; the question to model::due().
struct upcoming {
  std::uint64_t ordinal = 0;        // number of the sequence's admission: 0, 1, …
  std::uint32_t position = 0;       // of the first row
  std::uint32_t rows = 0;           // how many; >= 1
  std::uint32_t prompt_tokens = 0;  // length of the sequence's prompt
  // When the sequence's previous rows were computed; before its first rows, when it was admitted.
  time_point last{};
};

// A request to draw the next token of one sequence.
struct draw {
  sampler* from = nullptr;          // the sequence's sampling state; never null
  std::uint32_t logits_row = 0;     // of the forward; see batch_slice
  std::uint32_t position = 0;       // of the token to be drawn, in prompt and output together
  std::uint64_t seed = 0;           // the job's; see sampling_params
  std::uint32_t prompt_tokens = 0;  // length of the sequence's prompt
  // How many likeliest tokens model::logprobs_of() gives beside the drawn one; negative: no logprobs.
  std::int32_t top_logprobs = -1;
  // Which tokens may be drawn: bit id % 32 of word id / 32, a word for each 32 tokens; empty: all may.
  std::span<const std::uint32_t> allowed;
};
static_assert(sizeof(draw) == 48, "a step writes more for every sequence");

// Result of a draw. Where it is no token, this job ends with an error, and the others go on.
struct drawn {
  token_id id = -1;
  bool fault = false;         // the model's logits have no finite maximum, or one is NaN or +inf
  bool nothing_left = false;  // the logits are sound, but what the job asks for leaves no token to draw
  float surprise = 0;         // sample_scratch::surprise, where the job has mirostat
};

class model {
 public:
  virtual ~model() = default;
  virtual const model_info& info() const noexcept = 0;

  // The bytes that the model itself has allocated on its device to compute in, beside weights and pages. What
  // its backend has allocated for it is not counted (backend::memory).
  virtual std::uint64_t activation_bytes() const noexcept { return 0; }

  // Allocates and touches the memory for the keys and values of `count` pages: page ids are 0 to count - 1.
  // Required before the first forward. A second call replaces the pages, and their contents are lost. Error:
  // does_not_fit.
  virtual result<void> allocate_pages(std::uint32_t count) = 0;

  // The most pages of the pool that the next allocate_pages() makes: it reserves addresses for so many.
  // Error: not_supported where such a pool cannot change (model_info::pool).
  virtual result<void> reserve_pages([[maybe_unused]] std::uint32_t most) {
    return make_error(errc::not_supported, "the pages of {} cannot grow", info().architecture);
  }

  // Allocates host memory for copies of `count` pages: the slots 0 to count - 1 of save_page() and
  // restore_page(). REQUIRES: page_bytes > 0. Error: does_not_fit.
  virtual result<void> allocate_host_pages([[maybe_unused]] std::uint32_t count) {
    return make_error(errc::internal, "{} has no pages to save", info().architecture);
  }

  // Does in advance the work that would slow down the first steps: allocations, code, graphs. Steps will have
  // at most `max_batch` decoding sequences and `prompt_rows` prompt rows. To be called after allocate_pages()
  // and before the first forward.
  virtual result<void> warm_up([[maybe_unused]] std::uint32_t max_batch,
                               [[maybe_unused]] std::uint32_t prompt_rows) {
    return {};
  }

  // Copies a page's keys and values to a slot in host memory. The copy may complete later, but in order with
  // forwards: after every forward that began before it, and before every forward that begins later.
  virtual result<void> save_page([[maybe_unused]] page_id page, [[maybe_unused]] std::uint32_t slot) {
    return make_error(errc::internal, "{} has no pages to save", info().architecture);
  }
  // Copies a slot in host memory to a page, in the same order with forwards as save_page().
  virtual result<void> restore_page([[maybe_unused]] page_id page, [[maybe_unused]] std::uint32_t slot) {
    return make_error(errc::internal, "{} has no pages to restore", info().architecture);
  }

  // Copies pages to others in this order, behind all work that was begun, and waits for the copies and that
  // work. Without copies it waits alone. A model whose pages take no memory has nothing to copy.
  virtual result<void> move_pages([[maybe_unused]] std::span<const page_copy> moves) {
    if (info().page_bytes == 0) return {};
    return make_error(errc::internal, "{} cannot move pages", info().architecture);
  }

  // Earliest time at which these rows may be computed, where info().paced. A pure function. The engine leaves
  // rows that are not due out of the batch.
  virtual time_point due(const upcoming&) const { return {}; }

  // Makes the batch's page copies and computes its rows. An error is a failure of the device and concerns
  // every job on it.
  virtual result<void> forward(const batch& b) = 0;

  // Draws one token for each of `draws` from the logits of the latest forward, and waits for them. `out` has
  // the length of `draws`. An error is a failure of the device.
  virtual result<void> sample(std::span<const draw> draws, std::span<drawn> out) = 0;

  // Begins the draws from the latest forward; collect() returns their tokens. REQUIRES: info().runs_ahead.
  //
  // A model that runs ahead completes its work in the order it is given. forward() and begin_draws() return
  // at once, and only collect() waits. Each forward is followed by one begin_draws() and one collect(). The
  // next forward may come between these two, and its rows may take tokens of these draws (drawn_by in
  // batch.h). `draws` may be empty; everything that it refers to is read before begin_draws() returns. If a
  // draw is a fault, rows that take its token take an unspecified one.
  virtual result<void> begin_draws([[maybe_unused]] std::span<const draw> draws) {
    return make_error(errc::internal, "{} does not run ahead", info().architecture);
  }
  // Whether the device still computes the latest forward. A model that cannot tell says no. REQUIRES:
  // info().runs_ahead, and the draws of that forward are not begun.
  virtual bool computing() const { return false; }

  // Waits for the draws begun last, but for no work begun after them, and writes their tokens. `out` has the
  // length of those draws. REQUIRES: info().runs_ahead. An error is a failure of the device.
  virtual result<void> collect([[maybe_unused]] std::span<drawn> out) {
    return make_error(errc::internal, "{} does not run ahead", info().architecture);
  }

  // Whether other models have work on the same device. From the next forward on the device then computes the
  // steps of these models one after the other, in the order in which they were begun, and their times are
  // measured. A model that is alone measures nothing.
  virtual void set_company([[maybe_unused]] bool others) {}
  // How long the device computed the step that collect() completed last; nullopt: it was not measured. Waits
  // for the end of a step that had no draws.
  virtual std::optional<duration> device_time() const { return std::nullopt; }

  // Sleep: a model without jobs gives back the device's memory of its weights and pages. The addresses stay
  // the model's own, so that graphs and plans hold after wake(). All three may be called on another thread
  // than the owner's while the owner does not use the model. `others_busy`: while it is true other models
  // have work on the device, to which copies give way; null: none ever has.
  //
  // Bytes of host memory that sleep() takes for the weights; nullopt: this model cannot sleep.
  virtual std::optional<std::uint64_t> sleep_bytes() const noexcept { return std::nullopt; }
  // Waits for the device, copies the weights to host memory, and gives back the memory of weights and pages.
  // What the pages hold is lost; host pages stay. Errors: not_supported; does_not_fit where host memory is
  // short, and the model is then awake as before.
  virtual result<void> sleep([[maybe_unused]] const std::atomic<bool>* others_busy = nullptr) {
    return make_error(errc::not_supported, "{} cannot sleep", info().architecture);
  }
  // Takes the memory again, copies the weights back, and compares sampled bytes of each tensor with what they
  // were. Errors: does_not_fit where the device's memory is short, and the model sleeps on; internal where a
  // sample differs, and the model can only be destroyed.
  virtual result<void> wake([[maybe_unused]] const std::atomic<bool>* others_busy = nullptr) {
    return make_error(errc::not_supported, "{} cannot sleep", info().architecture);
  }

  // The pool of pages can change its size while the model works. Addresses are reserved for most_pages()
  // pages, the first pages() of which have memory. Equal: the pool cannot grow.
  virtual std::int32_t pages() const noexcept { return 0; }
  virtual std::int32_t most_pages() const noexcept { return pages(); }
  // Pages come and go in steps of so many; 0: this model's pool cannot change.
  virtual std::int32_t page_step() const noexcept { return 0; }
  // Gives back the memory of pages `pages` and above, or takes memory so that there are `pages`. Of a number
  // that is no multiple of page_step() the rest of the last step keeps its memory. On another thread than the
  // owner's, while the owner steps: no step that is under way or begins uses a page at or above the smaller
  // of both counts. One call at a time, and none beside sleep() or wake().
  // Errors: not_supported; does_not_fit where memory is short, and the pool is then as before.
  virtual result<void> set_pages([[maybe_unused]] std::int32_t pages) {
    return make_error(errc::not_supported, "the pool of {} cannot change its size", info().architecture);
  }

  // Logprobs of draw `i` of the latest sample() or collect(). Valid until the next sample() or begin_draws().
  // REQUIRES: that draw asked for them, and was no fault.
  virtual const kernels::draw_logprobs& logprobs_of(std::uint32_t i) const = 0;

  // Logits [vocab_size] of one row of the latest forward, for tests. `row` is a logits_row of that batch.
  // Valid until the next call to the model; empty where the model has no logits (sim) or the device failed.
  virtual std::span<const float> logits(std::uint32_t row) const = 0;
};

}  // namespace weir::core
