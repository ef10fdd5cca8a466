#include "core/model/decoder_model.h"

#include <array>
#include <cassert>
#include <cmath>

#include "core/sample/steps.h"

namespace weir::core {
namespace {

// The factor of the embedding as it was trained: rounded to the type of the weights that it multiplies.
float embed_factor(const model_config& c, const model_weights& w) {
  const kernels::dtype type = w.embedding.type;
  if (!c.stored.rounds_embed_factor || type == kernels::dtype::f32 || !kernels::is_plain(type))
    return c.shape.embed_factor;
  return type == kernels::dtype::f16 ? kernels::from_f16(kernels::to_f16(c.shape.embed_factor))
                                     : kernels::from_bf16(kernels::to_bf16(c.shape.embed_factor));
}

kernels::decoder_shape shape_of(const model_config& c, const model_weights& w, kv_choice kv) {
  kernels::decoder_shape s;
  s.model = c.shape;
  s.model.embed_factor = embed_factor(c, w);
  s.page_tokens = page_tokens;
  s.embedding = w.embedding;
  s.embed_norm = w.embed_norm;
  s.norm = w.norm;
  s.head = w.head;
  s.kv = kv;
  for (const layer_weights& l : w.layers)
    s.layers.push_back({.attention_norm = l.attention_norm,
                        .qkv = l.qkv.w,
                        .qkv_rest = l.qkv.rest,
                        .q_norm = l.q_norm,
                        .k_norm = l.k_norm,
                        .out = l.out.w,
                        .attention_behind = l.attention_behind,
                        .mlp_norm = l.mlp_norm,
                        .gate_up = l.gate_up.w,
                        .gate_up_rest = l.gate_up.rest,
                        .down = l.down.w,
                        .mlp_behind = l.mlp_behind,
                        .qkv_bias = l.qkv.bias,
                        .out_bias = l.out.bias,
                        .gate_up_bias = l.gate_up.bias,
                        .down_bias = l.down.bias,
                        .sinks = l.sinks,
                        .experts = l.experts});
  return s;
}

std::unique_ptr<kernels::decoder> make_whole(const model_config& c, const model_weights& w,
                                             const kernels::backend& on, kv_choice kv) {
  return on.make_decoder ? on.make_decoder(on.self, shape_of(c, w, kv)) : nullptr;
}

// The elements of decoder_model's buffers of activations, in the order of its members.
std::array<std::uint64_t, 11> activations_of(const kernels::model_shape& s, std::uint64_t rows,
                                             std::uint64_t logits_rows) {
  std::uint64_t angles = 0, qkv = 0, attended = 0, gate_up = 0, inner = 0, experts = 0, made = 0;
  for (const kernels::rotary_table& t : s.tables) angles += 2 * t.frequencies.size();
  for (const kernels::layer_shape& l : s.layers) {
    qkv = std::max<std::uint64_t>(qkv, l.mixer.width());
    attended = std::max<std::uint64_t>(attended, l.mixer.q_width());
    const std::uint64_t slots = l.mlp.slots(), shared = l.mlp.shared;
    gate_up = std::max({gate_up, slots * l.mlp.width(), std::uint64_t{l.mlp.shared_width()}});
    inner = std::max({inner, slots * l.mlp.inter, shared});
    if (!l.mlp.is_mixture()) continue;
    experts = std::max(experts, 2 * slots + 1);
    made = std::max(made, (slots + (shared ? 1 : 0)) * s.hidden);
  }
  return {rows * s.hidden, rows * s.hidden, rows * angles,        rows * qkv,
          rows * attended, rows * gate_up,  rows * inner,         rows * experts,
          rows * made,     rows * s.hidden, logits_rows * s.vocab};
}

// Why nothing was drawn from a row: it is not sound, or what the job asks for leaves nothing of it.
drawn no_token(std::span<const float> row) {
  const bool fine = sound(row);
  return {.fault = !fine, .nothing_left = fine};
}

}  // namespace

std::uint64_t page_bytes(const kernels::model_shape& s, kernels::kv_type kv) noexcept {
  std::uint64_t bytes = 0;
  for (const kernels::kv_layers& g : s.groups)
    bytes += std::uint64_t{g.layers} * 2 * g.kv_heads * page_tokens * kernels::kv_row_bytes(kv, g.head_dim);
  return bytes;
}

result<std::uint64_t> page_bytes(const model_config& c, const model_weights& w, const kernels::backend& on,
                                 kv_choice kv) {
  const auto whole = [&](kv_choice asked) {
    return on.decoder_page_bytes ? on.decoder_page_bytes(on.self, shape_of(c, w, asked)) : 0;
  };
  if (const std::uint64_t bytes = whole(kv); bytes > 0) return bytes;
  if (!kv || (on.stores_kv && on.stores_kv(on.self, *kv)))
    return page_bytes(c.shape, kv.value_or(kernels::kv_type::f32));
  const std::string why =
      whole({}) == 0 ? "this model runs by single operations, which store f32 alone: auto"
      : *kv == kernels::kv_type::q8
          ? fmt::format("heads have a size that is a multiple of 32, and this model's have {}",
                        c.shape.layers.front().mixer.head_dim)
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
       activations_of(c.shape, std::uint64_t{max_batch} + out.prompt_rows, max_batch))
    out.workspaces += elements * sizeof(float);
  return out;
}

