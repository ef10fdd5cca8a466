// decoder_model.h — the model interface for every decoder-only family, on any backend.
//
// The forward pass is: embedding, then attention and feed-forward for each layer, then logits. What each of
// these is, a description says (kernels/model_shape.h). Their operations are in decoder_layers.cpp, those of
// feed-forwards and experts in decoder_mixture.cpp; pages are in decoder_pages.cpp, and sleep is in
// decoder_sleep.cpp.
//
// A backend may offer the whole decoder as one operation (kernels/decoder.h). The model then uses it to
// compute and to draw, and runs ahead. The forward pass of single operations defines the results that the
// decoder has to agree with.
//
// Thread safety: see core/model/model.h.
//
// Invariants:
//   1. A step makes one product with each weight, whatever the batch holds.
//   2. A row's logits depend on its own sequence alone: bit for bit on the reference and cpu backends, and on
//      cuda if it is deterministic.
//   3. forward() allocates only for more rows than any forward before.
//   4. A model that sleeps, or whose weights were not sound after a sleep, computes nothing: what would use
//   its
//      memory is an error of internal.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "core/model/config.h"
#include "core/model/decoder_needs.h"
#include "core/model/device_draws.h"
#include "core/model/kv_choice.h"
#include "core/model/model.h"
#include "core/model/pool_memory.h"
#include "core/model/sleeping_weights.h"
#include "core/model/weights.h"
#include "core/sample/logprobs.h"
#include "kernels/buffer.h"
#include "kernels/decoder.h"
#include "kernels/host_buffer.h"

namespace weir::core {

class decoder_model final : public model {
 public:
  // REQUIRES: page_bytes() of the same is no error
  decoder_model(model_config config, std::vector<token_id> stop_ids, model_weights weights,
                std::shared_ptr<const kernels::backend> backend, kv_choice kv);

  const model_info& info() const noexcept override { return info_; }
  std::uint64_t activation_bytes() const noexcept override;

  // The weights that steps read, in the order of reading, in memory of the backend; those of all experts. For
  // benchmarks: the time to read them is a lower bound of the time of a step that reads all.
  std::span<const std::byte> weights_of_a_step() const noexcept;
  // The bytes of them that a step of `rows` rows reads, if each row chooses its experts at random: E(1 - (1 -
  // k/E)^rows) of E experts are then chosen by some row.
  std::uint64_t bytes_of_a_step(std::uint32_t rows) const noexcept;
  const model_config& config() const noexcept { return config_; }
  // The type of the last linear of the first layer, or in a model with experts, of its experts: in most
  // files, that of most weights.
  kernels::dtype linear_type() const noexcept;
  result<void> allocate_pages(std::uint32_t count) override;
  result<void> reserve_pages(std::uint32_t most) override;
  result<void> allocate_host_pages(std::uint32_t count) override;
  result<void> warm_up(std::uint32_t max_batch, std::uint32_t prompt_rows) override;
  result<void> save_page(page_id page, std::uint32_t slot) override;
  result<void> restore_page(page_id page, std::uint32_t slot) override;
  result<void> move_pages(std::span<const page_copy> moves) override;
  result<void> forward(const batch& b) override;
  result<void> sample(std::span<const draw> draws, std::span<drawn> out) override;
  result<void> begin_draws(std::span<const draw> draws) override;
  bool computing() const override;
  result<void> collect(std::span<drawn> out) override;
  void set_company(bool others) override;
  std::optional<duration> device_time() const override;
  // On the host 0, and the weights stay where they are. Elsewhere the bytes are those of the first sleep; the
  // memory stays until the model is destroyed, for later sleeps.
  std::optional<std::uint64_t> sleep_bytes() const noexcept override;
  // A call for the state that the model is in changes nothing and is no error.
  result<void> sleep(const std::atomic<bool>* others_busy = nullptr) override;
  result<void> wake(const std::atomic<bool>* others_busy = nullptr) override;
  std::int32_t pages() const noexcept override { return static_cast<std::int32_t>(pool_.pages()); }
  std::int32_t most_pages() const noexcept override { return static_cast<std::int32_t>(pool_.most()); }
  std::int32_t page_step() const noexcept override;
  result<void> set_pages(std::int32_t pages) override;
  const kernels::draw_logprobs& logprobs_of(std::uint32_t i) const override;
  std::span<const float> logits(std::uint32_t row) const override;

