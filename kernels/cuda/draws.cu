#include "kernels/cuda/draws.h"

#include <algorithm>
#include <atomic>
#include <bit>

#include "kernels/cuda/spin.h"
#include "kernels/cuda/step_rows.h"

namespace weir::kernels::cuda {

bool draw_desk::reserve(std::uint32_t draws) {
  const std::size_t n = std::max(draws, step_rows::largest_class);
  return orders_.reserve(n * sizeof(draw_order)) | orders_host_.reserve(n * sizeof(draw_order)) |
         results_.reserve(n * sizeof(decoder_result), true) | ids_.reserve(n * sizeof(std::int32_t), true);
}

// Of what the draws change in their rows.
bool draw_desk::reserve_words(std::span<const decoder_draw> draws) {
  std::size_t words = 0;
  for (const decoder_draw& w : draws) words += 2 * w.seen.size() + 2 * w.biases.size() + w.masked.size();
  plain_ = words == 0;
  word_count_ = static_cast<std::uint32_t>(words);
  if (plain_) return true;
  words_.reserve(2 * words * 4);
  words_host_.reserve(2 * words * 4);
  saved_.reserve(2 * words * sizeof(float));
  return !d_.failed();
}

bool draw_desk::begin(std::span<const decoder_draw> draws) {
  count_ = static_cast<std::uint32_t>(draws.size());
  waiting_ = true;
  if (!reserve_words(draws) || d_.failed()) return false;
  auto* order = orders_host_.as<draw_order>();
  auto* result = results_.as<decoder_result>();
  auto* word = words_host_.as<std::uint32_t>();
  std::uint32_t at = 0;
  for (const decoder_draw& w : draws) {
    draw_order& o = *order++;
    o.row = w.row;
    o.top_k = w.top_k;
    o.temperature = w.temperature;
    o.top_p = w.top_p;
    o.min_p = w.min_p;
    o.repetition = w.repetition;
    o.frequency = w.frequency;
    o.presence = w.presence;
    o.uniform = w.uniform;
    o.seen_at = at;
    o.seen = static_cast<std::uint32_t>(w.seen.size());
    for (const auto& e : w.seen) {
      word[at++] = static_cast<std::uint32_t>(e.id);
      word[at++] = e.in_output;
    }
    o.bias_at = at;
    o.biases = static_cast<std::uint32_t>(w.biases.size());
    for (const auto& e : w.biases) {
      word[at++] = static_cast<std::uint32_t>(e.id);
      word[at++] = std::bit_cast<std::uint32_t>(e.value);
    }
    o.masked_at = at;
    o.masked = static_cast<std::uint32_t>(w.masked.size());
    for (const std::int32_t id : w.masked) word[at++] = static_cast<std::uint32_t>(id);
    (result++)->state = draw_state::pending;
  }
  return true;
}

void draw_desk::start(float* logits, std::uint32_t vocab) {
  if (!waiting_ || d_.failed()) return;
  waiting_ = false;
  alone_ = true;
  if (count_ > 0) {
    WEIR_CUDA(d_, cudaMemcpyAsync(orders_.as<void>(), orders_host_.as<void>(), count_ * sizeof(draw_order),
                                  cudaMemcpyHostToDevice, d_.stream));
    if (!plain_)
      WEIR_CUDA(d_, cudaMemcpyAsync(words_.as<void>(), words_host_.as<void>(), std::size_t{word_count_} * 4,
                                    cudaMemcpyHostToDevice, d_.stream));
    sample_rows(d_, orders(), count_, nullptr, words_.as<std::uint32_t>(), saved_.as<float>(), logits, vocab,
                results_.as<decoder_result>(), ids_.as<std::int32_t>());
  }
  if (!d_.failed()) WEIR_CUDA(d_, cudaEventRecord(drawn_, d_.stream));
}

std::uint32_t draw_desk::go_along() {
  if (!waiting_) return 0;
  waiting_ = alone_ = false;
  return count_;
}

void draw_desk::record(std::uint32_t rows, const std::uint32_t* there, float* logits, std::uint32_t vocab) {
  sample_rows(d_, orders(), rows, there, nullptr, nullptr, logits, vocab, results_.as<decoder_result>(),
              ids_.as<std::int32_t>());
}

bool draw_desk::collect(std::span<decoder_result> out, float* logits, std::uint32_t vocab) {
  start(logits, vocab);
  if (d_.failed()) return false;
  auto* results = results_.as<decoder_result>();
  if (alone_) {
    if (!WEIR_CUDA(d_, cudaEventSynchronize(drawn_))) return false;
  } else {
    for (std::size_t i = 0; i < out.size(); ++i) {
      const std::atomic_ref state(results[i].state);
      if (!spin_until(d_, [&] { return state.load(std::memory_order_acquire) != draw_state::pending; })) return false;
    }
  }
  std::copy_n(results, out.size(), out.begin());
  return true;
}

}  // namespace weir::kernels::cuda
