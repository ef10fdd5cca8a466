// decoder.h — a whole decoder as one operation. A backend may offer it beside the single operations of ops.h;
// it is then free to fuse operations, to choose the types of intermediate results, and to replay a whole
// step.
//
// The single operations stay the definition: core/model/decoder_layers.cpp composes them. A decoder's logits
// agree with the logits of this composition as closely as the decoder's types allow (docs/kernels.md,
// «Numbers»).
//
// Thread safety: one thread at a time, the one that uses the backend.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "kernels/logprobs.h"
#include "kernels/ops.h"

namespace weir::kernels {

// A norm's weight, and its bias or null. Both null: there is no such norm.
struct norm_weight {
  const float* weight = nullptr;
  const float* bias = nullptr;
};

// The weights of a mixture of experts (model_shape.h). Biases may be null.
struct expert_weights {
  const float* router = nullptr;        // [router_rows(), hidden] f32
  const float* router_bias = nullptr;   // [experts]
  const float* choice_bias = nullptr;   // [experts], where expert_router::choice_bias
  expert_matrices gate_up;              // each [mlp.width(), hidden]: gate, then up
  expert_matrices down;                 // each [hidden, mlp.inter]
  const float* gate_up_bias = nullptr;  // [experts, mlp.width()]
  const float* down_bias = nullptr;     // [experts, hidden]
};

// The weights of one layer, in memory of the backend; not owned. In a mixture gate_up and down are those of
// the shared expert; without one they are empty. The rows of `qkv` make what attention_mixer
// says; those of `gate_up` make gate, then up, or up alone.
struct decoder_layer {
  norm_weight attention_norm;                        // [hidden] in front of attention
  matrix qkv;                                        // [mixer.width(), hidden]
  std::vector<matrix> qkv_rest;                      // further rows of qkv, in order (core/model/weights.h)
  const float *q_norm = nullptr, *k_norm = nullptr;  // as head_norms says; null: none
  matrix out;                                        // [hidden, mixer.q_width()]
  norm_weight attention_behind;                      // [hidden] behind attention
  norm_weight mlp_norm;                              // [hidden] in front of the feed-forward
  matrix gate_up;                    // [mlp.width(), hidden] (a shared expert: shared_width())
  std::vector<matrix> gate_up_rest;  // as qkv_rest
  matrix down;                       // [hidden, mlp.inter]
  norm_weight mlp_behind;            // [hidden] behind the feed-forward
  const float *qkv_bias = nullptr, *out_bias = nullptr;  // [rows of the matrix]; may be null
  const float *gate_up_bias = nullptr, *down_bias = nullptr;
  const float* sinks = nullptr;  // [mixer.heads], where mixer.sinks
  expert_weights experts;        // of a mixture
};

// A model: its description and its weights, which stay where they are as long as the decoder exists.
struct decoder_shape {
  model_shape model;
  std::uint32_t page_tokens = 0;      // tokens of a page
  matrix embedding;                   // [vocab, hidden]
  const float* embed_norm = nullptr;  // [hidden]; null where the model has none
  std::vector<decoder_layer> layers;  // as many as the model has
  norm_weight norm;                   // [hidden], in front of the head
  matrix head;                        // [vocab, hidden]
  // The type in which pages store keys and values; nullopt: the decoder's own choice.
  std::optional<kernels::kv_type> kv;
};

// The rows of one pass. All of it has been read when forward() returns.
struct decoder_step {
  std::span<const std::int32_t> tokens;  // [rows] token ids; -1 - i: the token of draw i of the last draw()
  std::span<const std::uint32_t> positions;   // [rows] position in the row's sequence
  std::span<const kv_slice> slices;           // cover all rows, in their order
  std::span<const std::int32_t> logits_from;  // [logits rows] the row that each row of logits is made from
};

// The numeric parameters of a draw. A backend may copy this struct to its device as it is.
struct draw_numbers {
  std::uint32_t row = 0;                              // of the logits of the last pass
  std::uint32_t top_k = 0;                            // 0: no such cut
  float temperature = 1;                              // 0: the token with the largest logit
  float top_p = 1, min_p = 0;                         // 1 and 0: no such cuts
  float repetition = 1, frequency = 0, presence = 0;  // penalties for the tokens in decoder_draw::seen
  std::int32_t top_logprobs = -1;   // likeliest tokens in decoder::logprobs_of(); negative: no logprobs
  std::uint32_t allowed_words = 0;  // words of decoder_draw::allowed
  double uniform = 0;               // the random number of this draw, in [0, 1)
};

// The parameters of the steps of core/sample/cuts.h, which few draws have. The defaults are neutral. A
// backend may copy this struct to its device as it is.
struct rare_numbers {
  float top_n_sigma = 0, dynatemp_range = 0, dynatemp_exponent = 1, smoothing_factor = 0, smoothing_curve = 1;
  float top_a = 0, typical_p = 1, tfs = 1;
  float xtc_threshold = -1;  // negative: XTC is not done in this draw
  std::uint32_t mirostat_mode = 0;
  std::uint32_t temperature_last = 0;  // 1: temperature comes behind the cuts
  double mu = 0;                       // of mirostat
};

// One token to be drawn from a row of logits. The steps of a draw and their order are those of
// core/sample/steps.h.
struct decoder_draw : draw_numbers {
  struct seen_token {
    std::int32_t id;
    std::uint32_t in_output;  // how often it is in the output
  };
  struct weighted_token {
    std::int32_t id;
    float factor, minus;  // as core/sample/recent_penalties.h has them
  };
  struct bias {
    std::int32_t id;
    float value;
  };
  std::span<const seen_token> seen;  // tokens of prompt and output
  // Tokens whose penalties have a range, in place of `seen`, `repetition`, `frequency` and `presence`.
  std::span<const weighted_token> weighted;
  std::span<const bias> biases;          // added to logits
  std::span<const std::int32_t> masked;  // ids that cannot be drawn
  // The tokens that can be drawn: bit id % 32 of word id / 32, a word for each 32 tokens; empty: all can.
  std::span<const std::uint32_t> allowed;
  std::optional<rare_numbers> rare;  // REQUIRES: where it is there, temperature > 0
};

enum class draw_state : std::int32_t {
  drawn,        // a token was drawn
  fault,        // the logits hold a NaN or +inf, or no finite number
  nothing_left  // the logits hold neither, but the draw's lists leave no token
};

// What a draw gave: a token, or -1 where it gave none.
struct decoder_result {
  std::int32_t id = -1;
  draw_state state = draw_state::fault;
  float surprise = 0;  // of a draw with mirostat: -log2 of the probability with which the token was drawn
};

// One piece of a step (a product, attention), measured alone: its rows, the time it took, and the bytes and
// flops that traffic.h counts for it.
struct decoder_piece {
  const char* name = "";
  std::uint32_t rows = 0;
  double seconds = 0;
  std::uint64_t bytes = 0, flops = 0;
};

// What a decoder takes of its device beside weights and pages, once it is warm (decoder::warm_up).
struct decoder_needs {
  std::uint32_t prompt_rows = 0;  // decoder::prompt_rows()
  std::uint64_t workspaces = 0;   // bytes that steps compute in
  std::uint32_t graphs = 0;       // recorded steps
};

// A decoder on a device. The device executes in order what it is given: forward() and draw() only begin work,
// collect() waits for it. Each draw() is collected before the next draw(). A forward() may come between a
// draw() and its collect(); the draws may begin as late as that forward() or the collect().
//
// A function that returns bool returns false where the device failed (backend::fault then says how) or where
// memory is short (backend::fault is then null, and a later call may succeed).
class decoder {
 public:
  virtual ~decoder() = default;

