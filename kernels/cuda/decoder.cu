#include "kernels/cuda/decoder.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <map>
#include <numeric>

#include "kernels/cuda/device.h"
#include "kernels/cuda/layers.h"
#include "kernels/cuda/products.h"
#include "kernels/cuda/sample.h"

namespace weir::kernels::cuda {
namespace {

using bf16 = __nv_bfloat16;

// Device memory that grows, pinned host memory that grows; both lose what they held.
class grown {
 public:
  explicit grown(device& d, bool host = false) : d_(d), host_(host) {}
  grown(const grown&) = delete;
  ~grown() { release(); }

  // True where it moved. A failure is the device's.
  bool reserve(std::size_t bytes) {
    if (bytes <= size_) return false;
    d_.sync();
    release();
    const cudaError_t e = host_ ? cudaMallocHost(&at_, bytes) : cudaMalloc(&at_, bytes);
    if (!WEIR_CUDA(d_, e)) at_ = nullptr;
    size_ = at_ ? bytes : 0;
    if (at_ && !host_) WEIR_CUDA(d_, cudaMemsetAsync(at_, 0, bytes, d_.stream));
    return true;
  }
  template <class T>
  T* as() const {
    return static_cast<T*>(at_);
  }

 private:
  void release() {
    if (at_) host_ ? cudaFreeHost(at_) : cudaFree(at_);
    at_ = nullptr;
    size_ = 0;
  }
  device& d_;
  bool host_;
  void* at_ = nullptr;
  std::size_t size_ = 0;
};

// Batches of decoding are filled up to one of these, so that few graphs serve all.
constexpr std::uint32_t classes[] = {1,  2,  4,  6,   8,   12,  16,  20,  24,  28,  32,  40,  48, 56,
                                     64, 80, 96, 112, 128, 160, 192, 224, 256, 320, 384, 448, 512};
constexpr std::uint32_t least_rows = 1024;  // room for these is there from the start

class cuda_decoder final : public decoder {
 public:
  cuda_decoder(device& d, const decoder_shape& s);
  ~cuda_decoder() override;

  std::uint64_t page_bytes() const noexcept override {
    return s_.layers.size() * 2 * std::uint64_t{s_.kv_heads} * page_tokens * s_.head_dim * sizeof(bf16);
  }
  void set_pages(void* memory, std::uint32_t count) override {
    pages_ = static_cast<bf16*>(memory);
    page_count_ = count;
    drop_graphs();
  }
  bool warm_up(std::uint32_t decode_rows, std::uint32_t prompt_rows) override;
  bool forward(const decoder_step& step) override;
  bool sample(std::span<const decoder_draw> draws, std::span<decoder_result> out) override;
  bool read_logits(std::uint32_t row, float* to_host) override;

 private:
  bool make_room(std::uint32_t rows, std::uint32_t logits);
  struct extent {  // of a step as the device computes it: some of it fills up a class
    std::uint32_t rows = 0, logits = 0, decodes = 0, blocks = 0, block_lines = 0;
  };
  extent extent_of(const decoder_step& step, bool decoding) const;
  rows_view bring(const decoder_step& step, const extent& e);
  void record(const rows_view& v, bool decoding);
  void layer(std::size_t i, const rows_view& v, bool decoding, const float* bias_before);
  void multiply(const matrix& w, matrix decoder_layer::*which, const bf16* x, std::uint32_t rows, void* out,
                product_out kind);
  void drop_graphs();

  device& d_;
  const decoder_shape s_;
  const head_shape heads_;
  products products_;
  std::vector<const void*> samples_[4];  // of qkv, out, gate_up, down: all layers' weights
  bf16* pages_ = nullptr;
  std::uint32_t page_count_ = 0;

  grown frequencies_, x_, normed_, qkv_, attended_, gate_up_, inner_, cos_, sin_, logits_, scratch_, parts_,
      arrived_;
  grown input_, input_host_;       // a step's rows
  cudaEvent_t brought_ = nullptr;  // they are on the device: the next step may write over the host's copy
  grown orders_, orders_host_, saved_, results_;  // a step's draws
  split_scratch split_;
  std::uint32_t rows_ = 0, logits_rows_ = 0;

