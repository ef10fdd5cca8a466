// decoder.h — a whole decoder as one operation: what a backend may offer beside the single ones, so that it
// is free to fuse them, to choose the types of what lies between them, and to replay a step as one.
//
// The single operations stay the definition: core/model/llama.cpp composes them, and a decoder's logits agree
// with that within what its types allow.
//
// Thread safety: one thread at a time, the backend's.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "kernels/ops.h"

namespace weir::kernels {

struct decoder_layer {
  const float* attention_norm = nullptr;                 // [hidden]
  matrix qkv;                                            // [(heads + 2 * kv_heads) * head_dim, hidden]
  const float *q_norm = nullptr, *k_norm = nullptr;      // [head_dim], or none
  matrix out;                                            // [hidden, heads * head_dim]
  const float* mlp_norm = nullptr;                       // [hidden]
  matrix gate_up;                                        // [2 * inter, hidden]
  matrix down;                                           // [hidden, inter]
  const float *qkv_bias = nullptr, *out_bias = nullptr;  // as wide as their products, or none
  const float *gate_up_bias = nullptr, *down_bias = nullptr;
  std::uint32_t window = 0;  // as in attention
};

struct decoder_shape {
  std::uint32_t hidden = 0, inter = 0, heads = 0, kv_heads = 0, head_dim = 0, vocab = 0, page_tokens = 0;
  float norm_eps = 0;
  std::vector<float> frequencies;  // [head_dim / 2]
  matrix embedding;                // [vocab, hidden]
  std::vector<decoder_layer> layers;
  const float* norm = nullptr;  // [hidden]
  matrix head;                  // [vocab, hidden]
};

struct decoder_step {
  std::span<const std::int32_t> tokens;       // [rows]; -1 - i: what draw i of the last draw() gives
  std::span<const std::uint32_t> positions;   // [rows]
  std::span<const kv_slice> slices;           // of these rows, in order
  std::span<const std::int32_t> logits_from;  // [logits rows] the row that each is made from
};

// One draw from a row of logits, as core/sample/steps.h defines each step.
struct decoder_draw {
  struct seen_token {
    std::int32_t id;
    std::uint32_t in_output;
  };
  struct bias {
    std::int32_t id;
    float value;
  };
  std::uint32_t row = 0;
  float temperature = 1;  // 0: the largest logit
  std::uint32_t top_k = 0;
  float top_p = 1, min_p = 0;
  float repetition = 1, frequency = 0, presence = 0;
  double uniform = 0;  // [0, 1)
  std::span<const seen_token> seen;
  std::span<const bias> biases;
  std::span<const std::int32_t> masked;
};

enum class draw_state : std::int32_t {
  drawn,
  fault  // no finite maximum, a NaN or +inf
};

struct decoder_result {
  std::int32_t id = -1;
  draw_state state = draw_state::fault;
};

// A piece of a step (a product, attention) measured alone, with what it moves and computes as traffic.h
// counts it.
struct decoder_piece {
  const char* name = "";
  std::uint32_t rows = 0;
  double seconds = 0;
  std::uint64_t bytes = 0, flops = 0;
};

class decoder {
 public:
  virtual ~decoder() = default;

  // Of one page in all layers. The layout inside is the decoder's own.
  virtual std::uint64_t page_bytes() const noexcept = 0;
  virtual void set_pages(void* memory, std::uint32_t count) = 0;
  // Rows of prompts in a step from which on more of them are hardly quicker.
  virtual std::uint32_t prompt_rows() const noexcept = 0;

  // Does once what a step of its kind does the first time: up to so many rows of decoding, and so many rows
  // of a prompt, in sequences of at most so many pages. Steps within that take no more of the device's memory
  // later. After set_pages and before the first step; what is in the pages is lost. As forward() otherwise.
  virtual bool warm_up(std::uint32_t decode_rows, std::uint32_t prompt_rows, std::uint32_t most_pages) = 0;

  // The device works off in order what it is given: forward() and draw() only begin, collect() waits. Every
  // draw() is collected before the next; a forward() may come between the two, and draws may wait for it, or
  // for collect(), to begin with: what they refer to has been read when draw() returns.
  //
  // The pass over a step's rows; false: the device failed (backend::fault says how), or memory is short.
  virtual bool forward(const decoder_step& step) = 0;

  // Tokens from the last pass's logits. There may be none.
  virtual bool draw(std::span<const decoder_draw> draws) = 0;

  // What they were, as many: waits for those draws, and for nothing that was begun later.
  virtual bool collect(std::span<decoder_result> out) = 0;

  // A row of the last pass's logits, [vocab], to host memory.
  virtual bool read_logits(std::uint32_t row, float* to_host) = 0;
};

}  // namespace weir::kernels