decoder_model::decoder_model(model_config config, std::vector<token_id> stop_ids, model_weights weights,
                             std::shared_ptr<const kernels::backend> backend, kv_choice kv)
    : config_(std::move(config)),
      weights_(std::move(weights)),
      backend_(std::move(backend)),
      embed_factor_(embed_factor(config_, weights_)),
      kv_(kv.value_or(kernels::kv_type::f32)),
      scratch_(config_.shape.vocab),
      whole_(make_whole(config_, weights_, *backend_, kv)),
      parts_(parts_of(config_.shape, kv_, whole_.get())) {
  info_.architecture = config_.architecture;
  info_.vocab_size = config_.shape.vocab;
  info_.context = config_.context;
  info_.stop_ids = std::move(stop_ids);
  info_.weight_bytes = weights_.memory.size();
  info_.runs_ahead = whole_ != nullptr;
  if (whole_) info_.prompt_rows = whole_->prompt_rows();
  info_.page_bytes = whole_ ? whole_->page_bytes() : page_bytes(config_.shape, kv_);
  info_.kv_type = whole_ ? whole_->kv_type() : kernels::name(kv_);
}

kernels::dtype decoder_model::linear_type() const noexcept {
  for (const layer_weights& l : weights_.layers)
    if (l.experts.down.count > 0) return l.experts.down.first.type;
  return weights_.layers.front().down.w.type;
}

std::uint64_t decoder_model::bytes_of_a_step(std::uint32_t rows) const noexcept {
  double left_out = 0;  // of experts that no row chooses
  for (std::size_t i = 0; i < weights_.layers.size(); ++i) {
    const kernels::expert_router& router = config_.shape.layers[i].mlp.router;
    if (router.experts == 0) continue;
    const kernels::expert_weights& e = weights_.layers[i].experts;
    const double none = std::pow(1 - double{1} * router.chosen / router.experts, rows);
    left_out += static_cast<double>(e.gate_up.stride + e.down.stride) * router.experts * none;
  }
  return weights_of_a_step().size() - static_cast<std::uint64_t>(left_out);
}

// All weights without the embedding, of which a step reads one row for each token. If the embedding is also
// the head, all weights.
std::span<const std::byte> decoder_model::weights_of_a_step() const noexcept {
  return std::span<const std::byte>(weights_.memory.data(), weights_.memory.size())
      .subspan(weights_.read_by_steps);
}

