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

// `saved`: as many floats as there are words; the row is put back when the draw is done. `out` is memory of the host,
// `ids` of the device; a fault's is 0 there.
void sample_rows(device& d, const draw_order* draws, std::uint32_t count, const std::uint32_t* words,
                 float* saved, float* logits, std::uint32_t vocab, decoder_result* out, std::int32_t* ids);

}  // namespace weir::kernels::cuda
