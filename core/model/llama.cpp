#include "core/model/llama.h"

#include <cassert>
#include <cmath>

namespace weir::core {
std::uint64_t page_bytes(const model_config& c) noexcept {
  return std::uint64_t{c.layers} * 2 * c.kv_width() * page_tokens * sizeof(float);
}

llama::llama(model_config config, std::vector<token_id> stop_ids, model_weights weights,
             std::shared_ptr<const kernels::backend> backend)
    : config_(std::move(config)),
      weights_(std::move(weights)),
      backend_(std::move(backend)),
      frequencies_(rope_frequencies(config_.rope, config_.head_dim)),
      scratch_(config_.vocab_size) {
  info_.architecture = config_.architecture;
  info_.vocab_size = config_.vocab_size;
  info_.context = config_.context;
  info_.stop_ids = std::move(stop_ids);
  info_.weight_bytes = weights_.memory.size();
  info_.page_bytes = page_bytes(config_);
}

// All but an embedding that is not the head too: of that a step reads a row a token.
std::span<const std::byte> llama::weights_of_a_step() const noexcept {
  const std::span<const std::byte> all(weights_.memory.data(), weights_.memory.size());
  return config_.tied ? all : all.subspan(reinterpret_cast<const std::byte*>(weights_.layers.front().attention_norm) - all.data());
}

result<void> llama::allocate_pages(std::uint32_t count) {
  std::uint64_t bytes = 0;
  if (__builtin_mul_overflow(std::uint64_t{count}, info_.page_bytes, &bytes))
    return make_error(errc::does_not_fit, "{} pages of {} bytes are more than 64 bits can count", count,
                      info_.page_bytes);
  pages_ = kernels::buffer(backend_, bytes);
  if (!pages_.data())
    return make_error(errc::does_not_fit, "no memory for keys and values: {} bytes, {} are free", bytes,
                      backend_->free_bytes(backend_->self));
  page_count_ = count;
  return {};
}

result<void> llama::forward(const batch& b) {
  const auto rows = static_cast<std::uint32_t>(b.tokens.size());
  if (!make_room(rows, b.logits_rows))
    return make_error(errc::does_not_fit, "no memory for the activations of {} rows, {} bytes are free", rows,
                      backend_->free_bytes(backend_->self));
  copy_pages(b.copies);
  place(b);
  backend_->begin_step(backend_->self);
  backend_->run(kernels::gather{weights_.embedding, b.tokens, x_.floats()});
  backend_->run(kernels::rotary_angles{positions_, frequencies_, cos_.floats(), sin_.floats()});
  for (std::uint32_t layer = 0; layer < config_.layers; ++layer) {
    attend(layer, rows);
    feed_forward(layer, rows);
  }
  compute_logits(b.logits_rows);
  backend_->end_step(backend_->self);
  return {};
}

void llama::place(const batch& b) {
  positions_.clear();
  slices_.clear();
  logits_from_.clear();
  for (const batch_slice& s : b.slices) {
    assert(s.first_row == positions_.size() && s.rows >= 1);
    for (std::uint32_t i = 0; i < s.rows; ++i) positions_.push_back(s.position + i);
    slices_.push_back({s.first_row, s.rows, s.position, s.pages.data()});
    if (s.logits_row >= 0) logits_from_.push_back(static_cast<std::int32_t>(s.first_row + s.rows - 1));
  }
  assert(positions_.size() == b.tokens.size() && logits_from_.size() == b.logits_rows);
}

// Grows, never shrinks: what is past the step's rows is left over from a larger one.
bool llama::make_room(std::size_t rows, std::size_t logits_rows) {
  const auto grow = [&](kernels::buffer& b, std::size_t elements) {
    if (b.size() >= elements * sizeof(float)) return true;
    b = {};  // first, so that both need not fit
    b = kernels::buffer(backend_, elements * sizeof(float));
    return b.data() != nullptr;
  };
  const model_config& c = config_;
  const std::size_t angles = rows * c.head_dim / 2, logits = logits_rows * c.vocab_size;
  if (!backend_->on_host && read_back_.size() < logits) read_back_.resize(logits);
  return grow(x_, rows * c.hidden) && grow(normed_, rows * c.hidden) && grow(cos_, angles) &&
         grow(sin_, angles) && grow(qkv_, rows * c.qkv_width()) && grow(attended_, rows * c.q_width()) &&
         grow(gate_up_, rows * 2 * c.inter) && grow(inner_, rows * c.inter) &&
         grow(branch_, rows * c.hidden) && grow(logits_, logits);
}

void llama::attend(std::uint32_t layer, std::uint32_t rows) {
  const layer_weights& w = weights_.layers[layer];
  const model_config& c = config_;
  normalise(w.attention_norm, rows);
  multiply(w.qkv, normed_, qkv_, rows);
  float* q = qkv_.floats();
  float* k = q + c.q_width();
  const float* v = k + c.kv_width();
  if (c.qk_norm) {
    backend_->run(kernels::head_norm{q, w.q_norm, rows, c.qkv_width(), c.heads, c.head_dim, c.norm_eps});
    backend_->run(kernels::head_norm{k, w.k_norm, rows, c.qkv_width(), c.kv_heads, c.head_dim, c.norm_eps});
  }
  // Queries and keys lie side by side, so their heads turn as one.
  backend_->run(kernels::rotary{q, cos_.floats(), sin_.floats(), rows, c.qkv_width(), c.heads + c.kv_heads,
                                c.head_dim});
  const kernels::kv_pages kv = pages_of(layer);
  const float scale = 1.0f / std::sqrt(static_cast<float>(c.head_dim));
  backend_->run(kernels::kv_write{k, v, c.qkv_width(), kv, slices_});
  backend_->run(kernels::attention{q, c.qkv_width(), c.heads, kv, slices_, c.windows[layer], scale,
                                   attended_.floats()});
  multiply(w.out, attended_, branch_, rows);
  backend_->run(kernels::add{x_.floats(), branch_.floats(), std::size_t{rows} * c.hidden});
}

void llama::feed_forward(std::uint32_t layer, std::uint32_t rows) {
  const layer_weights& w = weights_.layers[layer];
  normalise(w.mlp_norm, rows);
  multiply(w.gate_up, normed_, gate_up_, rows);
  backend_->run(kernels::silu_mul{gate_up_.floats(), inner_.floats(), rows, config_.inter});
  multiply(w.down, inner_, branch_, rows);
  backend_->run(kernels::add{x_.floats(), branch_.floats(), std::size_t{rows} * config_.hidden});
}

// Only the rows that somebody will draw from.
void llama::compute_logits(std::uint32_t rows) {
  logits_rows_ = rows;
  if (rows == 0) return;
  const auto total = static_cast<std::uint32_t>(positions_.size());
  const kernels::matrix stream{x_.floats(), kernels::dtype::f32, total, config_.hidden};
  backend_->run(kernels::gather{stream, logits_from_, branch_.floats()});
  backend_->run(kernels::rms_norm{branch_.floats(), weights_.norm, normed_.floats(), rows, config_.hidden,
                                  config_.norm_eps});
  backend_->run(kernels::linear{weights_.head, nullptr, normed_.floats(), logits_.floats(), rows});
  if (!backend_->on_host)
    backend_->do_download(backend_->self, read_back_.data(), logits_.data(),
                          std::uint64_t{rows} * config_.vocab_size * sizeof(float));
}

void llama::normalise(const float* weight, std::uint32_t rows) {
  backend_->run(
      kernels::rms_norm{x_.floats(), weight, normed_.floats(), rows, config_.hidden, config_.norm_eps});
}

void llama::multiply(const linear_weight& by, const kernels::buffer& x, const kernels::buffer& out,
                     std::uint32_t rows) {
  backend_->run(kernels::linear{by.w, by.bias, x.floats(), out.floats(), rows});
}

kernels::kv_pages llama::pages_of(std::uint32_t layer) const noexcept {
  const std::size_t half = std::size_t{page_count_} * config_.kv_width() * page_tokens;
  float* keys = reinterpret_cast<float*>(pages_.data()) + layer * 2 * half;
  return {keys, keys + half, config_.kv_heads, config_.head_dim, page_tokens};
}

void llama::copy_pages(std::span<const page_copy> copies) {
  const std::size_t page = std::size_t{config_.kv_width()} * page_tokens;  // elements of keys, and of values
  for (const page_copy& c : copies) {
    for (std::uint32_t layer = 0; layer < config_.layers; ++layer) {
      const kernels::kv_pages kv = pages_of(layer);
      for (float* half : {kv.keys, kv.values}) {
        const float* from = half + static_cast<std::size_t>(c.from) * page;
        float* to = half + static_cast<std::size_t>(c.to) * page;
        backend_->do_copy(backend_->self, to, from, page * sizeof(float));
      }
    }
  }
}

result<void> llama::sample(std::span<const draw> draws, std::span<drawn> out) {
  for (std::size_t i = 0; i < draws.size(); ++i) {
    const draw& d = draws[i];
    const auto id = d.from->pick(logits(d.logits_row), d.position, scratch_);
    out[i] = {id.value_or(-1), !id};
  }
  return {};
}

std::span<const float> llama::logits(std::uint32_t row) const {
  assert(row < logits_rows_);
  const float* all = backend_->on_host ? logits_.floats() : read_back_.data();
  return {all + std::size_t{row} * config_.vocab_size, config_.vocab_size};
}

}  // namespace weir::core
