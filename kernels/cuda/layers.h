// layers.h — what a decoder computes between its matrix products: embedding, norms and the sums of the
// residual stream, rotary embedding, the write into KV pages, attention, activations.
//
// The functions that compute launch kernels on the device's stream and return at once; a failure is kept in
// device::fault. Arrays are in memory of the device unless a comment says otherwise. Rows are elements
// (element.h); only the residual stream `x` is f32.
//
// A page of one layer holds keys [kv_heads, page_tokens, head_dim], and values of the same shape, as elements
// or as numbers of one byte (page_type); with q8 the scales of a head lie behind its numbers (head_bytes).
// The [page_tokens, head_dim] of one head are stored in panels: panels of 128 bytes of each token where a
// token's row is a multiple of that, else one panel with all columns. A panel is [page_tokens, columns]; a
// token's row of it consists of units of 16 bytes, and the units of a row are permuted by an XOR with bits of
// the token's index (unit_at). Eight tokens that are read at once therefore lie in different banks of shared
// memory, and a panel can be copied to shared memory as it is. For panels of 128 bytes this is the 128-byte
// swizzle of wgmma.
//
// Thread safety: the device's (device.h).
#pragma once

#include <cstdint>
#include <span>

#include "kernels/attention_rule.h"
#include "kernels/cuda/attention/attention_room.h"
#include "kernels/cuda/device/device.h"
#include "kernels/cuda/element.h"
#include "kernels/cuda/pages/head_shape.h"
#include "kernels/decoder.h"

namespace weir::kernels::cuda {

// The units of 16 bytes of a token's row of one head.
constexpr __host__ __device__ int row_units(page_type t, int head_dim) {
  return head_dim * number_bytes(t) / 16;
}

// The units of a token's row in one panel, for rows of `units` units (row_units).
constexpr __host__ __device__ int panel_units(int units) { return units % 8 == 0 ? 8 : units; }

// The index, in units of 16 bytes, of unit `unit` of token `token` in one head of `tokens` tokens, each of
// `units` units. REQUIRES: the tokens begin at a multiple of eight within their page
constexpr __host__ __device__ int unit_at(int unit, int token, int units, int tokens) {
  const int wide = panel_units(units);
  // Rows of 4 units fill the banks by twos, rows of 2 units by fours.
  const int mask = wide == 8 ? 7 : units % 4 == 0 ? 3 : units % 2 == 0 ? 1 : 0;
  const int shift = mask == 7 ? 0 : mask == 3 ? 1 : 2;
  return (unit / wide * tokens + token) * wide + (unit % wide ^ (token >> shift & mask));
}

// Consecutive rows of one sequence that one block of prefill_attention computes: rows [row, row + rows) of
// the step, the first at `position` in its sequence. The sequence's pages begin at
// rows_view::pages[pages_at]. `rows` is 0 in an entry that only pads the batch.
struct alignas(16) prefill_block {
  std::int32_t row, rows, position, pages_at;
};

// A row that is alone in its slice, or one part of its context (list_decodes). `row` is its index in the
// step, `position` its position in the sequence, whose pages begin at rows_view::pages[pages_at]. `pages_at`
// is -1 in an entry that only pads the batch.
struct alignas(16) decode_row {
  std::int32_t row, position, pages_at;
  std::uint8_t part = 0, parts = 1;  // the part's index; how many parts; 0 of 1: the whole context
  std::uint16_t slot = 0;            // the slot of the row's part 0 in split_scratch; part i has slot + i
};

// The rows of a step, in memory of the device. Rows whose pages_at is -1 pad the batch: they write into no
// page, and what is computed for them is never read.
struct rows_view {
  const std::int32_t* tokens;       // [rows] token ids; -1 - i stands for drawn[i]
  const std::uint32_t* positions;   // [rows] position in the row's sequence
  const std::int32_t* pages_at;     // [rows] where the pages of the row's sequence begin in `pages`, or -1
  const decode_row* decode_rows;    // [decodes]; [*listed] where `listed` is not null
  const std::int32_t* listed;       // the number of entries that list_decodes made; null: it was not used
  const std::int32_t* logits_from;  // [logits] the row that each row of logits is made from
  const prefill_block* blocks;      // [block_count], those with the largest position first
  const std::int32_t* pages;        // page numbers, those of one sequence after those of another
  const std::int32_t* drawn;        // token ids drawn from the step before (draw_launcher::ids)
  std::uint32_t rows = 0, decodes = 0, logits = 0, block_count = 0;
  // Lines of a prefill block, a line being one query head of one row: 128, or 16 where every block has one
  // row.
  std::uint32_t block_lines = 0;
  // The largest number of tokens up to and including a row of `blocks`; windows are not taken into account.
  std::uint32_t context = 0;
};

// The pages of one layer.
struct layer_pages {
  unsigned char *keys, *values;  // [pages, kv_heads, page_tokens, head_dim], of head_shape::pages
};

// What turns a row of qkv into queries, keys and values: bias, norms of heads, rotary embedding.
//
// A kernel rotates number i of a head with number i + half, where half = head_dim / 2, by angle i. Where a
// part of each head stays as it is, the last `rest` angles are 0 and the model rotates number i with number i
// + half - rest. The kernels then have the numbers of queries and keys in another order: first the first of
// each pair that turns, then one half of those that stay; then the same of the others (head_order.h). Scores
// do not depend on the order. Pages keep keys in it.
struct rotary_args {
  // bias: [head_shape::width()], of queries, keys and values. q_norm, k_norm: as head_norms says. Each may be
  // null.
  const float *bias, *q_norm, *k_norm;
  const float *cos, *sin;  // [rows, head_dim / 2]
  float eps;
  std::uint32_t rest = 0;
  head_norms norms = head_norms::each;  // where there are weights
  bool centred = false;                 // the norms; never those of whole rows
  // The factors of queries that grow (attention_rule::growth): rotary_and_write() multiplies queries by them.
  float growth = 0;
  std::uint32_t growth_unit = 1;

