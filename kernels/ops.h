// ops.h — the complete list of operations that a model is made of, and the table through which a backend
// offers them.
//
// An operation is a struct of what it reads and writes; `reference/ops.cpp` defines each by plain loops,
// every other backend is tested against it, and traffic.h says how many bytes and flops each must move. To
// add one: a struct and a table entry here, its definition, its traffic, its test (docs/kernels.md walks
// through it).
//
// Operations read and write memory of their backend (do_allocate; kernels/buffer.h owns it); spans are read
// on the host before the call returns. Weight matrices may come as rows or packed, activations are always
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
//   5. Memory from do_allocate is zeroed, aligned to 256 bytes, and all there: no page of it comes later.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string_view>

#include "kernels/tensor.h"

namespace weir::kernels {

class decoder;
struct decoder_shape;

// out[i, :] = table[ids[i], :], widened to f32.  REQUIRES: 0 <= ids[i] < table.rows
struct gather {
  matrix table;
  std::span<const std::int32_t> ids;
  float* out = nullptr;  // [ids.size(), table.cols]
};

// out[r, :] = x[r, :] / sqrt(mean(x[r, :]²) + eps) * weight
struct rms_norm {
  const float* x = nullptr;       // [rows, width]
  const float* weight = nullptr;  // [width]
  float* out = nullptr;           // [rows, width]
  std::uint32_t rows = 0, width = 0;
  float eps = 0;
};

// The same over each head of a row, in place: x[r, h * head_dim + i].
struct head_norm {
  float* x = nullptr;             // [rows, heads * head_dim], rows `stride` apart
  const float* weight = nullptr;  // [head_dim]
  std::uint32_t rows = 0, stride = 0, heads = 0, head_dim = 0;
  float eps = 0;
};

// out = x · wᵀ + bias: the only operation that reads weight matrices in bulk.
struct linear {
  matrix w;                     // [n, k] = [w.rows, w.cols]
  const float* bias = nullptr;  // [n], or none
  const float* x = nullptr;     // [rows, k]
  float* out = nullptr;         // [rows, n]
  std::uint32_t rows = 0;
};

// cos[r, i] and sin[r, i] of the f32 product positions[r] * frequencies[i]: once a step, for all layers.
struct rotary_angles {
  std::span<const std::uint32_t> positions;  // [rows]
  std::span<const float> frequencies;        // [head_dim / 2]
  float* cos = nullptr;                      // [rows, head_dim / 2]
  float* sin = nullptr;
};

// Turns the pair (x[i], x[i + head_dim / 2]) of each head by angle i of its row, in place.
struct rotary {
  float* x = nullptr;          // [rows, heads * head_dim], rows `stride` apart
  const float* cos = nullptr;  // [rows, head_dim / 2]
  const float* sin = nullptr;
  std::uint32_t rows = 0, stride = 0, heads = 0, head_dim = 0;
};

// Keys and values of one layer, in pages: a token's are written, and a page's of one head are read, as they
// lie. REQUIRES: page_tokens is a multiple of 16
struct kv_pages {
  float* keys = nullptr;    // [pages, heads, page_tokens, head_dim]
  float* values = nullptr;  // [pages, heads, page_tokens, head_dim]
  std::uint32_t heads = 0, head_dim = 0, page_tokens = 0;
};

// Consecutive rows of one sequence: row first_row + i has position `position + i`.
struct kv_slice {
  std::uint32_t first_row = 0, rows = 0, position = 0;
  const std::int32_t* pages = nullptr;  // [ceil((position + rows) / page_tokens)]
};

// Puts each row's keys and values at its position in its slice's pages.
struct kv_write {
  const float* k = nullptr;  // [rows, heads * head_dim], rows `stride` apart
  const float* v = nullptr;
  std::uint32_t stride = 0;
  kv_pages to;
  std::span<const kv_slice> slices;
};

// Softmax attention of each row over its own sequence, from position max(0, p - window + 1) to p; window 0:
// from 0. Query head h uses key head h / (heads / kv.heads).
struct attention {
  const float* q = nullptr;  // [rows, heads * head_dim], rows `stride` apart
  std::uint32_t stride = 0, heads = 0;
  kv_pages kv;
  std::span<const kv_slice> slices;
  std::uint32_t window = 0;
  float scale = 1;
  float* out = nullptr;  // [rows, heads * head_dim]
};

// out[r, i] = silu(x[r, i]) * x[r, width + i]
struct silu_mul {
  const float* x = nullptr;  // [rows, 2 * width]
  float* out = nullptr;      // [rows, width]
  std::uint32_t rows = 0, width = 0;
};

// x += y, in place.
struct add {
  float* x = nullptr;
  const float* y = nullptr;
  std::size_t count = 0;
};

// `count` pieces of `bytes` each, as far apart as each side says; either side may be memory from
// do_allocate_host.
struct copy {
  void* to = nullptr;
  std::uint64_t to_stride = 0;
  const void* from = nullptr;
  std::uint64_t from_stride = 0;
  std::uint64_t bytes = 0;
  std::uint32_t count = 1;
};

// Of a device's memory: all of it, what nobody has, and what the backend took for itself beside do_allocate.
struct device_memory {
  std::uint64_t total = 0, free = 0, workspaces = 0;
};

// The table. `self` is the backend's own state (threads, scratch) and the first argument of every entry.
struct backend {
  std::string_view name;
  void* self = nullptr;

