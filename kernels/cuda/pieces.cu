// Each piece runs many times between two events, chained as in a step, over weights and pages that are larger
// than any cache.
#include "kernels/cuda/pieces.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <set>

#include "kernels/cuda/decoder_room.h"
#include "kernels/cuda/device/grown.h"
#include "kernels/cuda/experts/experts.h"
#include "kernels/cuda/experts/route.h"
#include "kernels/cuda/layers.h"
#include "kernels/cuda/products/launch_product.h"
#include "kernels/cuda/random.h"
#include "kernels/cuda/step_rows.h"
#include "kernels/traffic.h"

namespace weir::kernels::cuda {
namespace {

constexpr std::uint64_t past_caches = 512u << 20;  // bytes, more than any cache holds

// Makes numbers in e4m3 of random bytes, four in a word: without one bit of the exponent there is no NaN.
__global__ void clear_nan(std::uint32_t* words, std::uint64_t count) {
  for (std::uint64_t i = blockIdx.x * std::uint64_t{blockDim.x} + threadIdx.x; i < count;
       i += std::uint64_t{gridDim.x} * blockDim.x)
    words[i] &= 0xf7f7f7f7;
}

class bench {
 public:
  bench(device& d, const decoder_shape& s, std::uint32_t rows, std::uint32_t context)
      : d_(d),
        s_(s),
        hidden_(s.model.hidden),
        mlp_(s.model.layers.back().mlp),
        inter_(dense_part(mlp_).inter),
        vocab_(s.model.vocab),
        type_(s.embedding.type),
        heads_{mixer_of(s.model).heads, mixer_of(s.model).kv_heads, mixer_of(s.model).head_dim,
               s.kv == kv_type::fp8  ? page_type::fp8
               : s.kv == kv_type::q8 ? page_type::q8
                                     : elements_of(type_)},
        rows_(rows),
        context_(context) {
    WEIR_CUDA(d_, cudaEventCreate(&from_));
    WEIR_CUDA(d_, cudaEventCreate(&to_));
    // The rows as a deterministic device pads them.
    const std::uint64_t r = (rows + products::unit - 1) / products::unit * products::unit;
    const std::uint64_t widest = std::max({2 * inter_, heads_.width(), hidden_});
    const std::uint64_t experts = std::uint64_t{mlp_.router.experts} * mlp_.width() * hidden_;
    weights_bytes_ =
        std::max({past_caches, std::uint64_t{std::max(vocab_, 2 * inter_)} * std::max(hidden_, inter_) * 2,
                  mlp_.is_mixture() ? 2 * experts + (256u << 10) : 0});
    fill(weights_, type_, weights_bytes_ / 2);
    fill(x_, dtype::f32, r * widest);
    fill(in_, type_, r * widest);
    fill(norm_, dtype::f32, hidden_);
    fill(angles_, dtype::f32, r * heads_.head_dim);
    out_.reserve(r * widest * sizeof(float));
    logits_.reserve(r * std::max(vocab_, hidden_) * sizeof(float));
    const split_room room = split_room_of(d, heads_);
    parts_.reserve(room.floats * sizeof(float));
    arrived_.reserve(room.counters * sizeof(unsigned));
    scratch_.parts = parts_.as<float>();
    scratch_.arrived = arrived_.as<unsigned>();
  }
  ~bench() {
    d_.sync();
    if (from_) cudaEventDestroy(from_);
    if (to_) cudaEventDestroy(to_);
  }

