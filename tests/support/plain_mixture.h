// plain_mixture.h — what a mixture of experts makes of a text of one token, by plain loops in double. In such
// a text attention passes the values on, so that its scores and rotations play no part.
//
// Thread safety: reads alone.
#pragma once

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <span>
#include <string>
#include <vector>

namespace weir::tests {

struct plain_mixture {
  using doubles = std::vector<double>;

  std::size_t hidden = 0, layers = 0, heads = 0, kv_heads = 0, head_dim = 0, experts = 0, chosen = 0;
  bool renormalised = true;
  double eps = 1e-5;
  double embed_factor = 1, branch_factor = 1, logit_factor = 1;  // Granite's multipliers
  // [outputs, inputs] by their names in files of Qwen2-MoE, without ".weight". A shared expert, and its gate,
  // are there where they have a name here.
  std::map<std::string, doubles> weights;

  doubles logits(std::size_t token) const {
    const doubles& table = weights.at("model.embed_tokens");
    doubles x(hidden);
    for (std::size_t i = 0; i < hidden; ++i) x[i] = table[token * hidden + i] * embed_factor;
    for (std::size_t i = 0; i < layers; ++i) {
      const std::string at = "model.layers." + std::to_string(i) + ".";
      add(x, attend(at + "self_attn.", normed(x, at + "input_layernorm")), branch_factor);
      add(x, mix(at + "mlp.", normed(x, at + "post_attention_layernorm")), branch_factor);
    }
    doubles out = times("lm_head", normed(x, "model.norm"));
    for (double& each : out) each *= logit_factor;
    return out;
  }

 private:
  static void add(doubles& x, const doubles& y, double factor) {
    for (std::size_t i = 0; i < x.size(); ++i) x[i] += factor * y[i];
  }

  doubles times(const std::string& name, const doubles& x) const {
    const doubles& w = weights.at(name);
    doubles out(w.size() / x.size());
    for (std::size_t n = 0; n < out.size(); ++n)
      out[n] =
          std::inner_product(x.begin(), x.end(), w.begin() + static_cast<std::ptrdiff_t>(n * x.size()), 0.0);
    return out;
  }

  doubles normed(const doubles& x, const std::string& name) const {
    const double squares = std::inner_product(x.begin(), x.end(), x.begin(), 0.0);
    const double factor = 1 / std::sqrt(squares / static_cast<double>(hidden) + eps);
    doubles out(x);
    for (std::size_t i = 0; i < hidden; ++i) out[i] *= factor * weights.at(name)[i];
    return out;
  }

  doubles attend(const std::string& at, const doubles& x) const {
    const doubles v = times(at + "v_proj", x);
    doubles all(heads * head_dim);
    for (std::size_t h = 0; h < heads; ++h)
      std::copy_n(v.begin() + static_cast<std::ptrdiff_t>(h / (heads / kv_heads) * head_dim), head_dim,
                  all.begin() + static_cast<std::ptrdiff_t>(h * head_dim));
    return times(at + "o_proj", all);
  }

  doubles feed_forward(const std::string& at, const doubles& x) const {
    doubles gate = times(at + "gate_proj", x);
    const doubles up = times(at + "up_proj", x);
    for (std::size_t i = 0; i < gate.size(); ++i) gate[i] *= up[i] / (1 + std::exp(-gate[i]));
    return times(at + "down_proj", gate);
  }

  doubles mix(const std::string& mlp, const doubles& x) const {
    doubles scores = times(mlp + "gate", x);
    const double most = *std::max_element(scores.begin(), scores.end());
    double sum = 0;
    for (double& s : scores) sum += s = std::exp(s - most);
    for (double& s : scores) s /= sum;
    std::vector<std::size_t> order(experts);
    std::iota(order.begin(), order.end(), 0);
    std::stable_sort(order.begin(), order.end(), [&](auto a, auto b) { return scores[a] > scores[b]; });
    double all = 0;
    for (std::size_t i = 0; i < chosen; ++i) all += scores[order[i]];
    doubles out(hidden);
    for (std::size_t i = 0; i < chosen; ++i)
      add(out, feed_forward(mlp + "experts." + std::to_string(order[i]) + ".", x),
          scores[order[i]] / (renormalised ? all : 1));
    if (!weights.contains(mlp + "shared_expert.gate_proj")) return out;
    const bool gated = weights.contains(mlp + "shared_expert_gate");
    add(out, feed_forward(mlp + "shared_expert.", x),
        gated ? 1 / (1 + std::exp(-times(mlp + "shared_expert_gate", x)[0])) : 1);
    return out;
  }
};

}  // namespace weir::tests