  // Around the operations of a step, which follow each other closely: a backend may keep its threads awake
  // meanwhile.
  void (*begin_step)(void* self) = [](void*) {};
  void (*end_step)(void* self) = [](void*) {};

  void (*do_gather)(void* self, const gather&) = nullptr;
  void (*do_rms_norm)(void* self, const rms_norm&) = nullptr;
  void (*do_head_norm)(void* self, const head_norm&) = nullptr;
  void (*do_linear)(void* self, const linear&) = nullptr;
  void (*do_rotary_angles)(void* self, const rotary_angles&) = nullptr;
  void (*do_rotary)(void* self, const rotary&) = nullptr;
  void (*do_kv_write)(void* self, const kv_write&) = nullptr;
  void (*do_attention)(void* self, const attention&) = nullptr;
  void (*do_silu_mul)(void* self, const silu_mul&) = nullptr;
  void (*do_add)(void* self, const add&) = nullptr;

  // Memory. Where it is the host's own, code above may read it where it lies; else it is copied. Uploads and
  // downloads return when they are done; a copy may only begin, and is done before the next operation begins.
  bool on_host = true;
  void* (*do_allocate)(void* self, std::uint64_t bytes) = nullptr;  // null: not there
  void (*do_free)(void* self, void* at, std::uint64_t bytes) = nullptr;
  void (*do_upload)(void* self, void* to, const void* from_host, std::uint64_t bytes) = nullptr;
  void (*do_download)(void* self, void* to_host, const void* from, std::uint64_t bytes) = nullptr;
  void (*do_copy)(void* self, const copy&) = nullptr;
  // Why the device failed, once it has: it then computes nothing more. Null entry: it cannot.
  const char* (*fault)(void* self) = nullptr;
  // Of the device's memory, for those who ask before they allocate; 0: it does not say.
  std::uint64_t (*free_bytes)(void* self) = nullptr;
  // Null entry: the memory is the host's.
  device_memory (*memory)(void* self) = nullptr;

  // Memory of the host that the device reaches by itself, for copies and for uploads that only begin: what
  // such an upload reads stays as it is until its lane was awaited. Null entries: any memory of the host will
  // do (kernels/host_buffer.h), and uploads are do_upload's.
  static constexpr unsigned upload_lanes = 32;
  void* (*do_allocate_host)(void* self, std::uint64_t bytes) = nullptr;  // null: not there
  void (*do_free_host)(void* self, void* at, std::uint64_t bytes) = nullptr;
  void (*do_begin_upload)(void* self, void* to, const void* from_host, std::uint64_t bytes,
                          unsigned lane) = nullptr;
  void (*do_await_upload)(void* self, unsigned lane) = nullptr;

  // A weight matrix in the backend's own layout: what it takes, and how a row-major one on the host becomes
  // one at `to`, memory of the backend.
  std::uint64_t (*weight_bytes)(void* self, dtype, std::uint32_t rows, std::uint32_t cols) = nullptr;
  void (*do_pack)(void* self, const matrix& rows_on_host, void* to) = nullptr;

  // Random weights (kernels/random_weights.h) where they lie, row-major; null entry: they are made on the
  // host.
  void (*do_fill_random)(void* self, void* to, dtype, std::uint64_t elements, bool norm,
                         std::uint64_t seed) = nullptr;

  // A whole model as one operation (kernels/decoder.h); null, as entry or answer: not for this one.
  std::unique_ptr<decoder> (*make_decoder)(void* self, const decoder_shape& shape) = nullptr;

  // The limits of this machine, for benchmarks: reads every byte once with all it has and does nothing else;
  // flops a second of products with weights of a type, measured now (0: it has no such limit).
  void (*do_read)(void* self, const void* at, std::uint64_t bytes) = nullptr;
  double (*peak_flops)(void* self, dtype weights) = nullptr;

  void run(const gather& op) const { do_gather(self, op); }
  void run(const rms_norm& op) const { do_rms_norm(self, op); }
  void run(const head_norm& op) const { do_head_norm(self, op); }
  void run(const linear& op) const { do_linear(self, op); }
  void run(const rotary_angles& op) const { do_rotary_angles(self, op); }
  void run(const rotary& op) const { do_rotary(self, op); }
  void run(const kv_write& op) const { do_kv_write(self, op); }
  void run(const attention& op) const { do_attention(self, op); }
  void run(const silu_mul& op) const { do_silu_mul(self, op); }
  void run(const add& op) const { do_add(self, op); }
  void run(const copy& op) const { do_copy(self, op); }
};

// Plain loops, one thread: the definition. Stateless, so any number of threads may use it.
std::shared_ptr<const backend> reference_backend();

// `threads` compute, the calling one included (>= 1). What it found here is in `name`, for example
// "cpu (avx512, amx-bf16)", as is what was found and failed its self-test (cpu/self_test.h).
std::shared_ptr<const backend> cpu_backend(unsigned threads);

}  // namespace weir::kernels