  std::vector<decoder_piece> run() {
    const auto h = hidden_;
    const std::uint32_t padded = (rows_ + products::unit - 1) / products::unit * products::unit;
    const std::uint32_t m = d_.deterministic ? padded : rows_;
    time("norm", {(4 + 2) * std::uint64_t{m} * h, 4 * std::uint64_t{m} * h}, [&](std::size_t) {
      norm(d_, type_, x_.as<float>(), {}, nullptr, {{norm_.as<float>()}, 1e-5f}, m, h, out_.as<element>());
    });
    multiply("product qkv", heads_.width(), h, m, product_out::element);
    multiply("product out", h, heads_.heads * heads_.head_dim, m, product_out::add_f32);
    if (mlp_.is_mixture()) mix(m);
    if (inter_ != 0) feed(m);
    multiply("product head", vocab_, h, m, product_out::f32);
    attend("attention decode", rows_, 1);
    if (rows_ > 1) attend("attention prefill", 1, rows_);
    return d_.failed() ? std::vector<decoder_piece>() : std::move(pieces_);
  }

 private:
  // The feed-forward of a layer, or the shared expert of a mixture.
  void feed(std::uint32_t m) {
    const std::uint32_t h = hidden_;
    const product fused{type_, nullptr, 2 * inter_, h, in_.as<void>(), m, nullptr, product_out::gated};
    if (function_for(d_, fused) != product_function::none) {
      multiply("product gate_up, silu", 2 * inter_, h, m, product_out::gated);
    } else {
      multiply("product gate_up", 2 * inter_, h, m, product_out::element);
      time("silu", {3 * 2 * std::uint64_t{m} * inter_, 5 * std::uint64_t{m} * inter_}, [&](std::size_t) {
        activate_rows(d_, type_, in_.as<element>(), nullptr, m, {inter_}, out_.as<element>());
      });
    }
    multiply("product down", h, inter_, m, mlp_.is_mixture() ? product_out::f32 : product_out::add_f32);
  }

  // A mixture of experts. The experts are those that rows of random numbers choose.
  void mix(std::uint32_t m) {
    const expert_router& by = mlp_.router;
    const std::uint32_t slots = m * by.chosen;
    const expert_room room = expert_room_of(s_.model, m);
    grown memory(d_), made(d_), inner(d_), router(d_);
    fill(router, dtype::f32, std::uint64_t{mlp_.router_rows()} * hidden_);
    fill(inner, type_, std::uint64_t{slots} * mlp_.inter);
    memory.reserve(room.lists.bytes);
    made.reserve(room.made * sizeof(float));
    if (d_.failed() || !memory.holds(room.lists.bytes) || !made.holds(room.made * sizeof(float))) return;
    const expert_lists lists = lists_at(memory.as<std::byte>(), room.lists);
    expert_router how = by;
    how.choice_bias = false;
    const route choose{nullptr,   router.as<float>(), nullptr, nullptr, how,
                       lists.ids, lists.weights,      nullptr, m,       hidden_};
    traffic of_route = traffic_of(choose);
    of_route.bytes -= 2 * std::uint64_t{m} * hidden_;  // the rows are elements
    time("router", of_route, [&](std::size_t) { route_rows(d_, choose, in_.as<element>(), type_, nullptr); });
    std::vector<std::int32_t> ids(slots);
    WEIR_CUDA(d_, cudaMemcpyAsync(ids.data(), lists.ids, slots * sizeof(std::int32_t), cudaMemcpyDeviceToHost,
                                  d_.stream));
    d_.sync();
    const std::uint64_t used = std::set(ids.begin(), ids.end()).size();
    const expert_division division = divide_experts(slots, by.experts, true, d_.deterministic);
    if (!division.single)
      time("experts order", {8 * std::uint64_t{slots}, 0},
           [&](std::size_t) { order_slots(d_, lists, slots, by.experts, division); });
    const auto multiply = [&](const char* name, expert_product p, std::uint32_t n, std::uint32_t k,
                              std::uint64_t out_bytes) {
      const std::uint64_t each = (std::uint64_t{n} * k * 2 + 255) / 256 * 256;
      const std::uint64_t all = each * by.experts, copies = std::max<std::uint64_t>(1, weights_bytes_ / all);
      p.slots = slots;
      time(name,
           {used * n * k * 2 + std::uint64_t{slots / p.share} * k * 2 + slots * out_bytes,
            2 * std::uint64_t{slots} * n * k},
           [&](std::size_t i) {
             p.w = {{weights_.as<std::byte>() + i % copies * all, type_, n, k}, by.experts, each};
             multiply_experts(d_, type_, lists, p, division);
           });
    };
    expert_product first{{}, nullptr, in_.as<element>(), inner.as<void>(), slots, by.chosen};
    first.kind = mlp_.gated ? expert_out::gated : expert_out::alone;
    first.f = mlp_.kind;
    first.limit = mlp_.limit;
    multiply("experts gate_up", first, mlp_.width(), hidden_, 2 * std::uint64_t{mlp_.inter});
    multiply("experts down", {{}, nullptr, inner.as<element>(), made.as<void>()}, hidden_, mlp_.inter,
             4 * std::uint64_t{hidden_});
    pending_sum sum;
    sum.experts = {made.as<float>(), lists.weights, nullptr, nullptr, by.chosen};
    time("experts added, norm", {(4 + 4 + 2 + 4 * by.chosen) * std::uint64_t{m} * hidden_, 0},
         [&](std::size_t) {
           norm(d_, type_, x_.as<float>(), sum, nullptr, {{norm_.as<float>()}, 1e-5f}, m, hidden_,
                out_.as<element>());
         });
  }

