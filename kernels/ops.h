// ops.h — the complete list of operations that a model is made of, and the table through which a backend
// offers them.
//
// An operation is a struct of what it reads and writes. `reference/ops.cpp` defines each operation by plain
// loops, and every other backend is tested against it; traffic.h says how many bytes and flops each must
// move. To add one: a struct and a table entry here, its definition, its traffic, its test (docs/kernels.md
// walks through it).
//
// Pointers are to memory of the backend (do_allocate; kernels/buffer.h owns it). Spans are memory of the
// host, and have been read when the call returns; a backend with memory of its own may compute after the call
// returns, in the order of the calls. Weight matrices may come as rows or packed; activations are always
// rows.
//
// Thread safety: one backend serves one thread at a time (it may use threads of its own); data is the
// caller's.
//
// Invariants, for every backend:
//   1. Inputs and outputs do not overlap, except where an operation says «in place».
//   2. Every element of an output is written, whatever was there before; nothing beside it is.
//   3. A row's result depends on that row alone: never on values in other rows of the same call.
//   4. No operation allocates once the largest shape has been seen.
//   5. Memory from do_allocate is zeroed, aligned to 256 bytes, and committed: none of its pages is first
//      mapped when it is used.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string_view>

#include "kernels/attention_rule.h"
#include "kernels/kv_type.h"
#include "kernels/model_shape.h"
#include "kernels/tensor.h"

namespace weir::kernels {

class decoder;
struct decoder_needs;
struct decoder_shape;
struct file_codes;

// out[i, :] = table[ids[i], :] * factor, widened to f32 first.
// The columns of `out` are in the table's own order: table.inputs is not used.
// REQUIRES: 0 <= ids[i] < table.rows
struct gather {
  matrix table;
  std::span<const std::int32_t> ids;
  float* out = nullptr;  // [ids.size(), table.cols]
  float factor = 1;
};

// out[r, :] = x[r, :] / sqrt(mean(x[r, :]²) + eps) * weight + bias. Where `centred` (LayerNorm), the mean of
// x[r, :] is first taken off its elements.
struct row_norm {
  const float* x = nullptr;       // [rows, width]
  const float* weight = nullptr;  // [width]
  float* out = nullptr;           // [rows, width]
  std::uint32_t rows = 0, width = 0;
  float eps = 0;
  bool centred = false;
  const float* bias = nullptr;  // [width]; may be null
};

// row_norm of each head of a row by itself, in place, without a bias. Head h of row r is the head_dim
// elements of x from r * stride + h * head_dim on, and its weights are those from h * weight_stride on.
struct head_norm {
  float* x = nullptr;             // [rows, heads * head_dim], rows `stride` elements apart
  const float* weight = nullptr;  // [head_dim], or [heads, head_dim]
  std::uint32_t rows = 0, stride = 0, heads = 0, head_dim = 0;
  float eps = 0;
  bool centred = false;
  std::uint32_t weight_stride = 0;  // 0: the heads share their weights; head_dim: each has its own
};

// out = x · wᵀ + bias. The only operation that reads weight matrices in bulk. Where w has inputs of its own,
// column c of w multiplies x[r, w.inputs[c]] in place of x[r, c].
// REQUIRES: w has inputs of its own only if it is quantised
struct linear {
  matrix w;                     // [n, k] = [w.rows, w.cols]
  const float* bias = nullptr;  // [n]; may be null
  const float* x = nullptr;     // [rows, w.width()]
  float* out = nullptr;         // [rows, n], rows stride() elements apart
  std::uint32_t rows = 0;
  // For a matrix that is one of several with the same input: the width of all outputs together. Only a
  // backend with takes_blocks has to know it.
  std::uint32_t out_stride = 0;  // 0: n

