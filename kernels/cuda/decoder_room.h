// decoder_room.h — which models a decoder on a CUDA device supports, and the size of every buffer that it has
// there. The decoder allocates these sizes; a plan adds them up without a device. There is no other place
// that computes them.
//
// Of a shape's matrices only types and sizes are read, so that they need not be in memory.
//
// Thread safety: pure functions, any thread. Plain C++.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

#include "kernels/cuda/attention/attention_room.h"
#include "kernels/cuda/experts/division.h"
#include "kernels/decoder.h"

namespace weir::kernels::cuda {

// The type of the elements that a product with `w` multiplies: its own, or bf16 where it is quantised.
constexpr dtype multiplied_type(const matrix& w) { return is_plain(w.type) ? w.type : dtype::bf16; }

// The type of a decoder's rows: what most weights of the layers multiply. f32 where a matrix other than the
// embedding is in f32: there is no decoder for such a model.
dtype rows_type(const decoder_shape& s);

// Calls f(first, rest) for the weights of each product of the model, but for those of experts.
template <class F>
void for_products(const decoder_shape& s, const F& f) {
  for (const decoder_layer& l : s.layers) {
    f(l.qkv, std::span(l.qkv_rest));
    f(l.out, std::span<const matrix>());
    if (l.gate_up.rows == 0) continue;  // a mixture without a shared expert
    f(l.gate_up, std::span(l.gate_up_rest));
    f(l.down, std::span<const matrix>());
  }
  f(s.head, std::span<const matrix>());
}

// What pages store: what the shape asks for, by default elements, as the rows. nullopt: the kernels have no
// such pages for this model.
std::optional<page_type> pages_of(const decoder_shape& s);
head_shape heads_of(const decoder_shape& s);

// Why a decoder does not support the model, in a few words; empty: it does. As far as the description tells,
// and altogether. This is the one place that decides it.
std::string_view why_not(const model_shape& m);
std::string_view why_not(const decoder_shape& s);
inline bool takes_all(const decoder_shape& s) { return why_not(s).empty(); }

// The attention of every layer, but for its rule and its rotation. REQUIRES: why_not(m) is empty
inline const attention_mixer& mixer_of(const model_shape& m) { return m.layers.front().mixer; }

// What the products of gate_up and down of a layer compute: its feed-forward, or in a mixture the shared
// expert, whose `inter` is 0 where there is none.
feed_forward dense_part(const feed_forward& f);

// The widest feed-forward of the layers: its rows of gate and up, and numbers of a row between its products.
struct widest_mlp {
  std::uint32_t width = 0, inter = 0;
};
widest_mlp widest_mlp_of(const model_shape& m);

// How a decoder writes what a description says.
//
// Where all branches have the same factor and no norm behind them, the residual stream is kept divided by
// that factor: norms do not see it, if their eps is divided by its square. So such a factor costs nothing.
struct stream_units {
  float unit = 1;  // the stream is the model's divided by this
  float eps = 0;   // of norms of the stream
};
stream_units units_of(const model_shape& m);
// Whether what attention and feed-forward make is added to a branch of its own, which is added to the stream
// when it is whole. Otherwise the last product of each adds to the stream.
bool has_branch(const model_shape& m, const layer_shape& l);
// The angles of every rotary table, and last those that turn nothing, where there are layers without
// rotation.
std::uint32_t angle_tables_of(const model_shape& m);
// The index of the angles of a layer's attention.
std::uint32_t angle_table(const model_shape& m, const attention_mixer& a);
// Of half a head, how many numbers a layer does not turn while it turns others (rotary_args::rest).
std::uint32_t rest_of(const model_shape& m, const attention_mixer& a);

// The bytes of one page of all layers.
std::uint64_t page_bytes_of(const decoder_shape& s);

// Rows of products are padded to whole units on a deterministic device (products.h).
constexpr std::uint32_t row_unit = 64;
constexpr std::uint32_t whole_units(std::uint32_t rows) {
  return (rows + row_unit - 1) / row_unit * row_unit;
}

// The batch classes: a step of decoding is padded to the next of these numbers of rows, so that a few graphs
// serve every number.
constexpr std::uint32_t batch_classes[] = {1,  2,  4,  6,   8,   12,  16,  20,  24,  28,  32,  40,  48, 56,
                                           64, 80, 96, 112, 128, 160, 192, 224, 256, 320, 384, 448, 512};
constexpr std::uint32_t largest_class = 512;
// The class of `rows` rows; the largest where there is none.
std::uint32_t class_of_rows(std::uint32_t rows);

// The prompt rows of a step (decoder::prompt_rows). How the number was chosen is in docs/measurements/gpu.md,
// «Slices of a prompt».
constexpr std::uint32_t decoder_prompt_rows = 2048;

// The workspaces of products (weight_products.h).
struct product_room {
  std::uint64_t rounded = 0;  // bytes for weights in bf16
  // Columns of the widest matrix for which rows are put in another order or type; 0: there is none.
  std::uint32_t ordered_width = 0;
};
product_room product_room_of(const decoder_shape& s);
// A larger matrix goes through the workspace in pieces. Pieces begin at a multiple of `rounded_rows` rows, so
// that their outputs begin at a multiple of 256 bytes, which cuBLASLt assumes.
constexpr std::uint64_t most_rounded = 256u << 20;
constexpr std::uint32_t rounded_rows = 128;

// Words of 4 bytes that the lists of `draws` draws take (draws.h).
std::uint64_t draw_words(std::uint32_t draws, std::uint32_t vocab);

// Floats that a rare draw (draws/rare.h) computes in: three rows, each from a multiple of 16 bytes on.
constexpr std::size_t rare_room(std::uint32_t vocab) { return 3 * ((std::size_t{vocab} + 3) / 4 * 4); }
// As many rare draws have memory from the start. Where it is there, more are computed at once.
constexpr std::uint32_t least_rare_rows = 8, most_rare_rows = 128;

// The bytes of the decoder's buffers in memory of the device. Those of `rows_here` are known once the decoder
// warms up.
struct decoder_room {
  // frequencies: and factors (angle_tables). branch: has_branch(). norm: weights and biases of the last norm,
  // where logits have a factor. lists, made, shared: expert_room.
  std::uint64_t frequencies, norm, x, branch, normed, qkv, attended, gate_up, inner, cos, sin, logits,
      scratch, parts, arrived, rounded, ordered, lists, made, shared, draw_lists, saved_logits, drawn_ids,
      rare_rows, rows_here = 0;