  void fill(grown& memory, dtype type, std::uint64_t elements) {
    memory.reserve(elements * size_of(type));
    const matrix all{memory.as<void>(), type, static_cast<std::uint32_t>(elements / 8), 8};
    if (!d_.failed()) fill_random(&d_, all, 0, all.rows, false, ++seed_);
  }

  // Times a product by the kernel that cuda_decoder::multiply would use.
  void multiply(const char* name, std::uint32_t n, std::uint32_t k, std::uint32_t m, product_out kind) {
    const std::uint64_t bytes = std::uint64_t{n} * k * 2, each = (bytes + 255) / 256 * 256;
    std::vector<const void*> w;
    for (std::uint64_t at = 0; at + bytes <= weights_bytes_; at += each)
      w.push_back(weights_.as<std::byte>() + at);
    const bool adds = kind == product_out::add_f32, halved = kind == product_out::gated;
    void* out = adds ? x_.as<void>() : kind == product_out::f32 ? logits_.as<void>() : out_.as<void>();
    const std::uint64_t size = adds ? 8 : kind == product_out::f32 ? 4 : 2;
    const traffic moved{bytes + std::uint64_t{m} * k * 2 + std::uint64_t{m} * (halved ? n / 2 : n) * size,
                        2 * std::uint64_t{m} * n * k};
    time(name, moved, [&](std::size_t i) {
      const product p{type_, w[i % w.size()], n, k, in_.as<void>(), m, out, kind};
      const product_function by = function_for(d_, p);
      if (by != product_function::blas) return launch_product(d_, by, p);
      products_.run(p, w, adds ? out_.as<void>() : out);
    });
  }