result<void> decoder_model::allocate_pages(std::uint32_t count) {
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

result<void> decoder_model::allocate_host_pages(std::uint32_t count) {
  const std::uint64_t bytes = count * info_.page_bytes;
  host_pages_ = {};
  host_pages_ = kernels::host_buffer(backend_, bytes);
  if (count > 0 && !host_pages_.data())
    return make_error(errc::does_not_fit, "no host memory for {} pages: {} bytes, which the device can reach",
                      count, bytes);
  return {};
}

result<void> decoder_model::warm_up(std::uint32_t max_batch, std::uint32_t prompt_rows) {
  const std::uint32_t rows = max_batch + prompt_rows;
  if (!whole_) return make_room(rows, max_batch) ? result<void>() : no_room(rows, errc::does_not_fit);
  const std::uint32_t longest = pages_for(info_.context);
  if (!whole_->warm_up(max_batch, prompt_rows, longest)) return refusal(errc::does_not_fit);
  // Loads the kernel that copies pages: only now, when the decoder knows that there is memory for code.
  const page_copy nowhere{0, 0};
  copy_pages({&nowhere, 1});
  return device_state();
}

result<void> decoder_model::forward(const batch& b) {
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
  embed(b);
  for (std::uint32_t layer = 0; layer < config_.layers(); ++layer) {
    attend(layer, rows);
    feed_forward(layer, rows);
  }
  compute_logits(b.logits_rows);
  backend_->end_step(backend_->self);
  return device_state();
}

result<void> decoder_model::device_state() const {
  if (const char* why = backend_->fault ? backend_->fault(backend_->self) : nullptr)
    return make_error(errc::internal, "the device failed: {}", why);
  return {};
}

// `code`: does_not_fit while the model is loaded; later it is the server's fault and no request's.
result<void> decoder_model::no_room(std::uint32_t rows, errc code) const {
  return make_error(code, "no memory for the activations of {} rows, {} bytes are free", rows,
                    backend_->free_bytes(backend_->self));
}

// Why the decoder returned false: the device failed, or memory is short.
result<void> decoder_model::refusal(errc code) const {
  if (auto ok = device_state(); !ok) return ok;
  return make_error(code, "no memory for what a step computes in, {} bytes are free",
                    backend_->free_bytes(backend_->self));
}

void decoder_model::place(const batch& b) {
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
bool decoder_model::make_room(std::size_t rows, std::size_t logits_rows) {
  const auto grow = [&](kernels::buffer& b, std::size_t elements) {
    if (b.size() >= elements * sizeof(float)) return true;
    b = {};  // first, so that the old buffer and the new one need not fit together
    b = kernels::buffer(backend_, elements * sizeof(float));
    return b.data() != nullptr;
  };
  const auto sizes = activations_of(config_.shape, rows, logits_rows);
  if (!backend_->on_host && read_back_.size() < sizes.back()) read_back_.resize(sizes.back());
  kernels::buffer* const all[] = {&x_,     &normed_,  &angles_, &qkv_,    &attended_, &gate_up_,
                                  &inner_, &experts_, &made_,   &branch_, &logits_};
  for (std::size_t i = 0; i < sizes.size(); ++i)
    if (!grow(*all[i], sizes[i])) return false;
  return true;
}

std::uint64_t decoder_model::activation_bytes() const noexcept {
  std::uint64_t sum = 0;
  for (const kernels::buffer* b : {&x_, &normed_, &angles_, &qkv_, &attended_, &gate_up_, &inner_, &experts_,
                                   &made_, &branch_, &logits_})
    sum += b->size();
  return sum;
}

// The rows of the embedding, and the angles of every rotary table.
void decoder_model::embed(const batch& b) {
  const auto rows = static_cast<std::uint32_t>(b.tokens.size());
  const bool normed = config_.shape.embed_norm;
  const kernels::buffer& to = normed ? branch_ : x_;
  backend_->run(kernels::gather{weights_.embedding, b.tokens, to.floats(), embed_factor_});
  if (normed) normalise(branch_, {weights_.embed_norm, nullptr}, x_, rows, config_.shape.norm_eps);
  float* at = angles_.floats();
  for (const kernels::rotary_table& t : config_.shape.tables) {
    const std::size_t count = std::size_t{rows} * t.frequencies.size();
    backend_->run(kernels::rotary_angles{positions_, t.frequencies, at, at + count, t.factor});
    at += 2 * count;
  }
}

void decoder_model::attend(std::uint32_t layer, std::uint32_t rows) {
  const layer_weights& w = weights_.layers[layer];
  const kernels::layer_shape& shape = config_.shape.layers[layer];
  const kernels::attention_mixer& a = shape.mixer;
  if (shape.norm_before()) normalise(x_, w.attention_norm, normed_, rows, config_.shape.norm_eps);
  multiply(w.qkv, shape.norm_before() ? normed_ : x_, qkv_.floats(), rows);
  float* q = qkv_.floats();
  float* k = q + a.q_width();
  const float* v = k + a.kv_width();
  if (a.norms != kernels::head_norms::none) {
    norm_heads(q, w.q_norm, layer, a.heads, rows);
    norm_heads(k, w.k_norm, layer, a.kv_heads, rows);
  }
  turn(q, a, rows);
  const kernels::kv_pages kv = pages_of(layer);
  backend_->run(kernels::kv_write{k, v, a.width(), kv, slices_});
  backend_->run(kernels::attention{q, a.width(), a.heads, kv, slices_, a.rule, attended_.floats(), w.sinks});
  if (a.gated)
    backend_->run(kernels::sigmoid_mul{attended_.floats(), v + a.kv_width(), rows, a.q_width(), a.width()});
  multiply(w.out, attended_, branch_.floats(), rows);
  add_branch(layer, w.attention_behind, rows);
}

// Queries and keys lie side by side, so one operation rotates the heads of both.
void decoder_model::turn(float* q, const kernels::attention_mixer& a, std::uint32_t rows) {
  if (a.rotary < 0) return;
  const float* cos = angles_.floats();
  const auto& tables = config_.shape.tables;
  const auto number = static_cast<std::size_t>(a.rotary);
  for (std::size_t i = 0; i < number; ++i) cos += 2 * std::size_t{rows} * tables[i].frequencies.size();
  const auto pairs = static_cast<std::uint32_t>(tables[number].frequencies.size());
  backend_->run(kernels::rotary{q, cos, cos + std::size_t{rows} * pairs, rows, a.width(),
                                a.heads + a.kv_heads, a.head_dim, 2 * pairs});
}

void decoder_model::norm_heads(float* x, const float* weight, std::uint32_t layer, std::uint32_t heads,
                               std::uint32_t rows) {
  const kernels::attention_mixer& a = config_.shape.layers[layer].mixer;
  const bool row = a.norms == kernels::head_norms::row, own = a.norms == kernels::head_norms::own;
  backend_->run(kernels::head_norm{x, weight, rows, a.width(), row ? 1 : heads,
                                   row ? heads * a.head_dim : a.head_dim, config_.shape.norm_eps,
                                   config_.shape.centred_norms, own ? a.head_dim : 0});
}

// x += branch_factor * branch, with the norm that may stand behind the branch.
void decoder_model::add_branch(std::uint32_t layer, const kernels::norm_weight& behind, std::uint32_t rows) {
  const kernels::layer_shape& shape = config_.shape.layers[layer];
  // In a parallel block the feed-forward still needs normed_, and there is no norm behind attention.
  if (shape.norm_behind()) normalise(branch_, behind, normed_, rows, config_.shape.behind_eps);
  const kernels::buffer& from = shape.norm_behind() ? normed_ : branch_;
  backend_->run(kernels::add{x_.floats(), from.floats(), std::size_t{rows} * config_.shape.hidden,
                             shape.branch_factor});
}

void decoder_model::feed_forward(std::uint32_t layer, std::uint32_t rows) {
  const layer_weights& w = weights_.layers[layer];
  const kernels::layer_shape& shape = config_.shape.layers[layer];
  const bool parallel = shape.norms == kernels::norm_place::parallel;
  if (shape.norm_before() && !parallel) normalise(x_, w.mlp_norm, normed_, rows, config_.shape.norm_eps);
  const kernels::buffer& x = shape.norm_before() ? normed_ : x_;
  if (shape.mlp.is_mixture())
    mix_experts(layer, x, rows);
  else
    run_mlp(w, shape.mlp, shape.mlp.inter, x, branch_.floats(), rows);
  add_branch(layer, w.mlp_behind, rows);
}

// A dense feed-forward, or the shared expert of a mixture, of `inter`.
void decoder_model::run_mlp(const layer_weights& w, const kernels::feed_forward& mlp, std::uint32_t inter,
                            const kernels::buffer& x, float* out, std::uint32_t rows) {
  multiply(w.gate_up, x, gate_up_.floats(), rows);
  backend_->run(
      kernels::activate{gate_up_.floats(), inner_.floats(), rows, inter, mlp.kind, mlp.gated, mlp.limit});
  multiply(w.down, inner_, out, rows);
}

void decoder_model::mix_experts(std::uint32_t layer, const kernels::buffer& x, std::uint32_t rows) {
  const layer_weights& w = weights_.layers[layer];
  const kernels::expert_weights& e = w.experts;
  const kernels::feed_forward& mlp = config_.shape.layers[layer].mlp;
  const std::uint32_t chosen = mlp.router.chosen, slots = rows * chosen, hidden = config_.shape.hidden;
  auto* const ids = reinterpret_cast<std::int32_t*>(experts_.data());
  float* const weights = experts_.floats() + slots;
  float* const gate = mlp.shared_gate ? weights + slots : nullptr;
  backend_->run(kernels::route{x.floats(), e.router, e.router_bias, e.choice_bias, mlp.router, ids, weights,
                               gate, rows, hidden});
  float* const shared = mlp.shared ? made_.floats() + std::size_t{slots} * hidden : nullptr;
  if (shared) run_mlp(w, mlp, mlp.shared, x, shared, rows);
  backend_->run(
      kernels::expert_linear{e.gate_up, e.gate_up_bias, x.floats(), ids, gate_up_.floats(), slots, chosen});
  backend_->run(kernels::activate{gate_up_.floats(), inner_.floats(), slots, mlp.inter, mlp.kind, mlp.gated,
                                  mlp.limit});
  backend_->run(kernels::expert_linear{e.down, e.down_bias, inner_.floats(), ids, made_.floats(), slots, 1});
  backend_->run(
      kernels::mix_experts{made_.floats(), weights, shared, gate, branch_.floats(), rows, hidden, chosen});
}

// Computes the logits of only those rows that are drawn from or scored.
void decoder_model::compute_logits(std::uint32_t rows) {
  logits_rows_ = rows;
  if (rows == 0) return;
  const kernels::model_shape& s = config_.shape;
  const auto total = static_cast<std::uint32_t>(positions_.size());
  const kernels::matrix stream{x_.floats(), kernels::dtype::f32, total, s.hidden};
  backend_->run(kernels::gather{stream, logits_from_, branch_.floats()});
  normalise(branch_, weights_.norm, normed_, rows, s.norm_eps);
  backend_->run(kernels::linear{weights_.head, nullptr, normed_.floats(), logits_.floats(), rows});
  const std::size_t count = std::size_t{rows} * s.vocab;
  if (s.logit_factor != 1 || s.logit_cap != 0)
    backend_->run(kernels::soft_cap{logits_.floats(), count, s.logit_factor, s.logit_cap});
  if (!backend_->on_host)
    backend_->do_download(backend_->self, read_back_.data(), logits_.data(), count * sizeof(float));
}

void decoder_model::normalise(const kernels::buffer& x, const kernels::norm_weight& by,
                              const kernels::buffer& out, std::uint32_t rows, float eps) {
  backend_->run(kernels::row_norm{x.floats(), by.weight, out.floats(), rows, config_.shape.hidden, eps,
                                  config_.shape.centred_norms, by.bias});
}

void decoder_model::multiply(const linear_weight& by, const kernels::buffer& x, float* out,
                             std::uint32_t rows) {
  std::uint32_t width = by.w.rows, first = 0;
  for (const kernels::matrix& w : by.rest) width += w.rows;
  const auto part = [&](const kernels::matrix& w) {
    backend_->run(
        kernels::linear{w, by.bias ? by.bias + first : nullptr, x.floats(), out + first, rows, width});
    first += w.rows;
  };
  part(by.w);
  for (const kernels::matrix& w : by.rest) part(w);
}

// A whole decoder's pages have one group, as single operations store it.
std::vector<decoder_model::page_part> decoder_model::parts_of(const kernels::model_shape& s,
                                                              kernels::kv_type kv,
                                                              const kernels::decoder* whole) {
  std::vector<page_part> parts;
  std::uint64_t first = 0;
  for (const kernels::kv_layers& g : s.groups) {
    const std::uint64_t bytes =
        std::uint64_t{g.kv_heads} * page_tokens * kernels::kv_row_bytes(kv, g.head_dim);
    parts.push_back({first, bytes, 2 * g.layers});
    first += bytes * 2 * g.layers;
  }
  if (whole)
    parts = {
        {0, whole->page_bytes() / (2 * s.layers.size()), static_cast<std::uint32_t>(2 * s.layers.size())}};
  return parts;
}

kernels::kv_pages decoder_model::pages_of(std::uint32_t layer) const noexcept {
  const kernels::attention_mixer& a = config_.shape.layers[layer].mixer;
  const page_part& part = parts_[a.group];
  std::byte* group = pages_.data() + page_count_ * part.first;
  std::byte* keys = group + std::uint64_t{a.place} * 2 * page_count_ * part.bytes;
  return {keys, keys + page_count_ * part.bytes, a.kv_heads, a.head_dim, page_tokens, kv_};
}

void decoder_model::copy_pages(std::span<const page_copy> copies) {
  for (const page_copy& c : copies)
    for (const page_part& p : parts_) copy(p, in_pool(p, c.to), in_pool(p, c.from));
}

// Where a part of a page lies: its first piece, and the way from one piece to the next.
decoder_model::pieces decoder_model::in_pool(const page_part& p, page_id page) const noexcept {
  const auto number = static_cast<std::uint64_t>(page);
  return {pages_.data() + page_count_ * p.first + number * p.bytes, page_count_ * p.bytes};
}

decoder_model::pieces decoder_model::in_host(const page_part& p, std::uint32_t slot) const noexcept {
  assert((slot + 1) * info_.page_bytes <= host_pages_.size());
  return {host_pages_.data() + slot * info_.page_bytes + p.first, p.bytes};
}

void decoder_model::copy(const page_part& p, const pieces& to, const pieces& from) {
  backend_->run(kernels::copy{to.first, to.stride, from.first, from.stride, p.bytes, p.count});
}

result<void> decoder_model::save_page(page_id page, std::uint32_t slot) {
  for (const page_part& p : parts_) copy(p, in_host(p, slot), in_pool(p, page));
  return device_state();
}

result<void> decoder_model::restore_page(page_id page, std::uint32_t slot) {
  for (const page_part& p : parts_) copy(p, in_pool(p, page), in_host(p, slot));
  return device_state();
}

result<void> decoder_model::begin_draws(std::span<const draw> draws) {
  assert(whole_);
  return draws_.begin(*whole_, draws) ? result<void>() : refusal(errc::unavailable);
}

bool decoder_model::computing() const { return whole_ && whole_->computing(); }

result<void> decoder_model::collect(std::span<drawn> out) {
  return draws_.collect(*whole_, out) ? result<void>() : device_state();
}

result<void> decoder_model::sample(std::span<const draw> draws, std::span<drawn> out) {
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

const kernels::draw_logprobs& decoder_model::logprobs_of(std::uint32_t i) const {
  return whole_ ? whole_->logprobs_of(i) : logprobs_[i];
}

std::span<const float> decoder_model::logits(std::uint32_t row) const {
  assert(row < logits_rows_);
  if (whole_) {
    read_back_.resize(config_.shape.vocab);
    if (!whole_->read_logits(row, read_back_.data())) return {};
    return read_back_;
  }
  const float* all = backend_->on_host ? logits_.floats() : read_back_.data();
  return {all + std::size_t{row} * config_.shape.vocab, config_.shape.vocab};
}

}  // namespace weir::core
