#include "core/model/llama.h"

#include <array>
#include <cassert>
#include <cmath>

#include "core/sample/steps.h"

namespace weir::core {
namespace {

kernels::decoder_shape shape_of(const model_config& c, const model_weights& w, kv_choice kv) {
  kernels::decoder_shape s;
  s.hidden = c.hidden;
  s.inter = c.inter;
  s.heads = c.heads;
  s.kv_heads = c.kv_heads;
  s.head_dim = c.head_dim;
  s.vocab = c.vocab_size;
  s.page_tokens = page_tokens;
  s.norm_eps = c.norm_eps;
  s.frequencies = rope_frequencies(c.rope, c.head_dim);
  s.embedding = w.embedding;
  s.norm = w.norm;
  s.head = w.head;
  s.kv = kv;
  for (std::size_t i = 0; i < w.layers.size(); ++i) {
    const layer_weights& l = w.layers[i];
    s.layers.push_back({.attention_norm = l.attention_norm,
                        .qkv = l.qkv.w,
                        .qkv_rest = l.qkv.rest,
                        .q_norm = l.q_norm,
                        .k_norm = l.k_norm,
                        .out = l.out.w,
                        .mlp_norm = l.mlp_norm,
                        .gate_up = l.gate_up.w,
                        .gate_up_rest = l.gate_up.rest,
                        .down = l.down.w,
                        .qkv_bias = l.qkv.bias,
                        .out_bias = l.out.bias,
                        .gate_up_bias = l.gate_up.bias,
                        .down_bias = l.down.bias,
                        .rule = c.rule(i)});
  }
  return s;
}

std::unique_ptr<kernels::decoder> make_whole(const model_config& c, const model_weights& w,
                                             const kernels::backend& on, kv_choice kv) {
  return on.make_decoder ? on.make_decoder(on.self, shape_of(c, w, kv)) : nullptr;
}

// The elements of llama's buffers of activations, in the order of its members.
std::array<std::uint64_t, 10> activations_of(const model_config& c, std::uint64_t rows,
                                             std::uint64_t logits_rows) {
  const std::uint64_t angles = rows * c.head_dim / 2;
  return {
      rows * c.hidden,    rows * c.hidden,    angles,         angles,          rows * c.qkv_width(),
      rows * c.q_width(), rows * 2 * c.inter, rows * c.inter, rows * c.hidden, logits_rows * c.vocab_size};
}

// Why nothing was drawn from a row: it is not sound, or what the job asks for leaves nothing of it.
drawn no_token(std::span<const float> row) {
  const bool fine = sound(row);
  return {.fault = !fine, .nothing_left = fine};
}

}  // namespace

std::uint64_t page_bytes(const model_config& c, kernels::kv_type kv) noexcept {
  return std::uint64_t{c.layers} * 2 * c.kv_heads * page_tokens * kernels::kv_row_bytes(kv, c.head_dim);
}

result<std::uint64_t> page_bytes(const model_config& c, const model_weights& w, const kernels::backend& on,
                                 kv_choice kv) {
  const auto whole = [&](kv_choice asked) {
    return on.decoder_page_bytes ? on.decoder_page_bytes(on.self, shape_of(c, w, asked)) : 0;
  };
  if (const std::uint64_t bytes = whole(kv); bytes > 0) return bytes;
  if (!kv || (on.stores_kv && on.stores_kv(on.self, *kv)))
    return page_bytes(c, kv.value_or(kernels::kv_type::f32));
  const std::string why =
      whole({}) == 0 ? "this model runs by single operations, which store f32 alone: auto"
      : *kv == kernels::kv_type::q8
          ? fmt::format("heads have a size that is a multiple of 32, and this model's have {}", c.head_dim)
          : "this model's keys and values are of another 16-bit type, which is auto";
  return bad_param("kv-type", "--kv-type {}: on {} {}", kernels::name(*kv), on.name, why);
}

step_needs step_needs_of(const model_config& c, const model_weights& w, const kernels::backend& on,
                         kv_choice kv, std::uint32_t max_batch) {
  // Code and what the driver keeps beside it, then a graph: 0.92 MB were measured for one of 300 kernels.
  constexpr std::uint64_t code_bytes = 64u << 20, graph_bytes = 1u << 20;
  step_needs out;
  out.workspaces = on.own_bytes;
  if (!on.on_host) out.runtime = code_bytes;
  const kernels::decoder_shape shape = shape_of(c, w, kv);
  if (on.decoder_needs_of && on.decoder_page_bytes(on.self, shape) > 0) {
    const auto needs = on.decoder_needs_of(on.self, shape, max_batch, pages_for(c.context));
    out.prompt_rows = needs.prompt_rows;
    out.workspaces += needs.workspaces;
    out.runtime += needs.graphs * graph_bytes;
    return out;
  }
  out.prompt_rows = model_info().prompt_rows;
  for (const std::uint64_t elements :
       activations_of(c, std::uint64_t{max_batch} + out.prompt_rows, max_batch))
    out.workspaces += elements * sizeof(float);
  return out;
}

llama::llama(model_config config, std::vector<token_id> stop_ids, model_weights weights,
             std::shared_ptr<const kernels::backend> backend, kv_choice kv)
    : config_(std::move(config)),
      weights_(std::move(weights)),
      backend_(std::move(backend)),
      kv_(kv.value_or(kernels::kv_type::f32)),
      frequencies_(rope_frequencies(config_.rope, config_.head_dim)),
      scratch_(config_.vocab_size),
      whole_(make_whole(config_, weights_, *backend_, kv)) {
  info_.architecture = config_.architecture;
  info_.vocab_size = config_.vocab_size;
  info_.context = config_.context;
  info_.stop_ids = std::move(stop_ids);
  info_.weight_bytes = weights_.memory.size();
  info_.runs_ahead = whole_ != nullptr;
  if (whole_) info_.prompt_rows = whole_->prompt_rows();
  info_.page_bytes = whole_ ? whole_->page_bytes() : page_bytes(config_, kv_);
  info_.kv_type = whole_ ? whole_->kv_type() : kernels::name(kv_);
}

// All weights without the embedding, of which a step reads one row for each token. If the embedding is also
// the head, all weights.
std::span<const std::byte> llama::weights_of_a_step() const noexcept {
  const std::span<const std::byte> all(weights_.memory.data(), weights_.memory.size());
  return config_.tied
             ? all
             : all.subspan(reinterpret_cast<const std::byte*>(weights_.layers.front().attention_norm) -
                           all.data());
}

result<void> llama::allocate_pages(std::uint32_t count) {
  std::uint64_t bytes = 0;
  if (__builtin_mul_overflow(std::uint64_t{count}, info_.page_bytes, &bytes))
    return make_error(errc::does_not_fit, "{} pages of {} bytes are more than 64 bits can count", count,
                      info_.page_bytes);
  pages_ = {};  // first, so that old and new pages need not fit together
  pages_ = kernels::buffer(backend_, bytes);
  if (!pages_.data())
    return make_error(errc::does_not_fit, "no memory for keys and values: {} bytes, {} are free", bytes,
                      backend_->free_bytes(backend_->self));
  page_count_ = count;
  if (whole_) whole_->set_pages(pages_.data(), count);
  return {};
}

result<void> llama::allocate_host_pages(std::uint32_t count) {
  const std::uint64_t bytes = count * info_.page_bytes;
  host_pages_ = {};
  host_pages_ = kernels::host_buffer(backend_, bytes);
  if (count > 0 && !host_pages_.data())
    return make_error(errc::does_not_fit, "no host memory for {} pages: {} bytes, which the device can reach",
                      count, bytes);
  return {};
}

result<void> llama::warm_up(std::uint32_t max_batch, std::uint32_t prompt_rows) {
  const std::uint32_t rows = max_batch + prompt_rows;
  if (!whole_) return make_room(rows, max_batch) ? result<void>() : no_room(rows, errc::does_not_fit);
  const std::uint32_t longest = pages_for(info_.context);
  if (!whole_->warm_up(max_batch, prompt_rows, longest)) return refusal(errc::does_not_fit);
  // Loads the kernel that copies pages: only now, when the decoder knows that there is memory for code.
  const page_copy nowhere{0, 0};
  copy_pages({&nowhere, 1});
  return device_state();
}

result<void> llama::forward(const batch& b) {
  const auto rows = static_cast<std::uint32_t>(b.tokens.size());
  if (whole_) {
    copy_pages(b.copies);
    place(b);
    logits_rows_ = b.logits_rows;
    if (!whole_->forward({b.tokens, positions_, slices_, logits_from_})) return refusal(errc::unavailable);
    return {};
  }
  if (!make_room(rows, b.logits_rows)) return no_room(rows, errc::unavailable);
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
  return device_state();
}

result<void> llama::device_state() const {
  if (const char* why = backend_->fault ? backend_->fault(backend_->self) : nullptr)
    return make_error(errc::internal, "the device failed: {}", why);
  return {};
}

// `code`: does_not_fit while the model is loaded; later it is the server's fault and no request's.
result<void> llama::no_room(std::uint32_t rows, errc code) const {
  return make_error(code, "no memory for the activations of {} rows, {} bytes are free", rows,
                    backend_->free_bytes(backend_->self));
}

// Why the decoder returned false: the device failed, or memory is short.
result<void> llama::refusal(errc code) const {
  if (auto ok = device_state(); !ok) return ok;
  return make_error(code, "no memory for what a step computes in, {} bytes are free",
                    backend_->free_bytes(backend_->self));
}

void llama::place(const batch& b) {
  positions_.resize(b.tokens.size());
  slices_.resize(b.slices.size());
  logits_from_.resize(b.logits_rows);
  std::uint32_t* position = positions_.data();
  kernels::kv_slice* slice = slices_.data();
  for (const batch_slice& s : b.slices) {
    assert(position == positions_.data() + s.first_row && s.rows >= 1);
    for (std::uint32_t i = 0; i < s.rows; ++i) *position++ = s.position + i;
    slice->first_row = s.first_row;
    slice->rows = s.rows;
    slice->position = s.position;
    slice->pages = s.pages.data();
    ++slice;
    if (s.logits_row >= 0)
      logits_from_[static_cast<std::size_t>(s.logits_row)] =
          static_cast<std::int32_t>(s.first_row + s.rows - 1);
    for (std::uint32_t i = 0; i < s.scored; ++i)
      logits_from_[s.scored_logits + i] = static_cast<std::int32_t>(s.first_row + s.first_scored + i);
  }
  assert(position == positions_.data() + positions_.size());
}

// Buffers grow and never shrink: rows behind those of the step are left over from a larger step.
bool llama::make_room(std::size_t rows, std::size_t logits_rows) {
  const auto grow = [&](kernels::buffer& b, std::size_t elements) {
    if (b.size() >= elements * sizeof(float)) return true;
    b = {};  // first, so that the old buffer and the new one need not fit together
    b = kernels::buffer(backend_, elements * sizeof(float));
    return b.data() != nullptr;
  };
  const auto sizes = activations_of(config_, rows, logits_rows);
  if (!backend_->on_host && read_back_.size() < sizes.back()) read_back_.resize(sizes.back());
  kernels::buffer* const all[] = {&x_,        &normed_,  &cos_,   &sin_,    &qkv_,
                                  &attended_, &gate_up_, &inner_, &branch_, &logits_};
  for (std::size_t i = 0; i < sizes.size(); ++i)
    if (!grow(*all[i], sizes[i])) return false;
  return true;
}

std::uint64_t llama::activation_bytes() const noexcept {
  std::uint64_t sum = 0;
  for (const kernels::buffer* b :
       {&x_, &normed_, &cos_, &sin_, &qkv_, &attended_, &gate_up_, &inner_, &branch_, &logits_})
    sum += b->size();
  return sum;
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
  // Queries and keys lie side by side, so one operation rotates the heads of both.
  backend_->run(kernels::rotary{q, cos_.floats(), sin_.floats(), rows, c.qkv_width(), c.heads + c.kv_heads,
                                c.head_dim});
  const kernels::kv_pages kv = pages_of(layer);
  backend_->run(kernels::kv_write{k, v, c.qkv_width(), kv, slices_});
  backend_->run(
      kernels::attention{q, c.qkv_width(), c.heads, kv, slices_, c.rule(layer), attended_.floats()});
  multiply(w.out, attended_, branch_, rows);
  backend_->run(kernels::add{x_.floats(), branch_.floats(), std::size_t{rows} * c.hidden});
}

void llama::feed_forward(std::uint32_t layer, std::uint32_t rows) {
  const layer_weights& w = weights_.layers[layer];
  normalise(w.mlp_norm, rows);
  multiply(w.gate_up, normed_, gate_up_, rows);
  backend_->run(kernels::activate{gate_up_.floats(), inner_.floats(), rows, config_.inter});
  multiply(w.down, inner_, branch_, rows);
  backend_->run(kernels::add{x_.floats(), branch_.floats(), std::size_t{rows} * config_.hidden});
}

// Computes the logits of only those rows that are drawn from or scored.
void llama::compute_logits(std::uint32_t rows) {
  logits_rows_ = rows;
  if (rows == 0) return;
  const auto total = static_cast<std::uint32_t>(positions_.size());
  const kernels::matrix stream{x_.floats(), kernels::dtype::f32, total, config_.hidden};
  backend_->run(kernels::gather{stream, logits_from_, branch_.floats()});
  backend_->run(kernels::row_norm{branch_.floats(), weights_.norm, normed_.floats(), rows, config_.hidden,
                                  config_.norm_eps});
  backend_->run(kernels::linear{weights_.head, nullptr, normed_.floats(), logits_.floats(), rows});
  if (!backend_->on_host)
    backend_->do_download(backend_->self, read_back_.data(), logits_.data(),
                          std::uint64_t{rows} * config_.vocab_size * sizeof(float));
}

void llama::normalise(const float* weight, std::uint32_t rows) {
  backend_->run(
      kernels::row_norm{x_.floats(), weight, normed_.floats(), rows, config_.hidden, config_.norm_eps});
}

void llama::multiply(const linear_weight& by, const kernels::buffer& x, const kernels::buffer& out,
                     std::uint32_t rows) {
  std::uint32_t width = by.w.rows, first = 0;
  for (const kernels::matrix& w : by.rest) width += w.rows;
  const auto part = [&](const kernels::matrix& w) {
    backend_->run(kernels::linear{w, by.bias ? by.bias + first : nullptr, x.floats(), out.floats() + first,
                                  rows, width});
    first += w.rows;
  };
  part(by.w);
  for (const kernels::matrix& w : by.rest) part(w);
}

kernels::kv_pages llama::pages_of(std::uint32_t layer) const noexcept {
  const std::uint64_t half = page_count_ * info_.page_bytes / (2 * config_.layers);
  std::byte* keys = pages_.data() + layer * 2 * half;
  return {keys, keys + half, config_.kv_heads, config_.head_dim, page_tokens, kv_};
}

// A page of all layers: 2 * layers pieces, each a layer's keys or its values.
struct llama::pieces {
  std::byte* first;
  std::uint64_t stride;
};

// Pages have one layout for single operations and for a whole decoder: [layers, keys then values, pages].
llama::pieces llama::pieces_of(page_id page) const noexcept {
  const std::uint64_t one = info_.page_bytes / (2 * config_.layers);
  return {pages_.data() + static_cast<std::uint64_t>(page) * one, page_count_ * one};
}

llama::pieces llama::host_pieces_of(std::uint32_t slot) const noexcept {
  assert((slot + 1) * info_.page_bytes <= host_pages_.size());
  return {host_pages_.data() + slot * info_.page_bytes, info_.page_bytes / (2 * config_.layers)};
}

void llama::copy(const pieces& to, const pieces& from) {
  backend_->run(kernels::copy{to.first, to.stride, from.first, from.stride,
                              info_.page_bytes / (2 * config_.layers), 2 * config_.layers});
}

void llama::copy_pages(std::span<const page_copy> copies) {
  for (const page_copy& c : copies) copy(pieces_of(c.to), pieces_of(c.from));
}

result<void> llama::save_page(page_id page, std::uint32_t slot) {
  copy(host_pieces_of(slot), pieces_of(page));
  return device_state();
}

result<void> llama::restore_page(page_id page, std::uint32_t slot) {
  copy(pieces_of(page), host_pieces_of(slot));
  return device_state();
}

result<void> llama::begin_draws(std::span<const draw> draws) {
  assert(whole_);
  return draws_.begin(*whole_, draws) ? result<void>() : refusal(errc::unavailable);
}

bool llama::computing() const { return whole_ && whole_->computing(); }

result<void> llama::collect(std::span<drawn> out) {
  return draws_.collect(*whole_, out) ? result<void>() : device_state();
}

result<void> llama::sample(std::span<const draw> draws, std::span<drawn> out) {
  if (whole_) {
    if (auto begun = begin_draws(draws); !begun) return begun;
    return collect(out);
  }
  for (std::size_t i = 0; i < draws.size(); ++i) {
    const draw& d = draws[i];
    const std::span<const float> row = logits(d.logits_row);
    const auto id = d.from->pick(row, d.position, scratch_, d.allowed);
    out[i] = id ? drawn{*id} : no_token(row);
    if (d.top_logprobs < 0 || !id) continue;
    if (logprobs_.size() < draws.size()) logprobs_.resize(draws.size());
    compute_logprobs(row, *id, static_cast<std::uint32_t>(d.top_logprobs), scratch_, logprobs_[i]);
  }
  return {};
}

const kernels::draw_logprobs& llama::logprobs_of(std::uint32_t i) const {
  return whole_ ? whole_->logprobs_of(i) : logprobs_[i];
}

std::span<const float> llama::logits(std::uint32_t row) const {
  assert(row < logits_rows_);
  if (whole_) {
    read_back_.resize(config_.vocab_size);
    if (!whole_->read_logits(row, read_back_.data())) return {};
    return read_back_;
  }
  const float* all = backend_->on_host ? logits_.floats() : read_back_.data();
  return {all + std::size_t{row} * config_.vocab_size, config_.vocab_size};
}

}  // namespace weir::core