  std::uint32_t stride() const noexcept { return out_stride ? out_stride : w.rows; }
};

// cos[r, i] and sin[r, i] are `factor` times cosine and sine of the f32 product positions[r] *
// frequencies[i]. They are computed once a step, for all layers.
struct rotary_angles {
  std::span<const std::uint32_t> positions;  // [rows]
  std::span<const float> frequencies;        // [half the elements of a head that turn]
  float* cos = nullptr;                      // [rows, frequencies.size()]
  float* sin = nullptr;                      // [rows, frequencies.size()]
  float factor = 1;
};

// Rotary embedding of each head, in place. The first `turned` elements of a head turn, and the others stay as
// they are. With half = turned / 2, it rotates the pair (x[i], x[i + half]) by angle i of its row: x[i] to
// x[i] * cos - x[i + half] * sin, and x[i + half] to x[i + half] * cos + x[i] * sin.
// REQUIRES: turned is even and at most head_dim
struct rotary {
  float* x = nullptr;          // [rows, heads * head_dim], rows `stride` elements apart
  const float* cos = nullptr;  // [rows, turned / 2]
  const float* sin = nullptr;  // [rows, turned / 2]
  std::uint32_t rows = 0, stride = 0, heads = 0, head_dim = 0, turned = 0;
};

// Keys and values of one layer, in pages. `heads` are key heads. A page stores a token's key of one head in
// one piece and all tokens of one head behind each other, so that neither writing a token nor reading a page
// transposes anything.
// REQUIRES: page_tokens is a multiple of 16; the backend stores `type` (backend::stores_kv)
struct kv_pages {
  void* keys = nullptr;    // [pages, heads, page_tokens, head_dim] in `type`, with its scales (kv_type.h)
  void* values = nullptr;  // as keys
  std::uint32_t heads = 0, head_dim = 0, page_tokens = 0;
  kv_type type = kv_type::f32;

  // Where a page's tokens of one head begin, in bytes from `keys` and from `values`.
  std::uint64_t place(std::uint64_t page, std::uint32_t head) const noexcept {
    return (page * heads + head) * page_tokens * kv_row_bytes(type, head_dim);
  }
};

// Consecutive rows of one sequence: row first_row + i of the step has position `position + i` in the
// sequence. `pages` (on the host) are the numbers of the sequence's pages in kv_pages: position p is in
// pages[p / page_tokens], at p % page_tokens.
struct kv_slice {
  std::uint32_t first_row = 0, rows = 0, position = 0;
  const std::int32_t* pages = nullptr;  // [ceil((position + rows) / page_tokens)]
};

// Stores each row's keys and values at its position in its slice's pages, rounded to the pages' type. What is
// stored depends on that key or value alone.
struct kv_write {
  const float* k = nullptr;  // [rows, heads * head_dim], rows `stride` elements apart
  const float* v = nullptr;  // as k
  std::uint32_t stride = 0;
  kv_pages to;
  std::span<const kv_slice> slices;
};

// Softmax attention of each row over its own sequence, as `rule` says. Query head h uses key head
// h / (heads / kv.heads). Keys and values are the stored ones, those of the same step included.
struct attention {
  const float* q = nullptr;  // [rows, heads * head_dim], rows `stride` elements apart
  std::uint32_t stride = 0, heads = 0;
  kv_pages kv;
  std::span<const kv_slice> slices;
  attention_rule rule;
  float* out = nullptr;  // [rows, heads * head_dim]
  // [heads]; may be null. A sink is one more score of each row's softmax, without a value: it takes a share
  // of the weights. It is not scaled or capped. (StreamingLLM, arXiv 2309.17453; gpt-oss)
  const float* sinks = nullptr;
};

// out[r, i] = f(x[r, i]) * x[r, width + i] where `gated`, else f(x[r, i]); f is `kind`.
// REQUIRES: activation::clamped is gated
struct activate {
  const float* x = nullptr;  // [rows, 2 * width], or [rows, width] without a gate
  float* out = nullptr;      // [rows, width]
  std::uint32_t rows = 0, width = 0;
  activation kind = activation::silu;
  bool gated = true;
  float limit = 0;  // of activation::clamped
};

// The experts of each row, and their weights, as `how` says (model_shape.h). An expert's product is router[e]
// · x[r] + bias[e]; products are made and scored in f32. Without a choice_bias the choice is made by the
// products themselves, whose order is that of the scores. What is NaN counts as the least. Where `shared`,
// the router has one more row s behind its experts', and shared[r] = sigmoid(s · x[r]).
struct route {
  const float* x = nullptr;            // [rows, width]
  const float* router = nullptr;       // [how.experts, width], and one row more where `shared` is not null
  const float* bias = nullptr;         // [how.experts]; may be null
  const float* choice_bias = nullptr;  // [how.experts], as how.choice_bias says
  expert_router how;
  std::int32_t* ids = nullptr;  // [rows, how.chosen], by falling score of the choice
  float* weights = nullptr;     // [rows, how.chosen]
  float* shared = nullptr;      // [rows]; may be null
  std::uint32_t rows = 0, width = 0;
};

// out[s, :] = w.of(ids[s]) · x[s / share, :] + bias[ids[s], :], for `slots` slots. A slot is a row and one of
// its experts: slot r * chosen + i is row r and its i-th expert.
// REQUIRES: 0 <= ids[s] < w.count; slots is a multiple of share
struct expert_linear {
  expert_matrices w;                  // each [n, k]
  const float* bias = nullptr;        // [w.count, n]; may be null
  const float* x = nullptr;           // [slots / share, k]
  const std::int32_t* ids = nullptr;  // [slots]
  float* out = nullptr;               // [slots, n]
  std::uint32_t slots = 0;
  std::uint32_t share =
      1;  // slots that read one row of x: `chosen` where x are the rows, 1 where it has slots
};

// out[r, :] = Σ weights[r, i] * y[r * chosen + i, :] in the order of i, + gate[r] * shared[r, :].
struct mix_experts {
  const float* y = nullptr;        // [rows * chosen, width]
  const float* weights = nullptr;  // [rows, chosen]
  const float* shared = nullptr;   // [rows, width]; null: no shared expert
  const float* gate = nullptr;     // [rows]; null: 1
  float* out = nullptr;            // [rows, width]
  std::uint32_t rows = 0, width = 0, chosen = 0;
};

// x[r, i] *= sigmoid(gate[r, i]), in place.
struct sigmoid_mul {
  float* x = nullptr;           // [rows, width]
  const float* gate = nullptr;  // [rows, width], rows `stride` elements apart
  std::uint32_t rows = 0, width = 0, stride = 0;
};

// x += factor * y, in place.
struct add {
  float* x = nullptr;
  const float* y = nullptr;
  std::size_t count = 0;  // elements of each
  float factor = 1;
};

// x = factor * x and then, where cap is not 0, x = cap * tanh(x / cap), in place.
struct soft_cap {
  float* x = nullptr;
  std::size_t count = 0;
  float factor = 1, cap = 0;
};

// Copies `count` pieces of `bytes` bytes each. Piece i goes from `from` + i * from_stride to `to` + i *
// to_stride, strides in bytes. Either side may be memory from do_allocate_host.
struct copy {
  void* to = nullptr;
  std::uint64_t to_stride = 0;
  const void* from = nullptr;
  std::uint64_t from_stride = 0;
  std::uint64_t bytes = 0;
  std::uint32_t count = 1;
};

// The memory of a device, in bytes: all of it, what is free, and what the backend has allocated for itself
// (not by do_allocate).
struct device_memory {
  std::uint64_t total = 0, free = 0, workspaces = 0;
};

// The pieces in which memory of do_reserve comes and goes, in bytes.
struct memory_pieces {
  std::uint64_t unit = 0;   // a piece is a multiple of it; 0: the backend has no such memory
  std::uint64_t usual = 0;  // the least piece that is worth the call for it
};

// A part of a matrix that is to be packed, on the host: whole rows of blocks, or a rectangle of codes as
// files have them (file_codes.h).
struct packed_part {
  std::uint32_t first = 0;  // the packed matrix' row that the part begins at
  matrix rows;              // blocks
  // Null: `rows`. The struct has been read when do_begin_pack returns. Its arrays, like the data of `rows`,
  // are read until do_await_upload() of the lane returns.
  const file_codes* codes = nullptr;
};

// The table of a backend. `self` is the backend's own state (threads, scratch) and the first argument of
// every entry.
struct backend {
  std::string_view name;
  void* self = nullptr;

