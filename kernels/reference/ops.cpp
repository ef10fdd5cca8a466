// The definition of every operation: plain loops, one row at a time. Sums are in double and in index order,
// except attention's weighted sums of values, which are in f32.
#include "kernels/ops.h"

#include <algorithm>
#include <cmath>
#include <span>
#include <vector>

#include "kernels/blocks.h"
#include "kernels/host_memory.h"
#include "kernels/reference/kv_values.h"

namespace weir::kernels {
namespace {

const std::byte* row_of(const matrix& m, std::size_t row) {
  return static_cast<const std::byte*>(m.data) + row * bytes_of(m.type, m.cols);
}

void run_gather(void*, const gather& op) {
  const std::size_t width = op.table.cols;
  for (std::size_t r = 0; r < op.ids.size(); ++r) {
    float* out = op.out + r * width;
    dequantise(op.table.type, row_of(op.table, static_cast<std::size_t>(op.ids[r])), width, out);
    for (std::size_t i = 0; op.factor != 1 && i < width; ++i) out[i] *= op.factor;
  }
}

// What a norm takes off each element of a row, and what it then multiplies the element by.
struct norm_numbers {
  float mean = 0, scale = 1;
};
norm_numbers norm_of(const float* x, std::size_t width, float eps, bool centred) {
  double sum = 0, squares = 0;
  for (std::size_t i = 0; centred && i < width; ++i) sum += x[i];
  const double mean = sum / static_cast<double>(width);
  for (std::size_t i = 0; i < width; ++i) squares += (x[i] - mean) * (x[i] - mean);
  return {static_cast<float>(mean),
          static_cast<float>(1.0 / std::sqrt(squares / static_cast<double>(width) + eps))};
}

void run_row_norm(void*, const row_norm& op) {
  for (std::size_t r = 0; r < op.rows; ++r) {
    const float* x = op.x + r * op.width;
    const norm_numbers n = norm_of(x, op.width, op.eps, op.centred);
    for (std::size_t i = 0; i < op.width; ++i)
      op.out[r * op.width + i] = (x[i] - n.mean) * n.scale * op.weight[i] + (op.bias ? op.bias[i] : 0.0f);
  }
}

void run_head_norm(void*, const head_norm& op) {
  for (std::size_t r = 0; r < op.rows; ++r)
    for (std::size_t h = 0; h < op.heads; ++h) {
      float* x = op.x + r * op.stride + h * op.head_dim;
      const float* weight = op.weight + h * op.weight_stride;
      const norm_numbers n = norm_of(x, op.head_dim, op.eps, op.centred);
      for (std::size_t i = 0; i < op.head_dim; ++i) x[i] = (x[i] - n.mean) * n.scale * weight[i];
    }
}

// Widens up to 256 weights of one output at a time, whole blocks of every type, for up to 16 rows of x.
void run_linear(void*, const linear& op) {
  constexpr std::size_t weights = block_parts::most_weights, most_rows = 16;
  const std::size_t n = op.w.rows, k = op.w.cols, width = op.w.width();
  const std::uint32_t* inputs = op.w.inputs;
  for (std::size_t first = 0; first < op.rows; first += most_rows)
    for (std::size_t j = 0; j < n; ++j) {
      const std::size_t rows = std::min(most_rows, op.rows - first);
      const float* x = op.x + first * width;
      double sums[most_rows];
      std::fill_n(sums, rows, op.bias ? op.bias[j] : 0.0);
      for (std::size_t i = 0; i < k; i += weights) {
        float w[weights];
        const std::size_t count = std::min(weights, k - i);
        dequantise(op.w.type, row_of(op.w, j) + bytes_of(op.w.type, i), count, w);
        for (std::size_t r = 0; r < rows; ++r)
          for (std::size_t c = 0; c < count; ++c)
            sums[r] += double{x[r * width + (inputs ? inputs[i + c] : i + c)]} * w[c];
      }
      for (std::size_t r = 0; r < rows; ++r)
        op.out[(first + r) * op.stride() + j] = static_cast<float>(sums[r]);
    }
}

void run_rotary_angles(void*, const rotary_angles& op) {
  const std::size_t half = op.frequencies.size();
  for (std::size_t r = 0; r < op.positions.size(); ++r)
    for (std::size_t i = 0; i < half; ++i) {
      const float angle = static_cast<float>(op.positions[r]) * op.frequencies[i];
      op.cos[r * half + i] = op.factor * std::cos(angle);
      op.sin[r * half + i] = op.factor * std::sin(angle);
    }
}

void run_rotary(void*, const rotary& op) {
  const std::size_t half = op.turned / 2;
  for (std::size_t r = 0; r < op.rows; ++r)
    for (std::size_t h = 0; h < op.heads; ++h) {
      float* x = op.x + r * op.stride + h * op.head_dim;
      for (std::size_t i = 0; i < half; ++i) {
        const float c = op.cos[r * half + i], s = op.sin[r * half + i];
        const float a = x[i], b = x[i + half];
        x[i] = a * c - b * s;
        x[i + half] = b * c + a * s;
      }
    }
}

// One token of one head.
struct kv_place {
  std::size_t page, head, token;
};
kv_place place_of(const kv_pages& kv, const kv_slice& slice, std::size_t position, std::size_t head) {
  return {static_cast<std::size_t>(slice.pages[position / kv.page_tokens]), head, position % kv.page_tokens};
}
kv_head head_at(const kv_pages& kv, void* all, const kv_place& p) {
  return {static_cast<std::byte*>(all) + kv.place(p.page, static_cast<std::uint32_t>(p.head)), kv.type,
          kv.head_dim, kv.page_tokens};
}

void run_kv_write(void*, const kv_write& op) {
  for (const kv_slice& slice : op.slices)
    for (std::size_t r = 0; r < slice.rows; ++r)
      for (std::size_t h = 0; h < op.to.heads; ++h) {
        const std::size_t from = (slice.first_row + r) * op.stride + h * op.to.head_dim;
        const kv_place to = place_of(op.to, slice, slice.position + r, h);
        store_kv(head_at(op.to, op.to.keys, to), to.token, op.k + from);
        store_kv(head_at(op.to, op.to.values, to), to.token, op.v + from);
      }
}

double score(const attention& op, const float* q, double scale, const kv_place& at) {
  const kv_head keys = head_at(op.kv, op.kv.keys, at);
  double sum = 0;
  for (std::size_t i = 0; i < op.kv.head_dim; i += keys.group()) {
    const kv_numbers k = load_kv(keys, at.token, i);
    for (std::size_t j = 0; j < k.count; ++j) sum += double{q[i + j]} * k.x[j];
  }
  const double cap = op.rule.cap;
  return cap == 0 ? sum * scale : cap * std::tanh(sum * scale / cap);
}

void add_values(const attention& op, const kv_place& at, double weight, float* out) {
  const kv_head values = head_at(op.kv, op.kv.values, at);
  for (std::size_t i = 0; i < op.kv.head_dim; i += values.group()) {
    const kv_numbers v = load_kv(values, at.token, i);
    for (std::size_t j = 0; j < v.count; ++j) out[i + j] += static_cast<float>(weight * v.x[j]);
  }
}

// Computes one query's attention over positions [from, to]. Scores are computed twice, so that no scratch is
// needed. `head`: the key head; `sink`: the query head's, or null.
void attend(const attention& op, const kv_slice& slice, const float* q, std::size_t head, const float* sink,
            std::size_t from, std::size_t to, float* out) {
  const auto at = [&](std::size_t p) { return place_of(op.kv, slice, p, head); };
  const double scale = op.rule.scale_at(static_cast<std::uint32_t>(to));
  double largest = score(op, q, scale, at(from));
  for (std::size_t p = from + 1; p <= to; ++p) largest = std::max(largest, score(op, q, scale, at(p)));
  if (sink) largest = std::max(largest, double{*sink});
  double total = sink ? std::exp(*sink - largest) : 0;
  std::fill_n(out, op.kv.head_dim, 0.0f);
  for (std::size_t p = from; p <= to; ++p) {
    const double weight = std::exp(score(op, q, scale, at(p)) - largest);
    total += weight;
    add_values(op, at(p), weight, out);
  }
  for (std::size_t i = 0; i < op.kv.head_dim; ++i) out[i] = static_cast<float>(out[i] / total);
}

void run_attention(void*, const attention& op) {
  const std::size_t group = op.heads / op.kv.heads;
  for (const kv_slice& slice : op.slices)
    for (std::size_t r = 0; r < slice.rows; ++r)
      for (std::size_t h = 0; h < op.heads; ++h) {
        const std::size_t row = slice.first_row + r, to = slice.position + r;
        const std::size_t from = op.rule.first_seen(to);
        attend(op, slice, op.q + row * op.stride + h * op.kv.head_dim, h / group,
               op.sinks ? op.sinks + h : nullptr, from, to, op.out + (row * op.heads + h) * op.kv.head_dim);
      }
}

float activated(activation kind, float g) {
  switch (kind) {
    case activation::silu:
      return g / (1.0f + std::exp(-g));
    case activation::gelu:
      return 0.5f * g * (1.0f + std::tanh(0.7978845608f * (g + 0.044715f * g * g * g)));
    case activation::relu2:
      return g <= 0 ? 0.0f : g * g;  // a NaN stays one
    case activation::clamped:
      return g / (1.0f + std::exp(-1.702f * g));
  }
  return 0;
}

// activation::clamped of a gate and an up. A NaN stays one.
float clamped(float g, float u, float limit) {
  if (g > limit) g = limit;
  u = u > limit ? limit : u < -limit ? -limit : u;
  return activated(activation::clamped, g) * (u + 1.0f);
}

void run_activate(void*, const activate& op) {
  const std::size_t width = op.width, stride = op.gated ? 2 * width : width;
  for (std::size_t r = 0; r < op.rows; ++r)
    for (std::size_t i = 0; i < width; ++i) {
      const float* x = op.x + r * stride + i;
      op.out[r * width + i] = op.kind == activation::clamped
                                  ? clamped(*x, x[width], op.limit)
                                  : activated(op.kind, *x) * (op.gated ? x[width] : 1.0f);
    }
}

// The product of a row with row `n` of the router.
float router_product(const route& op, std::size_t row, std::size_t n) {
  double sum = op.bias && n < op.how.experts ? op.bias[n] : 0.0;
  for (std::size_t i = 0; i < op.width; ++i)
    sum += double{op.x[row * op.width + i]} * op.router[n * op.width + i];
  return static_cast<float>(sum);
}

// What products become: the softmax of all, or the sigmoid of each.
void score_experts(std::span<double> of, bool sigmoid) {
  double largest = -HUGE_VAL, total = 0;
  for (const double x : of) largest = std::max(largest, x);
  for (double& x : of) total += x = sigmoid ? 1 / (1 + std::exp(-x)) : std::exp(x - largest);
  for (double& x : of) x /= sigmoid ? 1 : total;
}

// The expert with the largest of `keys` among those that `taken` leaves.
std::size_t best_expert(std::span<const double> keys, const std::vector<bool>& taken) {
  std::size_t best = keys.size();
  for (std::size_t e = 0; e < keys.size(); ++e)
    if (!taken[e] && (best == keys.size() || keys[e] > keys[best])) best = e;
  return best;
}

void run_route(void*, const route& op) {
  const std::size_t chosen = op.how.chosen;
  std::vector<double> scores(op.how.experts), keys(op.how.experts);
  for (std::size_t r = 0; r < op.rows; ++r) {
    for (std::size_t e = 0; e < scores.size(); ++e) keys[e] = scores[e] = router_product(op, r, e);
    score_experts(scores, op.how.sigmoid);
    for (std::size_t e = 0; e < keys.size(); ++e) {
      if (op.choice_bias) keys[e] = scores[e] + op.choice_bias[e];
      if (std::isnan(keys[e])) keys[e] = -HUGE_VAL;
    }
    std::vector<bool> taken(scores.size());
    double sum = 0;
    for (std::size_t i = 0; i < chosen; ++i) {
      const std::size_t e = best_expert(keys, taken);
      taken[e] = true;
      sum += scores[e];
      op.ids[r * chosen + i] = static_cast<std::int32_t>(e);
    }
    for (std::size_t i = 0; i < chosen; ++i) {
      const double score = scores[static_cast<std::size_t>(op.ids[r * chosen + i])];
      op.weights[r * chosen + i] =
          static_cast<float>(score / (op.how.renormalised ? sum : 1) * op.how.factor);
    }
    if (op.shared) op.shared[r] = 1.0f / (1.0f + std::exp(-router_product(op, r, op.how.experts)));
  }
}

void run_expert_linear(void* self, const expert_linear& op) {
  const std::size_t n = op.w.first.rows, k = op.w.first.cols;
  for (std::size_t s = 0; s < op.slots; ++s) {
    const auto expert = static_cast<std::uint32_t>(op.ids[s]);
    run_linear(self, {op.w.of(expert), op.bias ? op.bias + expert * n : nullptr, op.x + s / op.share * k,
                      op.out + s * n, 1});
  }
}

void run_mix_experts(void*, const mix_experts& op) {
  for (std::size_t r = 0; r < op.rows; ++r)
    for (std::size_t c = 0; c < op.width; ++c) {
      double sum = 0;
      for (std::size_t i = 0; i < op.chosen; ++i) {
        const std::size_t slot = r * op.chosen + i;
        sum += double{op.weights[slot]} * op.y[slot * op.width + c];
      }
      if (op.shared) sum += double{op.gate ? op.gate[r] : 1.0f} * op.shared[r * op.width + c];
      op.out[r * op.width + c] = static_cast<float>(sum);
    }
}

void run_sigmoid_mul(void*, const sigmoid_mul& op) {
  for (std::size_t r = 0; r < op.rows; ++r)
    for (std::size_t i = 0; i < op.width; ++i)
      op.x[r * op.width + i] /= 1.0f + std::exp(-op.gate[r * op.stride + i]);
}

void run_add(void*, const add& op) {
  for (std::size_t i = 0; i < op.count; ++i) op.x[i] += op.factor * op.y[i];
}

void run_soft_cap(void*, const soft_cap& op) {
  for (std::size_t i = 0; i < op.count; ++i) {
    const float x = op.factor * op.x[i];
    op.x[i] = op.cap == 0 ? x : op.cap * std::tanh(x / op.cap);
  }
}

constexpr backend table{
    .name = "reference",
    .self = nullptr,
    .do_gather = run_gather,
    .do_row_norm = run_row_norm,
    .do_head_norm = run_head_norm,
    .do_linear = run_linear,
    .do_rotary_angles = run_rotary_angles,
    .do_rotary = run_rotary,
    .do_kv_write = run_kv_write,
    .do_attention = run_attention,
    .do_activate = run_activate,
    .do_sigmoid_mul = run_sigmoid_mul,
    .do_route = run_route,
    .do_expert_linear = run_expert_linear,
    .do_mix_experts = run_mix_experts,
    .do_add = run_add,
    .do_soft_cap = run_soft_cap,
    .on_host = true,
    .do_allocate = host_allocate,
    .do_free = host_free,
    .do_reserve = host_reserve,
    .pieces = host_pieces,
    .do_give_back = host_give_back,
    .do_take_again = host_take_again,
    .do_upload = host_move,
    .do_download = host_move,
    .do_copy = host_copy,
    .free_bytes = host_free_bytes,
    .weight_bytes = host_rows_bytes,
    .do_pack = host_pack_rows,
    .takes_blocks = [](void*, dtype) { return true; },
    .stores_kv = [](void*, kv_type) { return true; },
    .do_read = host_read,
    .peak_flops = [](void*, dtype) { return 0.0; },
};

}  // namespace

std::shared_ptr<const backend> reference_backend() { return {std::shared_ptr<void>{}, &table}; }

}  // namespace weir::kernels
