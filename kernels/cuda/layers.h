// layers.h — what a decoder does between its products: embedding, norms, rotary with the write into pages,
// attention, SwiGLU. Rows are elements (element.h) but for the residual stream, which is f32.
//
// A page of one layer holds keys [kv_heads, page_tokens, head_dim], and values alike. A head of it lies in
// panels of 64 elements a token where its size is a multiple of 64, else in one panel, and a token's row of a
// panel in units of 16 bytes whose places are exchanged by the token's index (unit_at): so eight tokens read
// at once meet no bank of shared memory twice, and a panel is copied there as it is. Panels of 64 are what
// wgmma calls the 128-byte swizzle.
#pragma once

#include <cstdint>
#include <span>

#include "kernels/cuda/device.h"
#include "kernels/cuda/element.h"

namespace weir::kernels::cuda {

constexpr int page_tokens = 64;

// Units of a token's row in one panel, of `units` in all.
constexpr __host__ __device__ int panel_units(int units) { return units % 8 == 0 ? 8 : units; }

// Where unit `unit` of token `token` lies among `tokens` tokens of a head, which begin at a multiple of
// eight.
constexpr __host__ __device__ int unit_at(int unit, int token, int units, int tokens) {
  const int wide = panel_units(units);
  const int mask = wide == 8 ? 7 : units % 4 == 0 ? 3 : units % 2 == 0 ? 1 : 0;
  return (unit / wide * tokens + token) * wide + (unit % wide ^ (token & mask));
}

// Consecutive rows of one sequence, for one block of prefill_attention. No rows: it fills up a batch class.
struct alignas(16) prefill_block {
  std::int32_t row, rows, position, pages_at;
};

// A row that is alone in its slice, or one part of it (list_decodes). No pages (-1): as below.
struct alignas(16) decode_row {
  std::int32_t row, position, pages_at;
  std::uint8_t part = 0, parts = 1;
  std::uint16_t slot = 0;  // where what its parts leave begins
};

// A step's rows on the device. A row without pages (-1) fills up a batch class: nothing of it is kept.
struct rows_view {
  const std::int32_t* tokens;       // [rows] a negative one, -1 - i, is drawn[i]
  const std::uint32_t* positions;   // [rows]
  const std::int32_t* pages_at;     // [rows] where the pages of its sequence begin in `pages`
  const decode_row* decode_rows;    // [decodes], or [*listed]
  const std::int32_t* listed;       // null: they are not listed
  const std::int32_t* logits_from;  // [logits]
  const prefill_block* blocks;      // [block_count]
  const std::int32_t* pages;
  const std::int32_t* drawn;        // tokens of the step before
  std::uint32_t rows = 0, decodes = 0, logits = 0, block_count = 0;
  std::uint32_t block_lines = 0;  // 128, or 16 where every block has one row
  std::uint32_t context = 0;      // most tokens that a row of a block sees
};

struct layer_pages {
  element *keys, *values;  // [pages, kv_heads, page_tokens, head_dim]
};

struct head_shape {
  std::uint32_t heads, kv_heads, head_dim;
  __host__ __device__ std::uint32_t width() const { return (heads + 2 * kv_heads) * head_dim; }
};

// What makes queries and keys of a row of qkv.
struct turning {
  const float *bias, *q_norm, *k_norm;  // each may be null
  const float *cos, *sin;               // [rows, head_dim / 2]
  float eps;
};

// Begins a step's chain (launch.h): what was there before it, rows and pages, all that comes behind may read
// at any time.
void embed(device& d, const rows_view& v, const matrix& table, float* x);
void angles(device& d, const rows_view& v, const float* frequencies, std::uint32_t half, float* cos,
            float* sin);

// x += bias where there is one; out[i] = norm of x[from[i]] (from null: of row i).
void norm(device& d, dtype type, float* x, const float* bias, const std::int32_t* from, const float* weight,
          std::uint32_t rows, std::uint32_t width, float eps, element* out);

// Turns queries in place and puts keys and values into their pages; all rows.
void turn_and_write(device& d, dtype type, const rows_view& v, const head_shape& h, const turning& t,
                    element* qkv, layer_pages to);

struct attention_args {
  head_shape heads;
  dtype type;
  layer_pages pages;
  const element* qkv;  // [rows, width]
  element* out;        // [rows, heads * head_dim]
  std::uint32_t window;
  float scale;
};

// Scratch for contexts that several blocks share; zeroed once.
struct split_scratch {
  float* parts = nullptr;
  unsigned* arrived = nullptr;
};
struct split_room {
  std::uint64_t floats;    // of parts
  std::uint32_t counters;  // of those that arrived
};
split_room split_room_of(const device& d, const head_shape& h);

// Rows may be listed for decode_attention (attention_bulk.cu): longest first, those that are much longer than
// the others in parts; rows that fill up a class are left out. Whether that pays for so many rows, the
// longest behind so many tokens and all together behind so many; how many entries there are at most; and the
// list, of as many entries as it says.
bool lists_pay(const device& d, const head_shape& h, std::uint32_t rows, std::uint64_t longest,
               std::uint64_t all);
std::uint32_t most_listed(const device& d, const head_shape& h, std::uint32_t rows);
std::uint32_t list_decodes(const device& d, const head_shape& h, std::span<const decode_row> rows,
                           decode_row* out);

bool attention_supports(const device& d, const head_shape& h);
// `fresh`: the row's own key and value are not in its page yet, its query is not turned: both are done here.
void decode_attention(device& d, const rows_view& v, const attention_args& a, const turning& t, bool fresh,
                      const split_scratch& scratch);
// On a deterministic device a line's bits do not depend on the block it is in, nor on the block's lines.
void prefill_attention(device& d, const rows_view& v, const attention_args& a);
bool can_use_wgmma(const device& d, const rows_view& v, const head_shape& h);
void wgmma_attention(device& d, const rows_view& v, const attention_args& a);  // REQUIRES: can_use_wgmma
std::uint32_t prefill_tokens(const head_shape& h,
                             std::uint32_t block_lines);  // most tokens of one prefill_block

// out[r, i] = silu(x[r, i] + bias[i]) * (x[r, width + i] + bias[width + i])
void silu_mul_rows(device& d, dtype type, const element* x, const float* bias, std::uint32_t rows,
                   std::uint32_t width, element* out);

}  // namespace weir::kernels::cuda