  // Called before and after the operations of a step, which follow each other closely. In between a backend
  // may keep its threads awake.
  void (*begin_step)(void* self) = [](void*) {};
  void (*end_step)(void* self) = [](void*) {};

  void (*do_gather)(void* self, const gather&) = nullptr;
  void (*do_row_norm)(void* self, const row_norm&) = nullptr;
  void (*do_head_norm)(void* self, const head_norm&) = nullptr;
  void (*do_linear)(void* self, const linear&) = nullptr;
  void (*do_rotary_angles)(void* self, const rotary_angles&) = nullptr;
  void (*do_rotary)(void* self, const rotary&) = nullptr;
  void (*do_kv_write)(void* self, const kv_write&) = nullptr;
  void (*do_attention)(void* self, const attention&) = nullptr;
  void (*do_activate)(void* self, const activate&) = nullptr;
  void (*do_sigmoid_mul)(void* self, const sigmoid_mul&) = nullptr;
  void (*do_route)(void* self, const route&) = nullptr;
  void (*do_expert_linear)(void* self, const expert_linear&) = nullptr;
  void (*do_mix_experts)(void* self, const mix_experts&) = nullptr;
  void (*do_add)(void* self, const add&) = nullptr;
  void (*do_soft_cap)(void* self, const soft_cap&) = nullptr;

  // Whether the backend's memory is the host's own: callers may then read and write it directly. Otherwise
  // they copy by the functions below.
  bool on_host = true;

