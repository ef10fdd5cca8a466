// model_shape.h — what a decoder-only model is made of, as data: its sizes, and for each layer the kind of
// attention, of feed-forward and of norms.
//
// The composition of single operations (core/model/decoder_model.h) and a backend's whole decoder (decoder.h)
// both read this description. A family of models is a way to fill it in (core/model/families.h).
//
// A layer adds to the residual stream x what attention A and feed-forward F make of it, by `norm_place`:
//   before:    x += A(n1(x));      x += F(n2(x))
//   behind:    x += m1(A(x));      x += m2(F(x))
//   both:      x += m1(A(n1(x)));  x += m2(F(n2(x)))
//   parallel:  x += A(n1(x)) + F(n1(x))
// and each sum is x += branch_factor * (…).
//
// Thread safety: plain data.
//
// Invariants of a shape that a config gave:
//   1. heads is a multiple of kv_heads; every size is at least 1; head_dim is even.
//   2. rotary is -1 or an index of `tables`, whose frequencies are at most head_dim / 2.
//   3. Every layer's group is an index of `groups`, of its kv_heads and head_dim, and its place is below
//      that group's `layers`. A place belongs to one layer.
//   4. A mixture has 1 <= chosen <= experts <= most_experts. shared_gate: shared > 0.
#pragma once

#include <cstdint>
#include <vector>

#include "kernels/attention_rule.h"

namespace weir::kernels {

// f of a feed-forward. gelu is its tanh form, 0.5 g (1 + tanh(0.7978845608 (g + 0.044715 g³))); relu2 is
// max(g, 0)². clamped is that of gpt-oss, for a gated feed-forward alone: with g at most `limit` and up u
// within ±limit, it gives g · sigmoid(1.702 g) · (u + 1) in place of f(g) · u.
enum class activation : std::uint8_t { silu, gelu, relu2, clamped };

inline constexpr std::uint32_t most_experts = 1024;

enum class norm_place : std::uint8_t { before, behind, both, parallel };

// Norms of queries and keys in front of the rotation. each: of every head, with one weight [head_dim]. own:
// of every head, with weights of its own [heads, head_dim]. row: of the heads of a row together, with a
// weight [heads * head_dim].
enum class head_norms : std::uint8_t { none, each, own, row };

// Attention of one layer. The rows of its first product make queries, keys, values and, where `gated`, gates:
// what attention gives is then multiplied by the sigmoid of the gates.
struct attention_mixer {
  std::uint32_t heads = 0, kv_heads = 0, head_dim = 0;
  attention_rule rule;
  std::int32_t rotary = 0;  // which of model_shape::tables turns queries and keys; -1: nothing turns
  head_norms norms = head_norms::none;
  bool gated = false;
  bool sinks = false;                  // each head has a score without a key: ops.h, attention::sinks
  std::uint32_t group = 0, place = 0;  // where its keys and values are: model_shape::groups

  std::uint32_t q_width() const noexcept { return heads * head_dim; }
  std::uint32_t kv_width() const noexcept { return kv_heads * head_dim; }
  std::uint32_t width() const noexcept { return q_width() * (gated ? 2 : 1) + 2 * kv_width(); }
  bool operator==(const attention_mixer&) const = default;
};

// How a mixture of experts chooses. An expert's score is the softmax of the router's products over all
// experts, or the sigmoid of its own. The `chosen` experts with the largest scores, those of equal scores by
// their numbers, are a row's; a bias may be added to the scores for this choice alone. Their weights are
// their scores, divided by the sum of the chosen ones' where `renormalised`, times `factor`. (Softmax of the
// chosen products alone, as in gpt-oss, is the softmax of all, renormalised.)
struct expert_router {
  std::uint32_t experts = 0;  // 0: no mixture
  std::uint32_t chosen = 0;
  bool sigmoid = false;
  bool choice_bias = false;
  bool renormalised = true;
  float factor = 1;

  bool operator==(const expert_router&) const = default;
};

// down(f(gate · x) * (up · x)), or without a gate down(f(up · x)).
//
// A mixture has many of these, of `inter` each: experts. It gives the weighted sum of a row's experts. A
// shared expert of width `shared` may be added, times sigmoid(s · x) where `shared_gate`.
struct feed_forward {
  std::uint32_t inter = 0;  // rows of gate, and of up
  activation kind = activation::silu;
  bool gated = true;
  float limit = 0;  // of activation::clamped
  expert_router router;
  std::uint32_t shared = 0;  // rows of the shared expert's gate, and of its up; 0: there is none
  bool shared_gate = false;

  bool is_mixture() const noexcept { return router.experts != 0; }
  std::uint32_t width() const noexcept { return gated ? 2 * inter : inter; }
  std::uint32_t shared_width() const noexcept { return gated ? 2 * shared : shared; }
  // The rows that go through `inter` for each row: those of its experts, or the row itself.
  std::uint32_t slots() const noexcept { return is_mixture() ? router.chosen : 1; }
  // Rows of the router's matrix: one an expert, and behind them that of the shared expert's gate.
  std::uint32_t router_rows() const noexcept { return router.experts + (shared_gate ? 1 : 0); }
  bool operator==(const feed_forward&) const = default;
};

struct layer_shape {
  attention_mixer mixer;
  feed_forward mlp;
  norm_place norms = norm_place::before;
  float branch_factor = 1;

  bool norm_before() const noexcept { return norms != norm_place::behind; }
  bool norm_behind() const noexcept { return norms == norm_place::behind || norms == norm_place::both; }
  bool operator==(const layer_shape&) const = default;
};

// Rotary frequencies, one for each pair of a head's elements that turns, and the factor of cosine and sine.
struct rotary_table {
  std::vector<float> frequencies;
  float factor = 1;
};

// Layers whose keys and values have pages of one size. A page of a sequence has a part in every group.
struct kv_layers {
  std::uint32_t kv_heads = 0, head_dim = 0, layers = 0;
};

struct model_shape {
  std::uint32_t vocab = 0, hidden = 0;
  bool centred_norms = false;  // LayerNorm; norms of heads too
  float norm_eps = 1e-6f;
  float behind_eps = 1e-6f;  // of the norms behind attention and feed-forward
  float embed_factor = 1;    // of the rows of the embedding
  bool embed_norm = false;   // those rows are normed, without a weight
  float logit_factor = 1;    // of logits, in front of the cap
  float logit_cap = 0;       // bound of logits; 0: none
  std::vector<rotary_table> tables;
  std::vector<layer_shape> layers;
  std::vector<kv_layers> groups;
};

}  // namespace weir::kernels