  std::uint64_t bytes() const {
    return frequencies + norm + x + branch + normed + qkv + attended + gate_up + inner + cos + sin + logits +
           scratch + parts + arrived + rounded + ordered + lists + made + shared + draw_lists + saved_logits +
           drawn_ids + rare_rows + rows_here;
  }
};
// For steps of `rows` rows, `logits` of them with logits.
decoder_room decoder_room_of(const cuda_facts& d, const decoder_shape& s, std::uint32_t rows,
                             std::uint32_t logits);

// The rows and logits that there is memory for from the start.
constexpr std::uint32_t least_rows = 1024, least_logits = 64;

// What a decoder has room for once it is warm: rows and logits of padded steps, and words of step_rows.
struct warm_extent {
  std::uint32_t rows, logits;
  std::uint64_t words;
};
warm_extent warm_extent_of(const cuda_facts& d, const head_shape& h, std::uint32_t decode_rows,
                           std::uint32_t prompt_rows, std::uint32_t most_pages);

// The graphs that decoder::warm_up records.
std::uint32_t warm_graphs(const cuda_facts& d, const head_shape& h, std::uint32_t decode_rows);

// The entry backend::decoder_needs_of. REQUIRES: takes_all(s)
decoder_needs needs_of(const cuda_facts& d, const decoder_shape& s, std::uint32_t decode_rows,
                       std::uint32_t most_pages);

}  // namespace weir::kernels::cuda