  struct graph {
    bool seen = false;  // run once already, so that every product's algorithm is known
    cudaGraphExec_t ready = nullptr;
  };
  std::map<std::uint32_t, graph> graphs_;
};

cuda_decoder::cuda_decoder(device& d, const decoder_shape& s)
    : d_(d),
      s_(s),
      heads_{s.heads, s.kv_heads, s.head_dim},
      products_(d),
      frequencies_(d),
      x_(d),
      normed_(d),
      qkv_(d),
      attended_(d),
      gate_up_(d),
      inner_(d),
      cos_(d),
      sin_(d),
      logits_(d),
      scratch_(d),
      parts_(d),
      arrived_(d),
      input_(d),
      input_host_(d, true),
      orders_(d),
      orders_host_(d, true),
      saved_(d),
      results_(d, true) {
  frequencies_.reserve(s_.frequencies.size() * sizeof(float));
  if (!d_.failed())
    WEIR_CUDA(d_, cudaMemcpyAsync(frequencies_.as<float>(), s_.frequencies.data(),
                                  s_.frequencies.size() * sizeof(float), cudaMemcpyHostToDevice, d_.stream));
  split_.most_blocks = 2 * static_cast<std::uint32_t>(d_.multiprocessors) + 16;
  split_.most_items = static_cast<std::uint32_t>(d_.multiprocessors);
  parts_.reserve(split_floats(heads_, split_.most_blocks) * sizeof(float));
  arrived_.reserve(split_.most_items * sizeof(unsigned));
  split_.parts = parts_.as<float>();
  split_.arrived = arrived_.as<unsigned>();
  for (const decoder_layer& l : s_.layers) {
    samples_[0].push_back(l.qkv.data);
    samples_[1].push_back(l.out.data);
    samples_[2].push_back(l.gate_up.data);
    samples_[3].push_back(l.down.data);
  }
  if (!d_.failed()) WEIR_CUDA(d_, cudaEventCreateWithFlags(&brought_, cudaEventDisableTiming));
  make_room(least_rows, 64);
  d_.sync();
}

cuda_decoder::~cuda_decoder() {
  d_.use();
  d_.sync();
  drop_graphs();
  if (brought_) cudaEventDestroy(brought_);
}

void cuda_decoder::drop_graphs() {
  for (auto& [rows, g] : graphs_)
    if (g.ready) cudaGraphExecDestroy(g.ready);
  graphs_.clear();
}

bool cuda_decoder::make_room(std::uint32_t rows, std::uint32_t logits) {
  const std::size_t r = std::max(rows, rows_), l = std::max(logits, logits_rows_);
  if (r == rows_ && l == logits_rows_) return !d_.failed();
  bool moved = false;
  moved |= x_.reserve(r * s_.hidden * sizeof(float));
  moved |= scratch_.reserve(r * std::max(s_.hidden, heads_.width()) * sizeof(float));
  moved |= normed_.reserve(r * s_.hidden * sizeof(bf16));
  moved |= qkv_.reserve(r * heads_.width() * sizeof(bf16));
  moved |= attended_.reserve(r * s_.heads * s_.head_dim * sizeof(bf16));
  moved |= gate_up_.reserve(r * 2 * s_.inter * sizeof(bf16));
  moved |= inner_.reserve(r * s_.inter * sizeof(bf16));
  moved |= cos_.reserve(r * s_.head_dim / 2 * sizeof(float));
  moved |= sin_.reserve(r * s_.head_dim / 2 * sizeof(float));
  moved |= logits_.reserve(l * s_.vocab * sizeof(float));
  if (moved) drop_graphs();
  rows_ = static_cast<std::uint32_t>(r);
  logits_rows_ = static_cast<std::uint32_t>(l);
  return !d_.failed();
}

// Single rows have a kernel of their own, unless all rows must have the same bits in every company: then there is one
// kernel for all of them, and products of whole units.
cuda_decoder::extent cuda_decoder::extent_of(const decoder_step& step, bool decoding) const {
  const auto up = [](std::size_t n) {
    return static_cast<std::uint32_t>((n + products::unit - 1) / products::unit * products::unit);
  };
  extent e;
  e.rows = static_cast<std::uint32_t>(step.tokens.size());
  e.logits = static_cast<std::uint32_t>(step.logits_from.size());
  e.block_lines = d_.deterministic && decoding ? 16 : 128;
  const std::uint32_t most = prefill_tokens(heads_, e.block_lines);
  for (const kv_slice& s : step.slices) {
    if (s.rows == 1 && !d_.deterministic)
      ++e.decodes;
    else
      e.blocks += (s.rows + most - 1) / most;
  }
  if (d_.deterministic) {
    e.rows = up(e.rows);
    e.logits = up(e.logits);
    if (decoding) e.blocks = e.rows;
  } else if (decoding) {
    e.rows = e.logits = e.decodes = *std::lower_bound(std::begin(classes), std::end(classes), e.rows);
  }
  return e;
}

// Everything a step needs to know goes to the device in one copy.
rows_view cuda_decoder::bring(const decoder_step& step, const extent& e) {
  const auto [rows, logits, decodes, blocks, block_lines] = e;
  std::size_t pages = 0;
  const std::uint32_t most = prefill_tokens(heads_, block_lines);
  for (const kv_slice& s : step.slices) pages += (s.position + s.rows + page_tokens - 1) / page_tokens;
  const std::size_t words = std::size_t{rows} * 3 + std::size_t{decodes} * 4 + logits + std::size_t{blocks} * 4 + pages;
  // Twice what is needed: contexts grow, and the graphs know where this lies.
  if (input_.reserve(words * 8) | input_host_.reserve(words * 8)) drop_graphs();
  rows_view v{};
  // Nobody may have waited for the step before: a slice of a prompt draws nothing.
  if (!d_.failed()) WEIR_CUDA(d_, cudaEventSynchronize(brought_));
  if (d_.failed()) return v;

  auto* host = input_host_.as<std::int32_t>();
  auto* there = input_.as<std::int32_t>();
  std::size_t at = 0;
  const auto take = [&](std::size_t count) {
    at += count;
    return at - count;
  };
  // Those that are read as fours first.
  const std::size_t decode_at = take(std::size_t{decodes} * 4), blocks_at = take(std::size_t{blocks} * 4),
                    tokens_at = take(rows), positions_at = take(rows), row_pages_at = take(rows),
                    logits_at = take(logits), pages_at = take(pages);
  for (std::uint32_t i = 0; i < rows; ++i) {
    const bool real = i < step.tokens.size();
    host[tokens_at + i] = real ? step.tokens[i] : 0;
    host[positions_at + i] = real ? static_cast<std::int32_t>(step.positions[i]) : 0;
    host[row_pages_at + i] = -1;
  }
  std::size_t page = 0;
  std::uint32_t context = 0;
  auto* single = reinterpret_cast<decode_row*>(host + decode_at);
  auto* block = reinterpret_cast<prefill_block*>(host + blocks_at);
  for (const kv_slice& s : step.slices) {
    const std::size_t count = (s.position + s.rows + page_tokens - 1) / page_tokens;
    std::copy_n(s.pages, count, host + pages_at + page);
    for (std::uint32_t i = 0; i < s.rows; ++i)
      host[row_pages_at + s.first_row + i] = static_cast<std::int32_t>(page);
    if (s.rows == 1 && decodes > 0) {
      *single++ = {static_cast<std::int32_t>(s.first_row), static_cast<std::int32_t>(s.position),
                   static_cast<std::int32_t>(page), 0};
    } else {
      context = std::max(context, s.position + s.rows);
      for (std::uint32_t i = 0; i < s.rows; i += most)
        *block++ = {static_cast<std::int32_t>(s.first_row + i),
                    static_cast<std::int32_t>(std::min(most, s.rows - i)),
                    static_cast<std::int32_t>(s.position + i), static_cast<std::int32_t>(page)};
    }
    page += count;
  }
  const auto* singles = reinterpret_cast<const decode_row*>(host + decode_at);
  while (single < singles + decodes) *single = {static_cast<std::int32_t>(single - singles), 0, -1, 0}, ++single;
  // Long contexts first, so that the last blocks to run are short ones.
  auto* first = reinterpret_cast<prefill_block*>(host + blocks_at);
  while (block < first + blocks) *block++ = {0, 0, -1, 0};
  std::sort(first, block, [](const auto& a, const auto& b) { return a.position > b.position; });
  for (std::uint32_t i = 0; i < logits; ++i)
    host[logits_at + i] = i < step.logits_from.size() ? step.logits_from[i] : static_cast<std::int32_t>(i);
  WEIR_CUDA(d_, cudaMemcpyAsync(there, host, at * 4, cudaMemcpyHostToDevice, d_.stream));
  WEIR_CUDA(d_, cudaEventRecord(brought_, d_.stream));
  v.tokens = there + tokens_at;
  v.positions = reinterpret_cast<const std::uint32_t*>(there + positions_at);
  v.pages_at = there + row_pages_at;
  v.decode_rows = reinterpret_cast<const decode_row*>(there + decode_at);
  v.logits_from = there + logits_at;
  v.blocks = reinterpret_cast<const prefill_block*>(there + blocks_at);
  v.pages = there + pages_at;
  v.rows = rows;
  v.decodes = decodes;
  v.logits = logits;
  v.block_count = blocks;
  v.block_lines = block_lines;
  v.context = context;
  return v;
}

// Searches the products' algorithms and records the graphs, by steps whose rows all write into the first page.
bool cuda_decoder::warm_up(std::uint32_t decode_rows, std::uint32_t prompt_rows) {
  if (page_count_ == 0) return !d_.failed();
  d_.use();
  const std::uint32_t most = decode_rows + prompt_rows;
  const std::vector<std::int32_t> tokens(most), pages(most / page_tokens + 1);
  const std::vector<std::uint32_t> positions(most);
  std::vector<std::uint32_t> rising(most);
  std::vector<std::int32_t> from(most);
  std::vector<kv_slice> single(most);
  std::iota(from.begin(), from.end(), 0);
  std::iota(rising.begin(), rising.end(), 0);
  for (std::uint32_t i = 0; i < most; ++i) single[i] = {i, 1, 0, pages.data()};
  const auto first = [](auto& all, std::uint32_t n) { return std::span(all).first(n); };
  // Room for all of it first, and for lists of pages twice as long as there are pages: graphs know where it lies.
  const std::size_t words = std::size_t{most} * 16 + 2 * std::size_t{page_count_};
  input_.reserve(words * 4), input_host_.reserve(words * 4);
  make_room(most, *std::lower_bound(std::begin(classes), std::end(classes) - 1, decode_rows));
  // The most rows of each class first: what is quickest for its fewest may be slow for those.
  for (std::uint32_t n = 8; n <= most && !d_.failed(); n += n < 64 ? 8 : 64) {
    const kv_slice slice{0, n, 0, pages.data()};
    const auto last = static_cast<std::int32_t>(n - 1);
    forward({first(tokens, n), first(rising, n), std::span(&slice, 1), std::span(&last, 1)});
  }
  for (const std::uint32_t c : classes) {
    const std::uint32_t n = std::min(c, decode_rows);
    for (int i = 0; i < 3 && !d_.failed(); ++i)  // as it is, recorded, replayed
      forward({first(tokens, n), first(positions, n), first(single, n), first(from, n)});
    if (n == decode_rows) break;
  }
  d_.sync();
  return !d_.failed();
}

bool cuda_decoder::forward(const decoder_step& step) {
  d_.use();
  const auto rows = static_cast<std::uint32_t>(step.tokens.size());
  // A step of decoding alone, each row wanting logits, is one that will come again.
  const bool decoding =
      step.slices.size() == rows && step.logits_from.size() == rows && rows <= std::end(classes)[-1];
  const extent e = extent_of(step, decoding);
  if (!make_room(e.rows, e.logits)) return false;
  const rows_view v = bring(step, e);
  if (d_.failed()) return false;
  if (!decoding) {
    record(v, false);
    return !d_.failed();
  }
  graph& g = graphs_[e.rows];
  if (!g.seen) {
    record(v, true);
    g.seen = true;
    return !d_.failed();
  }
  if (!g.ready) {
    cudaGraph_t made = nullptr;
    WEIR_CUDA(d_, cudaStreamBeginCapture(d_.stream, cudaStreamCaptureModeThreadLocal));
    record(v, true);
    WEIR_CUDA(d_, cudaStreamEndCapture(d_.stream, &made));
    if (!d_.failed()) WEIR_CUDA(d_, cudaGraphInstantiate(&g.ready, made, 0));
    if (made) cudaGraphDestroy(made);
  }
  if (!d_.failed()) WEIR_CUDA(d_, cudaGraphLaunch(g.ready, d_.stream));
  return !d_.failed();
}

void cuda_decoder::record(const rows_view& v, bool decoding) {
  const auto half = s_.head_dim / 2;
  embed(d_, v, static_cast<const bf16*>(s_.embedding.data), s_.hidden, x_.as<float>());
  angles(d_, v, frequencies_.as<float>(), half, cos_.as<float>(), sin_.as<float>());
  const float* bias = nullptr;  // of the layer before: its last product adds to x without one
  for (std::size_t i = 0; i < s_.layers.size(); ++i) {
    layer(i, v, decoding, bias);
    bias = s_.layers[i].down_bias;
  }
  if (v.logits == 0) return;
  norm(d_, x_.as<float>(), bias, v.logits_from, s_.norm, v.logits, s_.hidden, s_.norm_eps,
       normed_.as<bf16>());
  const product p{static_cast<const bf16*>(s_.head.data),
                  s_.vocab,
                  s_.hidden,
                  normed_.as<bf16>(),
                  v.logits,
                  logits_.as<float>(),
                  product_out::f32};
  if (can_stream(d_, p)) return stream_product(d_, p);
  products_.run(p, {}, logits_.as<float>());
}

void cuda_decoder::layer(std::size_t i, const rows_view& v, bool decoding, const float* bias_before) {
  const decoder_layer& w = s_.layers[i];
  const std::size_t half = std::size_t{page_count_} * s_.kv_heads * page_tokens * s_.head_dim;
  const layer_pages pages{pages_ + i * 2 * half, pages_ + i * 2 * half + half};
  const turning turn{w.qkv_bias, w.q_norm, w.k_norm, cos_.as<float>(), sin_.as<float>(), s_.norm_eps};
  const attention_args attention{heads_,          pages,
                                 qkv_.as<bf16>(), attended_.as<bf16>(),
                                 w.window,        1.0f / std::sqrt(static_cast<float>(s_.head_dim))};
  float* x = x_.as<float>();
  bf16* normed = normed_.as<bf16>();

  norm(d_, x, bias_before, nullptr, w.attention_norm, v.rows, s_.hidden, s_.norm_eps, normed);
  multiply(w.qkv, &decoder_layer::qkv, normed, v.rows, qkv_.as<bf16>(), product_out::bf16);
  const bool fresh = decoding && !d_.deterministic;
  if (!fresh) turn_and_write(d_, v, heads_, turn, qkv_.as<bf16>(), pages);
  prefill_attention(d_, v, attention);
  decode_attention(d_, v, attention, turn, fresh, split_);
  multiply(w.out, &decoder_layer::out, attended_.as<bf16>(), v.rows, x, product_out::add_f32);

  norm(d_, x, w.out_bias, nullptr, w.mlp_norm, v.rows, s_.hidden, s_.norm_eps, normed);
  const product fused{static_cast<const bf16*>(w.gate_up.data),
                      2 * s_.inter,
                      s_.hidden,
                      normed,
                      v.rows,
                      inner_.as<bf16>(),
                      product_out::silu_bf16};
  if (!w.gate_up_bias && can_stream(d_, fused)) {
    stream_product(d_, fused);
  } else {
    multiply(w.gate_up, &decoder_layer::gate_up, normed, v.rows, gate_up_.as<bf16>(), product_out::bf16);
    silu_mul_bf16(d_, gate_up_.as<bf16>(), w.gate_up_bias, v.rows, s_.inter, inner_.as<bf16>());
  }
  multiply(w.down, &decoder_layer::down, inner_.as<bf16>(), v.rows, x, product_out::add_f32);
}

void cuda_decoder::multiply(const matrix& w, matrix decoder_layer::*which, const bf16* x, std::uint32_t rows,
                            void* out, product_out kind) {
  const product p{static_cast<const bf16*>(w.data), w.rows, w.cols, x, rows, out, kind};
  if (can_stream(d_, p)) return stream_product(d_, p);
  const int index = which == &decoder_layer::qkv       ? 0
                    : which == &decoder_layer::out     ? 1
                    : which == &decoder_layer::gate_up ? 2
                                                       : 3;
  products_.run(p, samples_[index], kind == product_out::add_f32 ? scratch_.as<float>() : out);
}

bool cuda_decoder::sample(std::span<const decoder_draw> draws, std::span<decoder_result> out) {
  d_.use();
  if (draws.empty()) return !d_.failed();
  std::size_t words = 0;
  for (const decoder_draw& w : draws) words += 2 * w.seen.size() + 2 * w.biases.size() + w.masked.size();
  const std::size_t orders = draws.size() * sizeof(draw_order);
  orders_.reserve(2 * (orders + words * 4));
  orders_host_.reserve(2 * (orders + words * 4));
  saved_.reserve(std::max<std::size_t>(1, 2 * words) * sizeof(float));
  results_.reserve(2 * draws.size() * sizeof(decoder_result));
  if (d_.failed()) return false;
  auto* order = orders_host_.as<draw_order>();
  auto* word = reinterpret_cast<std::uint32_t*>(orders_host_.as<std::byte>() + orders);
  std::uint32_t at = 0;
  for (const decoder_draw& w : draws) {
    draw_order o{w.row,       w.top_k,    w.temperature,
                 w.top_p,     w.min_p,    w.repetition,
                 w.frequency, w.presence, w.uniform,
                 0,           0,          0,
                 0,           0,          0};
    o.seen_at = at;
    o.seen = static_cast<std::uint32_t>(w.seen.size());
    for (const auto& e : w.seen) {
      word[at++] = static_cast<std::uint32_t>(e.id);
      word[at++] = e.in_output;
    }
    o.bias_at = at;
    o.biases = static_cast<std::uint32_t>(w.biases.size());
    for (const auto& e : w.biases) {
      word[at++] = static_cast<std::uint32_t>(e.id);
      word[at++] = std::bit_cast<std::uint32_t>(e.value);
    }
    o.masked_at = at;
    o.masked = static_cast<std::uint32_t>(w.masked.size());
    for (const std::int32_t id : w.masked) word[at++] = static_cast<std::uint32_t>(id);
    *order++ = o;
  }
  WEIR_CUDA(d_, cudaMemcpyAsync(orders_.as<void>(), orders_host_.as<void>(), orders + words * 4,
                                cudaMemcpyHostToDevice, d_.stream));
  sample_rows(d_, orders_.as<draw_order>(), static_cast<std::uint32_t>(draws.size()),
              reinterpret_cast<const std::uint32_t*>(orders_.as<std::byte>() + orders), saved_.as<float>(),
              logits_.as<float>(), s_.vocab, results_.as<decoder_result>());
  d_.sync();
  if (d_.failed()) return false;
  std::copy_n(results_.as<decoder_result>(), draws.size(), out.begin());
  return true;
}

bool cuda_decoder::read_logits(std::uint32_t row, float* to_host) {
  d_.use();
  if (d_.failed()) return false;
  WEIR_CUDA(d_, cudaMemcpyAsync(to_host, logits_.as<float>() + std::size_t{row} * s_.vocab,
                                s_.vocab * sizeof(float), cudaMemcpyDeviceToHost, d_.stream));
  d_.sync();
  return !d_.failed();
}

bool is_rows_of_bf16(const matrix& m) { return m.type == dtype::bf16 && m.cols % 8 == 0 && m.rows % 8 == 0; }

}  // namespace

std::unique_ptr<decoder> make_decoder(void* self, const decoder_shape& s) {
  device& d = of(self);
  const head_shape h{s.heads, s.kv_heads, s.head_dim};
  bool fits = s.page_tokens == page_tokens && attention_supports(d, h) && is_rows_of_bf16(s.embedding) &&
              is_rows_of_bf16(s.head) && s.inter % 8 == 0 && s.hidden * sizeof(float) <= 48u << 10;
  for (const decoder_layer& l : s.layers)
    for (const matrix* m : {&l.qkv, &l.out, &l.gate_up, &l.down}) fits &= is_rows_of_bf16(*m);
  if (!fits || d.failed()) return nullptr;
  return std::make_unique<cuda_decoder>(d, s);
}

}  // namespace weir::kernels::cuda
