// sample.h — draws on the device, as core/sample/steps.h defines them: a block a draw.
#pragma once

#include "kernels/cuda/device.h"
#include "kernels/decoder.h"

namespace weir::kernels::cuda {

constexpr std::uint32_t no_draw = 0xffffffff;

// What a block is told of its draw: a cache line; lists lie in one array of words.
struct alignas(64) draw_order {
  std::uint32_t row, top_k;  // row: no_draw where there is none
  float temperature, top_p, min_p, repetition, frequency, presence;
  double uniform;
  std::uint32_t seen_at, seen, bias_at, biases, masked_at,
      masked;  // in words; what a draw changes in its row
};
static_assert(sizeof(draw_order) == 64);

// `draws` and `out` are memory of the host: a draw's order is read before its result is written, in one
// piece. `saved`: as many floats as there are words; a row is put back when its draw is done. `ids` is the
// device's; a fault's is 0 there.
void sample_rows(device& d, const draw_order* draws, std::uint32_t count, const std::uint32_t* words,
                 float* saved, float* logits, std::uint32_t vocab, decoder_result* out, std::int32_t* ids);

}  // namespace weir::kernels::cuda
