#include "core/model/weights.h"

#include <algorithm>
#include <initializer_list>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>

#include "core/model/load/fill.h"
#include "kernels/blocks.h"
#include "kernels/random_weights.h"

namespace weir::core {
namespace {

using kernels::dtype;
using u64 = std::uint64_t;

constexpr u64 alignment = 256;  // bytes; as in the memory that a backend allocates

struct part {
  std::string name;
  std::uint32_t rows;
};

// The inputs of a matrix' columns, in the backend's memory and on the host.
struct placed_order {
  std::byte* to;
  std::shared_ptr<const std::vector<std::uint32_t>> inputs;
};

// Visits the weights that a config implies, in their order in memory. Without a base address, it only checks
// them and sums up their sizes. With one, it also sets pointers and lists what is to be filled.
class placer {
 public:
  placer(const checkpoint* from, dtype random_type, const kernels::backend& on, std::byte* base)
      : from_(from), random_type_(random_type), on_(on), base_(base) {}

  kernels::matrix matrix(const part& p, std::uint32_t cols) {
    return one({&p, 1}, cols, check(p.name, {p.rows, cols}));
  }

  // A matrix whose rows are read one by one. Its columns must therefore be its inputs in order.
  kernels::matrix table(const part& p, std::uint32_t cols) {
    const kernels::matrix m = matrix(p, cols);
    if (m.input_count)
      fail(
          errc::not_supported,
          fmt::format("tensor '{}': an embedding whose inputs are in groups of another order, or do not fill "
                      "blocks of 32, is not supported yet",
                      from_->spelled(p.name)));
    return m;
  }

  // Parts that are stacked along their rows: as one matrix, or as several where types or inputs differ.
  linear_weight stack(std::initializer_list<part> parts, std::uint32_t cols) {
    std::vector<dtype> types;
    for (const part& p : parts) types.push_back(check(p.name, {p.rows, cols}));
    const bool differ = std::ranges::count(types, types[0]) != static_cast<std::ptrdiff_t>(types.size());
    if (differ && std::ranges::all_of(types, kernels::is_plain)) types.assign(types.size(), dtype::f32);
    const std::span all(parts.begin(), parts.size());
    linear_weight out;
    for (std::size_t i = 0, end = 0; i < all.size(); i = end) {
      while (end < all.size() && types[end] == types[i] && same_inputs(all[end], all[i])) ++end;
      const kernels::matrix m = one(all.subspan(i, end - i), cols, types[i]);
      i == 0 ? void(out.w = m) : out.rest.push_back(m);
    }
    return out;
  }

  const float* vector(std::initializer_list<part> list, bool norm) {
    const std::span parts(list.begin(), list.size());
    std::uint32_t elements = 0;
    for (const part& p : parts) {
      check(p.name, {p.rows});
      elements += p.rows;
    }
    std::byte* to = take(u64{elements} * sizeof(float));
    add({to, {nullptr, dtype::f32, 1, elements}, false, norm, {}}, parts, 1);
    return reinterpret_cast<const float*>(to);
  }

  // Refuses tensors that the config does not imply. To ignore one would change the model's output silently.
  void check_nothing_left() {
    if (!from_) return;
    for (const auto& [name, tensor] : from_->tensors()) {
      const bool harmless = name.ends_with(".rotary_emb.inv_freq") || name == "lm_head.weight";
      if (!used_.contains(name) && !harmless)
        fail(errc::bad_file, fmt::format("tensor '{}' {} is in the file, but {} implies no such tensor",
                                         from_->spelled(name), tensor.shape_text(), from_->described_by()));
    }
  }

  u64 bytes() const noexcept { return offset_; }
  std::vector<placed>& all() noexcept { return all_; }
  std::vector<placed_order>& orders() noexcept { return orders_; }
  const std::optional<error>& failure() const noexcept { return failure_; }

 private:
  dtype check(const std::string& name, std::vector<u64> shape) {
    if (!from_) return take_type(random_type_of(name), kernels::name(random_type_of(name)), name);
    used_.insert(name);
    const stored_tensor* t = from_->find(name);
    const std::string wanted = fmt::format("[{}]", fmt::join(shape, ", ")), called = from_->spelled(name);
    if (!t) return fail(errc::bad_file, fmt::format("tensor '{}' {} is missing", called, wanted));
    if (!fits(*t, shape))
      return fail(errc::bad_file, fmt::format("tensor '{}' is {} in the file, but {} implies {}", called,
                                              t->shape_text(), from_->described_by(), wanted));
    const auto type = supported_type(t->dtype);
    if (!type)
      return fail(errc::not_supported,
                  fmt::format("tensor '{}': dtype {} is not supported yet", called, t->dtype));
    return take_type(*type, t->dtype, called);
  }

