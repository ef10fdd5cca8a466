#include "kernels/cuda/draws.h"

#include <algorithm>
#include <bit>

#include "kernels/cuda/sample.h"

namespace weir::kernels::cuda {

bool draw_desk::begin(std::span<const decoder_draw> draws, float* logits, std::uint32_t vocab) {
  d_.use();
  std::size_t words = 0;
  for (const decoder_draw& w : draws) words += 2 * w.seen.size() + 2 * w.biases.size() + w.masked.size();
  const std::size_t orders = draws.size() * sizeof(draw_order);
  orders_.reserve(2 * (orders + words * 4));
  orders_host_.reserve(2 * (orders + words * 4));
  saved_.reserve(std::max<std::size_t>(1, 2 * words) * sizeof(float));
  results_.reserve(2 * draws.size() * sizeof(decoder_result));
  if (d_.failed()) return false;
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
  if (!draws.empty()) {
    WEIR_CUDA(d_, cudaMemcpyAsync(orders_.as<void>(), orders_host_.as<void>(), orders + words * 4,
                                  cudaMemcpyHostToDevice, d_.stream));
    sample_rows(d_, orders_.as<draw_order>(), static_cast<std::uint32_t>(draws.size()),
                reinterpret_cast<const std::uint32_t*>(orders_.as<std::byte>() + orders), saved_.as<float>(), logits,
                vocab, results_.as<decoder_result>(), ids_.as<std::int32_t>());
  }
  if (!d_.failed()) WEIR_CUDA(d_, cudaEventRecord(drawn_, d_.stream));
  return !d_.failed();
}

bool draw_desk::collect(std::span<decoder_result> out) {
  d_.use();
  if (d_.failed() || !WEIR_CUDA(d_, cudaEventSynchronize(drawn_))) return false;
  std::copy_n(results_.as<decoder_result>(), out.size(), out.begin());
  return true;
}

}  // namespace weir::kernels::cuda
