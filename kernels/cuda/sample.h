// sample.h — draws on the device, as core/sample/steps.h defines them: a block a draw.
#pragma once

#include "kernels/cuda/device.h"
#include "kernels/decoder.h"

namespace weir::kernels::cuda {

// What a block is told of its draw; lists lie in one array of words.
struct draw_order {
  std::uint32_t row, top_k;
  float temperature, top_p, min_p, repetition, frequency, presence;
  double uniform;
  std::uint32_t seen_at, seen, bias_at, biases, masked_at,
      masked;  // in words; what a draw changes in its row
};

// `draws` and `out` are memory of the host: a draw's order is read before its result is written, in one piece. `along`:
// how many of the `count` draws there are, read by the device; null: all. `saved`: as many floats as there are words; a
// row is put back when its draw is done. `ids` is the device's; a fault's is 0 there.
void sample_rows(device& d, const draw_order* draws, std::uint32_t count, const std::uint32_t* along,
                 const std::uint32_t* words, float* saved, float* logits, std::uint32_t vocab, decoder_result* out,
                 std::int32_t* ids);

}  // namespace weir::kernels::cuda
