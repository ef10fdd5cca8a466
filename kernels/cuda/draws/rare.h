// rare.h — the kernel that draws with the steps which few requests ask for, as core/sample/cuts.h defines
// them: top_n_sigma, dynamic temperature, smoothing, top_a, typical_p, tfs, mirostat and XTC.
#pragma once

#include "kernels/cuda/decoder_room.h"
#include "kernels/cuda/draws/sample.h"

namespace weir::kernels::cuda {

// What a block needs to know of its draw.
struct rare_order : draw_order {
  rare_numbers rare;
  std::uint32_t place;  // of the draw among the results
};
static_assert(sizeof(rare_order) == 128);

// Launches `count` draws as one kernel, which starts when everything before it on the stream has ended.
//   draws      [count], pinned memory; each order is read before the result of its draw is written
//   room       [count, rare_room(vocab)] on the device, overwritten
//   surprises  pinned memory, by rare_order::place; written where a draw has mirostat, before its result
// All others are as in sample_rows(), out, logprobs and ids by rare_order::place. The logits are left as they
// are.
void sample_rare_rows(device& d, const rare_order* draws, std::uint32_t count, const std::uint32_t* words,
                      float* saved, const float* logits, std::uint32_t vocab, float* room, draw_result* out,
                      float* surprises, draw_logprobs* logprobs, std::int32_t* ids);

}  // namespace weir::kernels::cuda