  // Whether a tensor has a shape, its rows rounded up to stored_tensor::row_unit.
  static bool fits(const stored_tensor& t, std::vector<u64> shape) {
    if (t.row_unit > 1) shape[0] = (shape[0] + t.row_unit - 1) / t.row_unit * t.row_unit;
    return t.shape == shape;
  }

  // The inputs of a tensor's columns; null: in order.
  std::shared_ptr<const std::vector<std::uint32_t>> inputs_of(const part& p) const {
    const stored_tensor* t = from_ ? from_->find(p.name) : nullptr;
    return t ? t->inputs : nullptr;
  }

  bool same_inputs(const part& a, const part& b) const {
    const auto x = inputs_of(a), y = inputs_of(b);
    return x && y ? *x == *y : !x && !y;
  }

  // Types with wide scales occur for linears alone: with such a type, embedding and head are bf16.
  dtype random_type_of(const std::string& name) const {
    const bool linear = name != "model.embed_tokens.weight" && name != "lm_head.weight";
    return linear || !kernels::format_of(random_type_).wide_scales ? random_type_ : dtype::bf16;
  }

  // `type`, if the backend has products for it.
  dtype take_type(dtype type, std::string_view named, std::string_view tensor) {
    const bool takes = kernels::is_plain(type) || (on_.takes_blocks && on_.takes_blocks(on_.self, type));
    if (takes) return type;
    return fail(errc::not_supported,
                fmt::format("tensor '{}': device {} does not run {} weights yet", tensor, on_.name, named));
  }

  kernels::matrix one(std::span<const part> parts, std::uint32_t cols, dtype type) {
    const auto inputs = inputs_of(parts[0]);
    kernels::matrix m{nullptr, type, 0, inputs ? static_cast<std::uint32_t>(inputs->size()) : cols};
    for (const part& p : parts) m.rows += p.rows;
    std::byte* to = take(on_.weight_bytes(on_.self, m.type, m.rows, m.cols));
    add({to, m, true, false, {}}, parts, m.cols);
    m.data = to;
    m.order = kernels::layout::packed;
    if (inputs) {
      m.input_count = cols;
      m.inputs = place_order(inputs);
    }
    return m;
  }

  // The matrices of a stack often have the same order, which is then stored once: backends take its address
  // for the order.
  const std::uint32_t* place_order(const std::shared_ptr<const std::vector<std::uint32_t>>& inputs) {
    if (!last_order_.inputs || *last_order_.inputs != *inputs) {
      last_order_ = {take(inputs->size() * sizeof(std::uint32_t)), inputs};
      if (base_) orders_.push_back(last_order_);
    }
    return reinterpret_cast<const std::uint32_t*>(last_order_.to);
  }

  std::byte* take(u64 bytes) {
    std::byte* at = base_ ? base_ + offset_ : nullptr;
    offset_ += (bytes + alignment - 1) / alignment * alignment;
    return at;
  }

  void add(placed p, std::span<const part> parts, std::uint32_t cols) {
    if (!base_) return;
    for (const part& q : parts)
      p.pieces.push_back({u64{q.rows} * cols, from_ ? from_->find(q.name) : nullptr});
    all_.push_back(std::move(p));
  }

  dtype fail(errc code, std::string message) {
    if (!failure_) failure_ = error{code, std::move(message), {}};
    return random_type_;
  }