  // Allocates `bytes` bytes (invariant 5). Returns null where memory is short, which is no fault of the
  // device.
  void* (*do_allocate)(void* self, std::uint64_t bytes) = nullptr;
  // Frees what do_allocate returned for the same `bytes`.
  void (*do_free)(void* self, void* at, std::uint64_t bytes) = nullptr;
  // Reserves addresses for `bytes` bytes, none of which have memory. do_take_again gives memory to a part of
  // them, do_give_back takes it away, and do_free ends the reservation with the memory that it has. A part
  // begins at a multiple of `piece` bytes from the first address, and ends at one, or at a multiple of
  // pieces.unit; such a part that ends within a piece is given back with the whole piece before more memory
  // is taken there. Null: so many addresses are not there. The entry is null where pieces.unit is 0.
  // REQUIRES: bytes and piece are multiples of pieces.unit
  void* (*do_reserve)(void* self, std::uint64_t bytes, std::uint64_t piece) = nullptr;
  memory_pieces pieces;
  // Gives back the memory behind what do_allocate returned for the same `bytes`, or of a part of a
  // reservation. The addresses stay reserved: until do_take_again nothing may read or write there, and
  // do_free may end the allocation. Returns the bytes that were given back, which is 0 where the allocation
  // is smaller than the least piece of memory that the device gives back; it then keeps its memory. Of an
  // allocation: waits for the work that was begun before. Of a reservation: waits for nothing, gives back
  // what has memory, and may be called on any thread beside the one that the backend serves; one at a time.
  // Both entries are null where the backend cannot do this.
  std::uint64_t (*do_give_back)(void* self, void* at, std::uint64_t bytes) = nullptr;
  // Takes memory again for an allocation that was given back, at the same addresses and zeroed (invariant 5);
  // or for a part of a reservation, on the threads of do_give_back. False: memory is short, which is no fault
  // of the device; nothing was taken then. For a part it may also be a failure of the device, which the next
  // call for its allocations reports. REQUIRES: nothing there has memory; the allocation was given back
  bool (*do_take_again)(void* self, void* at, std::uint64_t bytes) = nullptr;
  // Copy between memory of the host and the backend's; done when they return.
  void (*do_upload)(void* self, void* to, const void* from_host, std::uint64_t bytes) = nullptr;
  void (*do_download)(void* self, void* to_host, const void* from, std::uint64_t bytes) = nullptr;
  // The copy may still be under way when this returns; it is done before the next operation begins.
  void (*do_copy)(void* self, const copy&) = nullptr;

  // Why the device failed, or null as long as it has not. A device that has failed computes nothing more. The
  // entry is null where the backend cannot fail.
  const char* (*fault)(void* self) = nullptr;
  // The bytes that could be allocated now; 0: unknown.
  std::uint64_t (*free_bytes)(void* self) = nullptr;
  // The device's memory. The entry is null where the memory is the host's.
  device_memory (*memory)(void* self) = nullptr;
  // Of device_memory::workspaces, the bytes that the backend has allocated from the time it was opened.
  std::uint64_t own_bytes = 0;

  // Says that other backends share the device, whose work must not wait while `*busy`: from now on this one
  // rests then after each short piece of its work, some times as long as the piece took. For loads; null ends
  // it. `busy` outlives the backend or the next call. The entry is null where it would be of no use.
  void (*do_give_way)(void* self, const std::atomic<bool>* busy) = nullptr;

  // The number of lanes of do_begin_upload.
  static constexpr unsigned upload_lanes = 32;
  // Allocates memory of the host that the device can access by itself (pinned), for do_copy and for
  // do_begin_upload. Returns null where memory is short. Where this entry and the next three are null,
  // any memory of the host will do (kernels/host_buffer.h), and uploads go through do_upload.
  void* (*do_allocate_host)(void* self, std::uint64_t bytes) = nullptr;
  void (*do_free_host)(void* self, void* at, std::uint64_t bytes) = nullptr;
  // Begins an upload from memory of do_allocate_host. The source must not change until do_await_upload(lane),
  // which waits for the uploads that were begun with that lane. REQUIRES: lane < upload_lanes
  void (*do_begin_upload)(void* self, void* to, const void* from_host, std::uint64_t bytes,
                          unsigned lane) = nullptr;
  void (*do_await_upload)(void* self, unsigned lane) = nullptr;

  // The bytes that a weight matrix takes in the backend's own layout (layout::packed).
  std::uint64_t (*weight_bytes)(void* self, dtype, std::uint32_t rows, std::uint32_t cols) = nullptr;
  // Converts a row-major matrix on the host to that layout at `to`, memory of the backend of weight_bytes
  // bytes.
  void (*do_pack)(void* self, const matrix& rows_on_host, void* to) = nullptr;

