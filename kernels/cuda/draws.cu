#include "kernels/cuda/draws.h"

#include <algorithm>
#include <bit>

#include "kernels/cuda/sample.h"

namespace weir::kernels::cuda {

namespace {

// What a draw changes in its row: at most five words for each token that there is.
std::size_t words_of(const decoder_draw& w) { return 2 * w.seen.size() + 2 * w.biases.size() + w.masked.size(); }

constexpr std::size_t usual_words = 1u << 20;

}  // namespace

bool draw_desk::reserve(std::uint32_t draws, std::uint32_t vocab) {
  const std::size_t ids = draws * sizeof(std::int32_t), results = draws * sizeof(decoder_result);
  most_draws_ = std::max(most_draws_, draws);
  results_.reserve(results);
  const bool moved = ids_.reserve(ids, true);
  has_room_ = reserve_words(std::max(usual_words, 5 * std::size_t{vocab})) && results_.holds(results) && ids_.holds(ids);
  return moved;
}

bool draw_desk::reserve_words(std::size_t words) {
  most_words_ = std::max(most_words_, words);
  const std::size_t orders = most_draws_ * sizeof(draw_order) + most_words_ * 4, saved = most_words_ * sizeof(float);
  orders_.reserve(orders);
  orders_host_.reserve(orders);
  saved_.reserve(saved);
  return orders_.holds(orders) && orders_host_.holds(orders) && saved_.holds(saved);
}

// Together where there is room for what they change, which is so but for huge lists: else some after the others.
bool draw_desk::begin(std::span<const decoder_draw> draws, float* logits, std::uint32_t vocab) {
  d_.use();
  for (std::size_t first = 0; first < draws.size() && !d_.failed();) {
    std::size_t next = first, words = 0;
    for (; next < draws.size() && words + words_of(draws[next]) <= most_words_; ++next) words += words_of(draws[next]);
    if (next == first) {  // more than once some token of the vocabulary
      if (!reserve_words(words_of(draws[first]))) return false;
      continue;
    }
    if (first > 0) d_.sync();  // their orders lie where those of the others lay
    bring(draws.subspan(first, next - first), words, first, logits, vocab);
    first = next;
  }
  if (!d_.failed()) WEIR_CUDA(d_, cudaEventRecord(drawn_, d_.stream));
  return !d_.failed();
}

void draw_desk::bring(std::span<const decoder_draw> draws, std::size_t words, std::size_t first, float* logits,
                      std::uint32_t vocab) {
  const std::size_t orders = draws.size() * sizeof(draw_order);
  auto* order = orders_host_.as<draw_order>();
  auto* word = reinterpret_cast<std::uint32_t*>(orders_host_.as<std::byte>() + orders);
  std::uint32_t at = 0;
  for (const decoder_draw& w : draws) {
    draw_order o{w.row,       w.top_k,    w.temperature,
                 w.top_p,     w.min_p,    w.repetition,
                 w.frequency, w.presence, w.uniform,
                 0,           0,          0,
                 0,           0,          0};
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
    *order++ = o;
  }
  WEIR_CUDA(d_, cudaMemcpyAsync(orders_.as<void>(), orders_host_.as<void>(), orders + words * 4, cudaMemcpyHostToDevice,
                                d_.stream));
  sample_rows(d_, orders_.as<draw_order>(), static_cast<std::uint32_t>(draws.size()),
              reinterpret_cast<const std::uint32_t*>(orders_.as<std::byte>() + orders), saved_.as<float>(), logits,
              vocab, results_.as<decoder_result>() + first, ids_.as<std::int32_t>() + first);
}

bool draw_desk::collect(std::span<decoder_result> out) {
  d_.use();
  if (d_.failed() || !WEIR_CUDA(d_, cudaEventSynchronize(drawn_))) return false;
  std::copy_n(results_.as<decoder_result>(), out.size(), out.begin());
  return true;
}

}  // namespace weir::kernels::cuda