  // Times attention of `sequences` sequences of `rows` rows each, which end at the last position of the
  // context.
  void attend(const char* name, std::uint32_t sequences, std::uint32_t rows) {
    const std::uint32_t length = std::max(context_, rows), each = (length + page_tokens - 1) / page_tokens;
    std::vector<std::int32_t> pages(sequences * each), tokens(sequences * rows);
    std::iota(pages.begin(), pages.end(), 0);
    std::vector<std::uint32_t> positions;
    std::vector<kv_slice> slices;
    for (std::uint32_t i = 0; i < sequences; ++i) {
      slices.push_back({i * rows, rows, length - rows, pages.data() + i * each});
      for (std::uint32_t j = 0; j < rows; ++j) positions.push_back(length - rows + j);
    }
    const std::uint64_t half = std::uint64_t{pages.size()} * heads_.kv_heads * heads_.page_bytes();
    const std::uint64_t copies = std::max<std::uint64_t>(1, past_caches / (half * 2));
    grown kv(d_);
    fill(kv, type_, copies * half);
    if (heads_.pages == page_type::fp8)
      clear_nan<<<1024, 256, 0, d_.stream>>>(kv.as<std::uint32_t>(), copies * half / 2);
    step_rows here(d_, heads_);
    bool moved = false;
    const decoder_step step{tokens, positions, slices, {}};
    const rows_view v = here.write(step, here.extent_of(step, false), moved);
    if (!v.tokens) return;
    here.copy_in(false);
    d_.sync();
    const rotary_args rotary{nullptr, nullptr, nullptr, angles_.as<float>(), angles_.as<float>(), 1e-5f};
    const bool fresh = rows == 1 && !d_.deterministic && takes_fresh(heads_);
    // The traffic is that of the single operation, whose queries and outputs have 4 bytes instead of 2.
    const kv_pages stored{nullptr,         nullptr,     heads_.kv_heads,
                          heads_.head_dim, page_tokens, s_.kv.value_or(kv_type::bf16)};
    traffic all = traffic_of(attention{nullptr, 0, heads_.heads, stored, slices, {}, nullptr});
    all.bytes -= 4 * positions.size() * heads_.heads * heads_.head_dim;
    time(name, all, [&](std::size_t i) {
      unsigned char* keys = kv.as<unsigned char>() + i % copies * 2 * half;
      const attention_args a{heads_,
                             type_,
                             {keys, keys + half},
                             in_.as<element>(),
                             out_.as<element>(),
                             {0, 1.0f / std::sqrt(static_cast<float>(heads_.head_dim))}};
      prefill_attention(d_, v, a);
      decode_attention(d_, v, a, rotary, fresh, scratch_);
    });
  }

  // Runs the piece once, so that algorithms are searched; a few times, to estimate how long it takes; and
  // then as often as fits into about 10 ms, which is measured.
  template <class F>
  void time(const char* name, traffic moved, F&& piece) {
    if (d_.failed()) return;
    piece(0);
    d_.sync();
    float ms = run(4, piece);
    const std::size_t count =
        std::clamp<std::size_t>(static_cast<std::size_t>(10.0f / std::max(ms / 4, 1e-3f)), 8, 500);
    ms = run(count, piece);
    pieces_.push_back({name, rows_, ms * 1e-3 / static_cast<double>(count), moved.bytes, moved.flops});
  }
  template <class F>
  float run(std::size_t count, F&& piece) {
    float ms = 0;
    WEIR_CUDA(d_, cudaEventRecord(from_, d_.stream));
    for (std::size_t i = 0; i < count && !d_.failed(); ++i) piece(i);
    WEIR_CUDA(d_, cudaEventRecord(to_, d_.stream));
    d_.sync();
    if (!d_.failed()) WEIR_CUDA(d_, cudaEventElapsedTime(&ms, from_, to_));
    return ms;
  }

  device& d_;
  const decoder_shape& s_;
  const std::uint32_t hidden_;
  const feed_forward mlp_;
  const std::uint32_t inter_, vocab_;
  const dtype type_;
  const head_shape heads_;
  const std::uint32_t rows_, context_;
  products products_{d_};
  grown weights_{d_}, x_{d_}, in_{d_}, norm_{d_}, angles_{d_}, out_{d_}, logits_{d_}, parts_{d_},
      arrived_{d_};
  std::uint64_t weights_bytes_ = 0, seed_ = 0;
  split_scratch scratch_;
  cudaEvent_t from_ = nullptr, to_ = nullptr;
  std::vector<decoder_piece> pieces_;
};

}  // namespace

std::vector<decoder_piece> time_decoder(void* self, const decoder_shape& s, std::uint32_t rows,
                                        std::uint32_t context) {
  device& d = of(self);
  const bool stores = !s.kv || *s.kv != kv_type::f32;
  if (d.failed() || !why_not(s.model).empty() || !is_element(s.embedding.type) || !stores) return {};
  return bench(d, s, rows, context).run();
}

}  // namespace weir::kernels::cuda