  // Whether gather and linear take weights of this quantised type. The entry is null where they take plain
  // types alone.
  bool (*takes_blocks)(void* self, dtype) = nullptr;

  // As do_begin_upload, for a part of `packed`, a matrix of blocks in the layout of do_pack, whose memory was
  // zeroed. The entry is null where that layout is row-major in every type.
  // REQUIRES: the part is in memory of do_allocate_host, and has at most most_packed_at_once bytes
  void (*do_begin_pack)(void* self, const matrix& packed, const packed_part& part, unsigned lane) = nullptr;
  static constexpr std::uint64_t most_packed_at_once = 32u << 20;

  // Whether kv_write and attention take pages of this type. The entry is null where they take f32 alone.
  bool (*stores_kv)(void* self, kv_type) = nullptr;

  // Fills rows [first, first + rows) of `to` with random weights (kernels/random_weights.h,
  // kernels/random_blocks.h), in the layout of do_pack; `norm`: weights of a norm, around 1. The entry is
  // null where they are made on the host.
  void (*do_fill_random)(void* self, const matrix& to, std::uint32_t first, std::uint32_t rows, bool norm,
                         std::uint64_t seed) = nullptr;

  // Whether there is a model whose decoder stores keys and values in this type (decoder_shape::kv). The entry
  // is null where decoders leave no choice.
  bool (*decoder_stores_kv)(void* self, kv_type) = nullptr;

  // Makes a decoder for a whole model (kernels/decoder.h). Returns null where the backend has no decoder for
  // this model and its type of keys and values. The entry is null where the backend has no decoders.
  std::unique_ptr<decoder> (*make_decoder)(void* self, const decoder_shape& shape) = nullptr;
  // The bytes of one page of the decoder that make_decoder would make of `shape`; 0: it would make none.
  // Reads sizes and types of the weights alone, so they need not be in memory. The entry is null where
  // make_decoder is.
  std::uint64_t (*decoder_page_bytes)(void* self, const decoder_shape& shape) = nullptr;
  // What that decoder takes once it is warm, for steps of up to `decode_rows` rows of decoding and its own
  // prompt_rows(), in sequences of at most `most_pages` pages. Exact but for what recorded graphs take. The
  // entry is null where make_decoder is. REQUIRES: decoder_page_bytes() > 0
  decoder_needs (*decoder_needs_of)(void* self, const decoder_shape& shape, std::uint32_t decode_rows,
                                    std::uint32_t most_pages) = nullptr;

  // The limits of this machine, for benchmarks. do_read reads every byte once, as fast as the machine can,
  // and does nothing else. peak_flops measures the flops a second of products with weights of that type; 0:
  // the backend has no such figure.
  void (*do_read)(void* self, const void* at, std::uint64_t bytes) = nullptr;
  double (*peak_flops)(void* self, dtype weights) = nullptr;

  void run(const gather& op) const { do_gather(self, op); }
  void run(const row_norm& op) const { do_row_norm(self, op); }
  void run(const head_norm& op) const { do_head_norm(self, op); }
  void run(const linear& op) const { do_linear(self, op); }
  void run(const rotary_angles& op) const { do_rotary_angles(self, op); }
  void run(const rotary& op) const { do_rotary(self, op); }
  void run(const kv_write& op) const { do_kv_write(self, op); }
  void run(const attention& op) const { do_attention(self, op); }
  void run(const activate& op) const { do_activate(self, op); }
  void run(const sigmoid_mul& op) const { do_sigmoid_mul(self, op); }
  void run(const route& op) const { do_route(self, op); }
  void run(const expert_linear& op) const { do_expert_linear(self, op); }
  void run(const mix_experts& op) const { do_mix_experts(self, op); }
  void run(const add& op) const { do_add(self, op); }
  void run(const soft_cap& op) const { do_soft_cap(self, op); }
  void run(const copy& op) const { do_copy(self, op); }
};

// The backend of plain loops on the calling thread: the definition of every operation. It has no state, so
// any number of threads may use it at once.
std::shared_ptr<const backend> reference_backend();

// The backend that computes on the host's vector and matrix units with `threads` threads, the calling one
// included. `name` says which instruction sets it uses, for example "cpu (avx512, amx-bf16)", and which it
// found but left out because their self-test failed (cpu/self_test.h).
// REQUIRES: threads >= 1
std::shared_ptr<const backend> cpu_backend(unsigned threads);

}  // namespace weir::kernels
