// sample.h — the kernel that draws tokens from logits, one block for each draw, as core/sample/steps.h
// defines the steps.
#pragma once

#include "kernels/cuda/device/device.h"
#include "kernels/decoder.h"

namespace weir::kernels::cuda {

// The row of an order that stands for no draw: its block does nothing.
constexpr std::uint32_t no_draw = 0xffffffff;

// What a block needs to know of its draw (decoder_draw). `row` may be no_draw. The lists of all draws lie in
// one array of words of 4 bytes, those of one draw behind one another from word `lists_at` on.
struct alignas(64) draw_order : draw_numbers {
  // Seen tokens: (id, times in the output), two words each; or, where `repetition` is 0, (id, bits of its
  // factor, bits of what is subtracted), three words each. Biases: (id, bits of the float), two words each.
  // Masked tokens: an id, one word each. Then, as they are, the `allowed_words` words of the tokens that can
  // be drawn. All but `lists_at` count tokens, not words.
  std::uint32_t lists_at, seen, biases, masked;

  __host__ __device__ std::uint32_t words_a_seen() const { return repetition == 0 ? 3 : 2; }
  __host__ __device__ std::uint32_t biases_at() const { return lists_at + words_a_seen() * seen; }
  __host__ __device__ std::uint32_t masked_at() const { return biases_at() + 2 * biases; }
  __host__ __device__ std::uint32_t allowed_at() const { return masked_at() + masked; }
};

// What a block writes to memory of the host: a decoder_result without the surprise.
struct alignas(8) draw_result {
  std::int32_t id = -1;
  draw_state state = draw_state::fault;
};

// Launches `count` draws as one kernel, which starts when everything before it on the stream has ended.
//   draws     [count], pinned memory; each order is read before the result of its draw is written
//   words     the draws' lists, on the device; null where no draw has any
//   saved     as many floats as there are words, on the device: keeps the logits that a draw changes in its
//             row until it puts them back; may be null where `words` is null
//   logits    [rows, vocab], on the device
//   out       [count], pinned memory; a result is written by one store of 8 bytes
//   logprobs  [count], pinned memory; those of draws that ask and give a token, written before their results
//   ids       [count], on the device: the drawn tokens; 0 where the draw gives none
void sample_rows(device& d, const draw_order* draws, std::uint32_t count, const std::uint32_t* words,
                 float* saved, float* logits, std::uint32_t vocab, draw_result* out, draw_logprobs* logprobs,
                 std::int32_t* ids);

}  // namespace weir::kernels::cuda
