#include "core/model/weights.h"

#include <algorithm>
#include <initializer_list>
#include <iterator>
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
  placer(const checkpoint* from, dtype random_type, bool has_experts, const kernels::backend& on,
         std::byte* base)
      : from_(from), random_type_(random_type), has_experts_(has_experts), on_(on), base_(base) {}

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
  linear_weight stack(const std::vector<part>& parts, std::uint32_t cols) {
    std::vector<dtype> types;
    for (const part& p : parts) types.push_back(check(p.name, {p.rows, cols}));
    const bool differ = std::ranges::count(types, types[0]) != static_cast<std::ptrdiff_t>(types.size());
    if (differ && std::ranges::all_of(types, kernels::is_plain)) types.assign(types.size(), dtype::f32);
    const std::span<const part> all(parts);
    linear_weight out;
    for (std::size_t i = 0, end = 0; i < all.size(); i = end) {
      while (end < all.size() && types[end] == types[i] && same_inputs(all[end], all[i])) ++end;
      const kernels::matrix m = one(all.subspan(i, end - i), cols, types[i]);
      i == 0 ? void(out.w = m) : out.rest.push_back(m);
    }
    return out;
  }

  // A matrix for each of `all`, whose parts are stacked along their rows: all of one type and behind each
  // other. Plain types that differ become f32.
  kernels::expert_matrices experts(const std::vector<std::vector<part>>& all, std::uint32_t cols) {
    const dtype type = type_of_all(all, cols);
    kernels::expert_matrices out;
    out.count = static_cast<std::uint32_t>(all.size());
    for (const std::vector<part>& parts : all) {
      const kernels::matrix m = one(parts, cols, type);
      if (&parts == &all.front()) out.first = m;
    }
    const u64 bytes = on_.weight_bytes(on_.self, out.first.type, out.first.rows, out.first.cols);
    out.stride = (bytes + alignment - 1) / alignment * alignment;
    return out;
  }

  // Matrices of f32 behind each other.
  const float* rows(std::initializer_list<part> list, std::uint32_t cols) {
    const std::span parts(list.begin(), list.size());
    std::uint32_t elements = 0;
    for (const part& p : parts) {
      check(p.name, {p.rows, cols});
      refuse_order(p);
      elements += p.rows * cols;
    }
    std::byte* to = take(u64{elements} * sizeof(float));
    add({to, {nullptr, dtype::f32, 1, elements}, false, false, {}}, parts, cols);
    return reinterpret_cast<const float*>(to);
  }

  // Parts behind each other, in f32.
  const float* vector(std::initializer_list<part> list) {
    return vector(std::span(list.begin(), list.size()));
  }
  const float* vector(std::span<const part> parts) {
    std::uint32_t elements = 0;
    for (const part& p : parts) {
      check(p.name, {p.rows});
      elements += p.rows;
    }
    std::byte* to = take(u64{elements} * sizeof(float));
    add({to, {nullptr, dtype::f32, 1, elements}, false, false, {}}, parts, 1);
    return reinterpret_cast<const float*>(to);
  }

  // The weights of a norm in f32, each plus `more`. A norm of heads may have a row for each head.
  const float* norm(const std::string& name, std::uint32_t heads, std::uint32_t width, float more) {
    const stored_tensor* found = from_ ? from_->find(name) : nullptr;
    if (heads > 1 && !(found && found->shape.size() == 1))  // a vector where its rows were put in order
      check(name, {heads, width});
    else
      check(name, {heads * width});
    const std::uint32_t elements = heads * width;
    std::byte* to = take(u64{elements} * sizeof(float));
    const part p{name, elements};
    add({to, {nullptr, dtype::f32, 1, elements}, false, true, {}}, {&p, 1}, 1);
    if (base_) all_.back().pieces.back().plus = more;
    return reinterpret_cast<const float*>(to);
  }

  // A vector of ones, for a norm without weights.
  const float* ones(std::uint32_t elements) {
    std::byte* to = take(u64{elements} * sizeof(float));
    if (base_)
      all_.push_back({to, {nullptr, dtype::f32, 1, elements}, false, false, {{elements, nullptr, 1, true}}});
    return reinterpret_cast<const float*>(to);
  }

  // Whether the files have a tensor of this name. Random models have every tensor by itself.
  bool has(const std::string& name) const { return from_ && from_->find(name); }

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

  void refuse(std::string_view thing) {
    fail(errc::not_supported, fmt::format("{} are not supported yet", thing));
  }

  // Refuses a mixture of experts where the backend has no operations for it.
  void need_experts() {
    if (on_.do_route && on_.do_expert_linear && on_.do_mix_experts) return;
    fail(errc::not_supported, fmt::format("device {} does not run mixtures of experts yet", on_.name));
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

  // The type of the matrices of experts.
  dtype type_of_all(const std::vector<std::vector<part>>& all, std::uint32_t cols) {
    std::optional<dtype> type;
    const part* of = nullptr;
    for (const std::vector<part>& parts : all)
      for (const part& p : parts) {
        const dtype found = check(p.name, {p.rows, cols});
        refuse_order(p);
        if (!type) of = &p;
        if (type.value_or(found) != found && kernels::is_plain(*type) && kernels::is_plain(found))
          type = dtype::f32;
        else if (type.value_or(found) != found)
          refuse_types(*of, *type, p, found);
        else
          type = found;
      }
    return *type;
  }

  void refuse_types(const part& a, dtype first, const part& b, dtype second) {
    fail(errc::not_supported,
         fmt::format("tensors '{}' and '{}': experts of types {} and {} are not supported yet",
                     from_->spelled(a.name), from_->spelled(b.name), kernels::name(first),
                     kernels::name(second)));
  }

  void refuse_order(const part& p) {
    if (inputs_of(p))
      fail(errc::not_supported,
           fmt::format("tensor '{}': experts whose inputs are in groups of another order, or do not fill "
                       "blocks of 32, are not supported yet",
                       from_->spelled(p.name)));
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

  // Types with wide scales occur for linears alone: with such a type, embedding and head are bf16. mxfp4
  // occurs for experts alone, where there are any: all else is bf16 then.
  dtype random_type_of(const std::string& name) const {
    if (random_type_ == dtype::mxfp4 && has_experts_)
      return name.find(".mlp.experts.") != name.npos ? random_type_ : dtype::bf16;
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
      p.pieces.push_back({u64{q.rows} * cols, from_ ? from_->find(q.name) : nullptr, 0, false});
    all_.push_back(std::move(p));
  }

  dtype fail(errc code, std::string message) {
    if (!failure_) failure_ = error{code, std::move(message), {}};
    return random_type_;
  }

  const checkpoint* from_;
  dtype random_type_;
  bool has_experts_;
  const kernels::backend& on_;
  std::byte* base_;
  u64 offset_ = 0;
  std::vector<placed> all_;
  std::vector<placed_order> orders_;
  placed_order last_order_{};
  std::set<std::string, std::less<>> used_;
  std::optional<error> failure_;
};

// Lays out the weights of one layer.
class layer_placer {
 public:
  layer_placer(const model_config& c, std::uint32_t number, placer& place)
      : c_(c), layer_(c.shape.layers[number]), at_(fmt::format("model.layers.{}.", number)), place_(place) {}

  layer_weights lay_out() {
    const norm_names& names = c_.stored.norms;
    layer_weights w;
    w.attention_norm = norm(names.attention);
    place_attention(w);
    w.attention_behind = norm(names.attention_behind);
    w.mlp_norm = norm(names.mlp);
    place_feed_forward(w);
    w.mlp_behind = norm(names.mlp_behind);
    return w;
  }

 private:
  float more() const { return c_.stored.plus_one ? 1.0f : 0.0f; }

  kernels::norm_weight norm(std::string_view name) {
    if (name.empty()) return {};
    const std::string full = at_ + std::string(name);
    kernels::norm_weight n{place_.norm(full + ".weight", 1, c_.shape.hidden, more()), nullptr};
    if (c_.stored.norm_bias) n.bias = place_.vector({{full + ".bias", c_.shape.hidden}});
    return n;
  }

  const float* head_norm(const std::string& name, std::uint32_t heads) {
    const kernels::attention_mixer& a = layer_.mixer;
    if (c_.stored.weightless_heads) return place_.ones(a.head_dim);
    const bool row = a.norms == kernels::head_norms::row, own = a.norms == kernels::head_norms::own;
    return place_.norm(name, own ? heads : 1, row ? heads * a.head_dim : a.head_dim, more());
  }

  void place_attention(layer_weights& w) {
    const kernels::attention_mixer& a = layer_.mixer;
    const std::uint32_t q = a.q_width(), kv = a.kv_width(), hidden = c_.shape.hidden;
    const std::string attn = at_ + "self_attn.", fused = attn + "qkv_proj";
    if (place_.has(fused + ".weight")) {
      w.qkv = place_.stack({{fused + ".weight", a.width()}}, hidden);
      if (c_.stored.qkv_bias) w.qkv.bias = place_.vector({{fused + ".bias", a.width()}});
    } else {
      std::vector<part> parts{
          {attn + "q_proj.weight", q}, {attn + "k_proj.weight", kv}, {attn + "v_proj.weight", kv}};
      if (a.gated) parts.push_back({attn + "gate_proj.weight", q});
      w.qkv = place_.stack(parts, hidden);
      if (c_.stored.qkv_bias && a.gated)
        place_.refuse(fmt::format("biases of queries, keys and values beside {}gate_proj", attn));
      if (c_.stored.qkv_bias)
        w.qkv.bias = place_.vector(
            {{attn + "q_proj.bias", q}, {attn + "k_proj.bias", kv}, {attn + "v_proj.bias", kv}});
    }
    if (a.norms != kernels::head_norms::none) {
      w.q_norm = head_norm(attn + "q_norm.weight", a.heads);
      w.k_norm = head_norm(attn + "k_norm.weight", a.kv_heads);
    }
    if (a.sinks) w.sinks = place_.vector({{attn + "sinks", a.heads}});
    w.out.w = place_.matrix({attn + "o_proj.weight", hidden}, q);
    if (c_.stored.out_bias) w.out.bias = place_.vector({{attn + "o_proj.bias", hidden}});
  }

  void place_feed_forward(layer_weights& w) {
    if (!layer_.mlp.is_mixture()) return place_mlp(w, at_ + "mlp.", layer_.mlp.inter, c_.stored.mlp_bias);
    place_.need_experts();
    place_router(w.experts);
    place_experts(w.experts);
    if (layer_.mlp.shared) place_mlp(w, at_ + "mlp.shared_expert.", layer_.mlp.shared, c_.stored.mlp_bias);
  }

  void place_router(kernels::expert_weights& e) {
    const std::string gate = at_ + "mlp.gate.";
    const std::uint32_t experts = layer_.mlp.router.experts, hidden = c_.shape.hidden;
    const part router{gate + "weight", experts}, shared{at_ + "mlp.shared_expert_gate.weight", 1};
    e.router = layer_.mlp.shared_gate ? place_.rows({router, shared}, hidden) : place_.rows({router}, hidden);
    if (c_.stored.router_bias) e.router_bias = place_.vector({{gate + "bias", experts}});
    if (layer_.mlp.router.choice_bias)
      e.choice_bias = place_.vector({{gate + "e_score_correction_bias", experts}});
  }

  // The parts that an expert's gate and up have in the files.
  std::vector<part> gate_up_of(const std::string& expert, const char* ending) const {
    const std::uint32_t inter = layer_.mlp.inter;
    const part fused{expert + "gate_up_proj" + ending, layer_.mlp.width()};
    if (place_.has(fused.name)) return {fused};
    if (!layer_.mlp.gated) return {{expert + "up_proj" + ending, inter}};
    return {{expert + "gate_proj" + ending, inter}, {expert + "up_proj" + ending, inter}};
  }

  void place_experts(kernels::expert_weights& e) {
    std::vector<std::vector<part>> first, second;
    std::vector<part> first_bias, second_bias;
    for (std::uint32_t i = 0; i < layer_.mlp.router.experts; ++i) {
      const std::string expert = fmt::format("{}mlp.experts.{}.", at_, i);
      first.push_back(gate_up_of(expert, ".weight"));
      second.push_back({{expert + "down_proj.weight", c_.shape.hidden}});
      std::ranges::move(gate_up_of(expert, ".bias"), std::back_inserter(first_bias));
      second_bias.push_back({expert + "down_proj.bias", c_.shape.hidden});
    }
    e.gate_up = place_.experts(first, c_.shape.hidden);
    e.down = place_.experts(second, layer_.mlp.inter);
    if (!c_.stored.expert_bias) return;
    e.gate_up_bias = place_.vector(first_bias);
    e.down_bias = place_.vector(second_bias);
  }

  // A dense feed-forward, or the shared expert of a mixture, of `inter`.
  void place_mlp(layer_weights& w, const std::string& mlp, std::uint32_t inter, bool bias) {
    const std::uint32_t width = layer_.mlp.gated ? 2 * inter : inter, hidden = c_.shape.hidden;
    const bool shared = place_.has(at_ + "shared_mlp.input_linear.weight");
    const std::string fused = shared ? at_ + "shared_mlp.input_linear" : mlp + "gate_up_proj";
    const std::string gate = mlp + "gate_proj", up = mlp + "up_proj";
    const std::string down = shared ? at_ + "shared_mlp.output_linear" : mlp + "down_proj";
    if (place_.has(fused + ".weight")) {
      w.gate_up = place_.stack({{fused + ".weight", width}}, hidden);
      if (bias) w.gate_up.bias = place_.vector({{fused + ".bias", width}});
    } else if (layer_.mlp.gated) {
      w.gate_up = place_.stack({{gate + ".weight", inter}, {up + ".weight", inter}}, hidden);
      if (bias) w.gate_up.bias = place_.vector({{gate + ".bias", inter}, {up + ".bias", inter}});
    } else {
      w.gate_up = place_.stack({{up + ".weight", inter}}, hidden);
      if (bias) w.gate_up.bias = place_.vector({{up + ".bias", inter}});
    }
    w.down.w = place_.matrix({down + ".weight", hidden}, inter);
    if (bias) w.down.bias = place_.vector({{down + ".bias", hidden}});
  }

  const model_config& c_;
  const kernels::layer_shape& layer_;
  const std::string at_;
  placer& place_;
};

model_weights lay_out(const model_config& c, placer& place) {
  const kernels::model_shape& s = c.shape;
  model_weights w;
  w.embedding = place.table({"model.embed_tokens.weight", s.vocab}, s.hidden);
  if (s.embed_norm) w.embed_norm = place.ones(s.hidden);
  w.read_by_steps = c.stored.tied ? 0 : place.bytes();
  for (std::uint32_t i = 0; i < c.layers() && !place.failure(); ++i)
    w.layers.push_back(layer_placer(c, i, place).lay_out());
  const float more = c.stored.plus_one && !c.stored.final_plain ? 1.0f : 0.0f;
  w.norm.weight = place.norm("model.norm.weight", 1, s.hidden, more);
  if (c.stored.norm_bias) w.norm.bias = place.vector({{"model.norm.bias", s.hidden}});
  w.head = c.stored.tied ? w.embedding : place.matrix({"lm_head.weight", s.vocab}, s.hidden);
  place.check_nothing_left();
  return w;
}

bool has_experts(const model_config& c) {
  return std::ranges::any_of(c.shape.layers,
                             [](const kernels::layer_shape& l) { return l.mlp.is_mixture(); });
}

result<weight_plan> plan(const model_config& config, const checkpoint* from, dtype type,
                         const kernels::backend& on) {
  placer measure(from, type, has_experts(config), on, nullptr);
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
  placer measure(from, type, has_experts(config), *to, nullptr);
  lay_out(config, measure);
  if (measure.failure()) return *measure.failure();
  kernels::buffer memory(to, measure.bytes());
  if (!memory.data())
    return make_error(errc::does_not_fit, "no memory for weights: {} bytes, {} are free", measure.bytes(),
                      to->free_bytes(to->self));
  placer bind(from, type, has_experts(config), *to, memory.data());
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
      if (whole.pieces.front().constant) {
        const std::vector<float> ones(whole.rows.cols, whole.pieces.front().plus);
        to->do_upload(to->self, whole.to, ones.data(), ones.size() * sizeof(float));
        continue;
      }
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
        if (q.constant)
          fill_constant(q, at);
        else if (kernels::is_plain(whole.rows.type))
          kernels::fill_random_weights(at, whole.rows.type, q.elements, whole.norm, next_seed());
        else
          kernels::fill_random_blocks(at, whole.rows.type, q.elements, next_seed());
        return {};
      });
  if (!filled) return filled.error();
  return std::move(p->weights);
}

}  // namespace weir::core