  // The bytes of one page: its keys and values of all layers. The layout inside is the decoder's own.
  virtual std::uint64_t page_bytes() const noexcept = 0;

  // The name of the type in which pages store keys and values.
  virtual std::string_view kv_type() const noexcept = 0;

  // Sets the memory of the pages, in memory of the backend, which outlives the decoder's use of it: by layer
  // the keys of `count` pages, then their values, each `stride` bytes from the last. kv_slice::pages are
  // numbers of these pages. A page may have no memory while no step has its number, except page 0.
  // REQUIRES: stride is at least the bytes of the keys of `count` pages in one layer
  virtual void set_pages(void* memory, std::uint32_t count, std::uint64_t stride) = 0;

  // The number of prompt rows in one step from which on a larger step is hardly faster per row.
  virtual std::uint32_t prompt_rows() const noexcept = 0;

  // Does what the first step of each kind would otherwise do: allocates, searches the products' algorithms,
  // records graphs. Covers steps of up to `decode_rows` rows of decoding and up to `prompt_rows` rows of one
  // prompt, in sequences of at most `most_pages` pages; such steps allocate no memory of the device later.
  // The contents of the pages are lost. Another set_pages() drops the graphs; warm_up() is then called again.
  // REQUIRES: set_pages() was called; no step but those of warm_up() has begun
  virtual bool warm_up(std::uint32_t decode_rows, std::uint32_t prompt_rows, std::uint32_t most_pages) = 0;

  // Begins the pass over a step's rows: writes their keys and values into the pages and computes logits.
  virtual bool forward(const decoder_step& step) = 0;

  // Begins to draw tokens from the logits of the last pass. `draws` may be empty; the spans inside it have
  // been read when this returns.
  virtual bool draw(std::span<const decoder_draw> draws) = 0;

  // Whether the device still works on the last forward(). REQUIRES: no draw() came after it.
  virtual bool computing() = 0;

  // Waits for the draws of the last draw() and puts their results into `out`, in the same order. It does not
  // wait for a forward() that was begun after them.
  // REQUIRES: out.size() is the number of those draws
  virtual bool collect(std::span<decoder_result> out) = 0;

  // Whether other decoders have work on the device. From the next forward() on the device then computes the
  // steps of these decoders one after the other, in the order in which they were begun, and measures them.
  // REQUIRES: all decoders of the device are used by one thread.
  virtual void set_company([[maybe_unused]] bool others) {}
  // How long the device computed the step whose draws collect() took last, in ns; nullopt: not measured. The
  // step is a forward() with the draws of the step before, where they began with it. Waits for the end of a
  // step that had no draws.
  virtual std::optional<double> device_ns() { return std::nullopt; }

  // Logprobs of draw `i` of the last collect(), in memory of the host. Valid until the next draw().
  // REQUIRES: that draw asked for them (draw_numbers::top_logprobs) and gave a token
  virtual const draw_logprobs& logprobs_of(std::uint32_t i) const = 0;

  // Copies row `row` of the last pass's logits, [vocab], to memory of the host, and waits for that.
  virtual bool read_logits(std::uint32_t row, float* to_host) = 0;
};

}  // namespace weir::kernels