  const checkpoint* from_;
  dtype random_type_;
  const kernels::backend& on_;
  std::byte* base_;
  u64 offset_ = 0;
  std::vector<placed> all_;
  std::vector<placed_order> orders_;
  placed_order last_order_{};
  std::set<std::string, std::less<>> used_;
  std::optional<error> failure_;
};

layer_weights lay_out_layer(const model_config& c, const std::string& at, placer& place) {
  const std::uint32_t q = c.q_width(), kv = c.kv_width();
  const std::string attn = at + ".self_attn.", mlp = at + ".mlp.";
  layer_weights w;
  w.attention_norm = place.vector({{at + ".input_layernorm.weight", c.hidden}}, true);
  w.qkv = place.stack(
      {{attn + "q_proj.weight", q}, {attn + "k_proj.weight", kv}, {attn + "v_proj.weight", kv}}, c.hidden);
  if (c.qkv_bias)
    w.qkv.bias = place.vector(
        {{attn + "q_proj.bias", q}, {attn + "k_proj.bias", kv}, {attn + "v_proj.bias", kv}}, false);
  if (c.qk_norm) {
    w.q_norm = place.vector({{attn + "q_norm.weight", c.head_dim}}, true);
    w.k_norm = place.vector({{attn + "k_norm.weight", c.head_dim}}, true);
  }
  w.out.w = place.matrix({attn + "o_proj.weight", c.hidden}, q);
  if (c.out_bias) w.out.bias = place.vector({{attn + "o_proj.bias", c.hidden}}, false);
  w.mlp_norm = place.vector({{at + ".post_attention_layernorm.weight", c.hidden}}, true);
  w.gate_up = place.stack({{mlp + "gate_proj.weight", c.inter}, {mlp + "up_proj.weight", c.inter}}, c.hidden);
  w.down.w = place.matrix({mlp + "down_proj.weight", c.hidden}, c.inter);
  if (c.mlp_bias) {
    w.gate_up.bias =
        place.vector({{mlp + "gate_proj.bias", c.inter}, {mlp + "up_proj.bias", c.inter}}, false);
    w.down.bias = place.vector({{mlp + "down_proj.bias", c.hidden}}, false);
  }
  return w;
}

model_weights lay_out(const model_config& c, placer& place) {
  model_weights w;
  w.embedding = place.table({"model.embed_tokens.weight", c.vocab_size}, c.hidden);
  for (std::uint32_t i = 0; i < c.layers; ++i)
    w.layers.push_back(lay_out_layer(c, fmt::format("model.layers.{}", i), place));
  w.norm = place.vector({{"model.norm.weight", c.hidden}}, true);
  w.head = c.tied ? w.embedding : place.matrix({"lm_head.weight", c.vocab_size}, c.hidden);
  place.check_nothing_left();
  return w;
}

result<weight_plan> plan(const model_config& config, const checkpoint* from, dtype type,
                         const kernels::backend& on) {
  placer measure(from, type, on, nullptr);
  weight_plan out;
  out.weights = lay_out(config, measure);
  if (measure.failure()) return *measure.failure();
  out.bytes = measure.bytes();
  return out;
}

struct planned {
  model_weights weights;
  std::vector<placed> all;
  std::vector<placed_order> orders;
};

result<planned> allocate(const model_config& config, const checkpoint* from, dtype type,
                         const backend_ptr& to) {
  placer measure(from, type, *to, nullptr);
  lay_out(config, measure);
  if (measure.failure()) return *measure.failure();
  kernels::buffer memory(to, measure.bytes());
  if (!memory.data())
    return make_error(errc::does_not_fit, "no memory for weights: {} bytes, {} are free", measure.bytes(),
                      to->free_bytes(to->self));
  placer bind(from, type, *to, memory.data());
  planned p{lay_out(config, bind), std::move(bind.all()), std::move(bind.orders())};
  p.weights.memory = std::move(memory);
  return p;
}

}  // namespace

result<weight_plan> plan_weights(const model_config& config, const checkpoint& from,
                                 const kernels::backend& on) {
  return plan(config, &from, dtype::f32, on);
}

result<weight_plan> plan_random_weights(const model_config& config, dtype type, const kernels::backend& on) {
  return plan(config, nullptr, type, on);
}

result<model_weights> load_weights(const model_config& config, const checkpoint& from, const backend_ptr& to,
                                   const load_progress& progress) {
  auto p = allocate(config, &from, dtype::f32, to);
  if (!p) return p.error();
  for (const placed_order& o : p->orders)
    to->do_upload(to->self, o.to, o.inputs->data(), o.inputs->size() * sizeof(std::uint32_t));
  u64 total = 0, done = 0;
  for (const placed& each : p->all) total += each.rows.bytes();
  const moved_bytes moved = [&](u64 bytes) {
    done += bytes;
    if (progress) progress(done, total);
  };
  const auto filled =
      to->do_begin_upload
          ? upload_slices(p->all, from, to, moved)
          : fill_one_by_one(p->all, *to, [&](const piece& q, std::byte* at, const placed& whole) {
              return read_piece(from, q, whole.rows.type, at, moved);
            });
  if (!filled) return filled.error();
  return std::move(p->weights);
}

result<model_weights> random_weights(const model_config& config, dtype type, u64 seed,
                                     const backend_ptr& to) {
  auto p = allocate(config, nullptr, type, to);
  if (!p) return p.error();
  u64 index = 0;
  const auto next_seed = [&] { return kernels::mix_bits(seed + ++index); };
  if (to->do_fill_random) {
    for (const placed& whole : p->all) {
      kernels::matrix to_fill = whole.rows;
      to_fill.data = whole.to;
      if (!whole.weight) std::swap(to_fill.rows, to_fill.cols);  // the pieces of a vector are no whole rows
      std::uint32_t first = 0;
      for (const piece& q : whole.pieces) {
        const auto rows = static_cast<std::uint32_t>(q.elements / to_fill.cols);
        to->do_fill_random(to->self, to_fill, first, rows, whole.norm, next_seed());
        first += rows;
      }
    }
    return std::move(p->weights);
  }
  const auto filled =
      fill_one_by_one(p->all, *to, [&](const piece& q, std::byte* at, const placed& whole) -> result<void> {
        if (kernels::is_plain(whole.rows.type))
          kernels::fill_random_weights(at, whole.rows.type, q.elements, whole.norm, next_seed());
        else
          kernels::fill_random_blocks(at, whole.rows.type, q.elements, next_seed());
        return {};
      });
  if (!filled) return filled.error();
  return std::move(p->weights);
}

}  // namespace weir::core