 private:
  using page_part = pool_memory::part;
  static std::vector<page_part> parts_of(const kernels::model_shape& shape, kernels::kv_type kv,
                                         const kernels::decoder* whole);
  result<void> device_state() const;
  result<void> refusal(errc code) const;
  result<void> no_room(std::uint32_t rows, errc code) const;
  bool can_sleep() const noexcept;
  void give_back(const kernels::buffer& b) const;
  bool take_again(const kernels::buffer& b) const;
  result<void> no_room_to_wake(std::uint64_t bytes) const;
  result<void> check_awake() const;
  result<void> cannot_change(std::uint32_t pages) const;
  void copy_pages(std::span<const page_copy> copies);
  struct pieces {
    std::byte* first;
    std::uint64_t stride;
  };
  pieces in_pool(const page_part& part, page_id page) const noexcept;
  pieces in_host(const page_part& part, std::uint32_t slot) const noexcept;
  void copy(const page_part& part, const pieces& to, const pieces& from);
  void place(const batch& b);
  void embed(const batch& b);
  void attend(std::uint32_t layer, std::uint32_t rows);
  void turn(float* q, const kernels::attention_mixer& mixer, std::uint32_t rows);
  void feed_forward(std::uint32_t layer, std::uint32_t rows);
  void run_mlp(const layer_weights& w, const kernels::feed_forward& mlp, std::uint32_t inter,
               const kernels::buffer& x, float* out, std::uint32_t rows);
  void mix_experts(std::uint32_t layer, const kernels::buffer& x, std::uint32_t rows);
  void compute_logits(std::uint32_t rows);
  void normalise(const kernels::buffer& x, const kernels::norm_weight& by, const kernels::buffer& out,
                 std::uint32_t rows, float eps);
  void norm_heads(float* x, const float* weight, std::uint32_t layer, std::uint32_t heads,
                  std::uint32_t rows);
  void add_branch(std::uint32_t layer, const kernels::norm_weight& behind, std::uint32_t rows);
  void multiply(const linear_weight& by, const kernels::buffer& x, float* out, std::uint32_t rows);
  bool make_room(std::size_t rows, std::size_t logits_rows);
  kernels::kv_pages pages_of(std::uint32_t layer) const noexcept;

  const model_config config_;
  const model_weights weights_;
  const std::shared_ptr<const kernels::backend> backend_;
  const float embed_factor_;
  const kernels::kv_type kv_;  // of the pages that single operations write and read
  sample_scratch scratch_;
  model_info info_;

  const std::unique_ptr<kernels::decoder> whole_;  // null: the forward pass uses single operations

  // By group: [layers, keys then values, pages, kv_heads, a head's part of a page].
  pool_memory pool_;
  std::uint32_t reserved_pages_ = 0;  // of the next pool; 0: as many as it has
  kernels::host_buffer host_pages_;   // [slots], then by group [layers, keys then values, the same part]

  // Spoiled: after a sleep the weights were not what they had been.
  enum class rest : std::uint8_t { awake, asleep, spoiled };
  rest rest_ = rest::awake;
  sleeping_weights sleeping_;

  // The rows of the current step.
  std::vector<std::uint32_t> positions_;   // [rows]
  std::vector<kernels::kv_slice> slices_;  // [slices]
  std::vector<std::int32_t> logits_from_;  // [logits_rows] the row of the batch that each is computed from

  // Activations of the current step, f32.
  kernels::buffer x_;                     // [rows, hidden] the residual stream
  kernels::buffer normed_;                // [rows, hidden]
  kernels::buffer angles_;                // by table: cosines, then sines, [rows, pairs that turn] each
  kernels::buffer qkv_;                   // [rows, mixer.width()] of the widest layer
  kernels::buffer attended_;              // [rows, mixer.q_width()]
  kernels::buffer gate_up_;               // [rows, mlp.slots(), mlp.width()], or those of the shared expert
  kernels::buffer inner_;                 // [rows, mlp.slots(), inter], likewise
  kernels::buffer experts_;               // [rows, chosen] numbers, then weights; [rows] the shared expert's
  kernels::buffer made_;                  // [rows, chosen, hidden] what experts make, then [rows, hidden] the
                                          // shared one's
  kernels::buffer branch_;                // [rows, hidden] what a block adds to the residual stream
  kernels::buffer logits_;                // [logits_rows, vocab_size]
  mutable std::vector<float> read_back_;  // logits on the host, if the backend's memory is elsewhere
  std::uint32_t logits_rows_ = 0;

  device_draws draws_;  // of the whole decoder
  // By draw, of the latest draws that the host made; filled in for draws that asked for logprobs.
  std::vector<kernels::draw_logprobs> logprobs_;
};

}  // namespace weir::core
