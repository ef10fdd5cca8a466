// The single operations of a decoder_model: embedding, attention, norms, logits.
#include "core/model/decoder_model.h"

namespace weir::core {

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

}  // namespace weir::core