  // Whether decode attention itself can apply it (decode_attention, `fresh`).
  bool is_simple() const {
    const bool normed = q_norm || k_norm;
    return rest % 2 == 0 && !(normed && (centred || norms != head_norms::each));
  }
};

// x[r, :] = the embedding of row r's token, times `factor`; x is [rows, table.cols]. `cleared`, of the same
// shape, becomes zeros; it may be null. This kernel begins the step's chain of dependent launches (launch.h):
// it starts when everything before it on the stream has ended. All kernels of the chain may thus read at any
// time what was written before it: the rows, and the pages of earlier steps.
void embed(device& d, const rows_view& v, const matrix& table, float* x, float factor, float* cleared);

// Rotary tables in memory of the device. frequencies, factors: [count, half]. Angles of the frequency 0 with
// the factor 1 turn nothing.
struct angle_tables {
  const float *frequencies, *factors;
  std::uint32_t count, half;
};

// The cosines and sines of positions[r] * frequencies[t, i], times factors[t, i], of all tables. Those of row
// r and table t begin at t * apart + r * half of `cos` and `sin`.
void angles(device& d, const rows_view& v, const angle_tables& t, std::size_t apart, float* cos, float* sin);

// A norm. Without a weight there is none: rows stay as they are.
struct norm_args {
  norm_weight by;
  float eps = 0;
  bool centred = false;
  // Whether it is root mean square times a weight, and no more.
  bool is_plain() const { return by.weight && !by.bias && !centred; }
};

// What a mixture of experts makes of a row: Σ weights[r, i] * made[r * chosen + i, :] in the order of i, +
// gates[r] * shared[r, :]. `shared` may be null; so may `gates`, which are then 1.
struct expert_sum {
  const float *made = nullptr, *weights = nullptr;  // [rows * chosen, width], [rows, chosen]
  const float *shared = nullptr, *gates = nullptr;  // [rows, width], [rows]
  std::uint32_t chosen = 0;
};

// What is to be added to the rows of the residual stream: factor * behind(branch + experts + biases). Each
// pointer may be null.
struct pending_sum {
  const float* biases[2] = {nullptr, nullptr};  // [width]
  float* branch = nullptr;                      // [rows, width]
  expert_sum experts;
  norm_args behind;
  float factor = 1;
  // The branch becomes zeros when it has been added. Not where rows are picked (`from`): two picks of one row
  // would race.
  bool clear = false;
  bool is_nothing() const { return !branch && !experts.made && !biases[0] && !biases[1]; }
};

// out[i, :] = n(x[r, :] + p) for i < rows, with r = from[i], or r = i where `from` is null. `order` is that
// of out's rows; paired ones have a multiple of 16 elements. x is [rows, width] f32. Where `from` is null, x
// + p is also stored to x.
void norm(device& d, dtype type, float* x, const pending_sum& p, const std::int32_t* from, const norm_args& n,
          std::uint32_t rows, std::uint32_t width, element* out, column_order order = column_order::plain);

// x[r, :] = factor * n(x[r, :]), in place; x is [rows, width] f32.
void norm_stream(device& d, float* x, const norm_args& n, std::uint32_t rows, std::uint32_t width,
                 float factor);

// to[i] = factor * from[i].
void scale(device& d, const float* from, std::uint32_t count, float factor, float* to);

// x[i] = cap * tanh(x[i] / cap).
void cap_logits(device& d, float* x, std::size_t count, float cap);

// Applies `t` to qkv [rows, h.width()], elements of `type`: queries are stored back in place, keys and values
// are rounded from f32 to the type of the pages and stored there at the row's position. With q8 pages queries
// are turned (page_turn.h), as the kernels of attention that read them expect. Rows that pad the batch are
// left out. REQUIRES: h.pages are elements of `type`, or bytes
void rotary_and_write(device& d, dtype type, const rows_view& v, const head_shape& h, const rotary_args& t,
                      element* qkv, layer_pages to);

// What both kinds of attention read and write in one layer.
struct attention_args {
  head_shape heads;
  dtype type;  // of the rows; heads.pages are elements of this type, or bytes
  layer_pages pages;
  const element* qkv;  // [rows, heads.width()]
  element* out;        // [rows, heads.heads * heads.head_dim]
  attention_rule rule;
  column_order out_order = column_order::plain;
  const float* sinks = nullptr;  // [heads.heads], as attention::sinks; may be null
};

// Scratch of decode_attention for contexts that several blocks share. The caller zeroes it once, when it is
// allocated; each kernel resets the counters that it has used to zero.
struct split_scratch {
  float* parts = nullptr;  // sums, maxima and totals of each part
  // Counters: how many parts of a row and key head are done. Where rows are listed, arrived[0] counts the
  // items that blocks have taken, and the others come behind it.
  unsigned* arrived = nullptr;
};

// Makes the list of work for attention_bulk.cu from `rows` (on the host) and writes it to `out`
// [most_listed]: longest contexts first, and contexts that are much longer than the others divided into
// parts, one entry each. Returns the number of entries.
// REQUIRES: lists_pay() of these rows; none of them pads the batch
std::uint32_t list_decodes(const cuda_facts& d, const head_shape& h, std::span<const decode_row> rows,
                           decode_row* out);

// Whether decode_attention() may be called with `fresh`. A lane must have both numbers that a rotation turns;
// with pages of bytes and heads of 16 no lane does.
bool takes_fresh(const head_shape& h);

// Attention of the rows in v.decode_rows. With `fresh` the rows of qkv are as the product left them: the
// kernel itself applies `t` to queries, keys and values, and stores each row's key and value in its page.
// Otherwise rotary_and_write() has done so before. REQUIRES: takes_fresh() and t.is_simple() where `fresh`
void decode_attention(device& d, const rows_view& v, const attention_args& a, const rotary_args& t,
                      bool fresh, const split_scratch& scratch);

// Attention of the rows in v.blocks, whose keys and values are in their pages (rotary_and_write). On a
// deterministic device the bits of a line depend neither on the block that it is in nor on v.block_lines.
void prefill_attention(device& d, const rows_view& v, const attention_args& a);

// Whether wgmma_attention can do what prefill_attention is asked for.
bool can_use_wgmma(const device& d, const rows_view& v, const head_shape& h);

// prefill_attention by warpgroup products (attention_wgmma.cu). REQUIRES: can_use_wgmma()
void wgmma_attention(device& d, const rows_view& v, const attention_args& a);

// The most rows of one prefill_block.
std::uint32_t prefill_tokens(const head_shape& h, std::uint32_t block_lines);

// out[r, c] = x[r, w.inputs[c]] for r < rows: what the columns of `w` multiply. x is [rows, w.width()], out
// is [rows, w.cols], in the order `order`. REQUIRES: w has inputs of its own, and w.cols is a multiple of 8,
// of 16 where out is paired
void order_inputs(device& d, const matrix& w, const element* x, std::uint32_t rows, element* out,
                  column_order order);

// out[r, i] = f(x[r, i] + bias[i]) * (x[r, width + i] + bias[width + i]), or without a gate f(x[r, i] +
// bias[i]), or as activation::clamped says: x is [rows, f.width()], out is [rows, width] with width =
// f.inter, and `bias` [f.width()] may be null.
void activate_rows(device& d, dtype type, const element* x, const float* bias, std::uint32_t rows,
                   const feed_forward& f, element* out);

// attended[r, i] *= sigmoid(g[r, i] + bias[i]): the gates g lie behind the values in qkv [rows, h.width()].
// `bias`, of the gates, may be null. `order` is that of `attended` [rows, h.gates].
void gate_rows(device& d, dtype type, const head_shape& h, const element* qkv, const float* bias,
               std::uint32_t rows, element* attended, column_order order);

}  // namespace weir::kernels::cuda
