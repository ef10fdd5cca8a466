#include "core/model/placer.h"

#include <algorithm>

#include "kernels/blocks.h"

namespace weir::core {
namespace {

using kernels::dtype;
using u64 = std::uint64_t;

}  // namespace

placer::placer(const checkpoint* from, dtype random_type, bool has_experts, const kernels::backend& on,
               std::byte* base)
    : from_(from), random_type_(random_type), has_experts_(has_experts), on_(on), base_(base) {}

kernels::matrix placer::matrix(const weight_part& p, std::uint32_t cols) {
  return one({&p, 1}, cols, check(p.name, {p.rows, cols}));
}

kernels::matrix placer::table(const weight_part& p, std::uint32_t cols) {
  const kernels::matrix m = matrix(p, cols);
  if (m.input_count)
    fail(errc::not_supported,
         fmt::format("tensor '{}': an embedding whose inputs are in groups of another order, or do not fill "
                     "blocks of 32, is not supported yet",
                     from_->spelled(p.name)));
  return m;
}

linear_weight placer::stack(const std::vector<weight_part>& parts, std::uint32_t cols) {
  std::vector<dtype> types;
  for (const weight_part& p : parts) types.push_back(check(p.name, {p.rows, cols}));
  const bool differ = std::ranges::count(types, types[0]) != static_cast<std::ptrdiff_t>(types.size());
  if (differ && std::ranges::all_of(types, kernels::is_plain)) types.assign(types.size(), dtype::f32);
  const std::span<const weight_part> all(parts);
  linear_weight out;
  for (std::size_t i = 0, end = 0; i < all.size(); i = end) {
    while (end < all.size() && types[end] == types[i] && same_inputs(all[end], all[i])) ++end;
    const kernels::matrix m = one(all.subspan(i, end - i), cols, types[i]);
    i == 0 ? void(out.w = m) : out.rest.push_back(m);
  }
  return out;
}

const float* placer::rows(std::initializer_list<weight_part> list, std::uint32_t cols) {
  const std::span parts(list.begin(), list.size());
  std::uint32_t elements = 0;
  for (const weight_part& p : parts) {
    check(p.name, {p.rows, cols});
    refuse_order(p);
    elements += p.rows * cols;
  }
  std::byte* to = take(u64{elements} * sizeof(float));
  add({to, {nullptr, dtype::f32, 1, elements}, false, false, {}}, parts, cols);
  return reinterpret_cast<const float*>(to);
}

const float* placer::vector(std::initializer_list<weight_part> list) {
  return vector(std::span(list.begin(), list.size()));
}

const float* placer::vector(std::span<const weight_part> parts) {
  std::uint32_t elements = 0;
  for (const weight_part& p : parts) {
    check(p.name, {p.rows});
    elements += p.rows;
  }
  std::byte* to = take(u64{elements} * sizeof(float));
  add({to, {nullptr, dtype::f32, 1, elements}, false, false, {}}, parts, 1);
  return reinterpret_cast<const float*>(to);
}

const float* placer::norm(const std::string& name, std::uint32_t heads, std::uint32_t width, float more) {
  const stored_tensor* found = from_ ? from_->find(name) : nullptr;
  if (heads > 1 && !(found && found->shape.size() == 1))  // a vector where its rows were put in order
    check(name, {heads, width});
  else
    check(name, {heads * width});
  const std::uint32_t elements = heads * width;
  std::byte* to = take(u64{elements} * sizeof(float));
  const weight_part p{name, elements};
  add({to, {nullptr, dtype::f32, 1, elements}, false, true, {}}, {&p, 1}, 1);
  if (base_) all_.back().pieces.back().plus = more;
  return reinterpret_cast<const float*>(to);
}

const float* placer::ones(std::uint32_t elements) {
  std::byte* to = take(u64{elements} * sizeof(float));
  if (base_)
    all_.push_back({to, {nullptr, dtype::f32, 1, elements}, false, false, {{elements, nullptr, 1, true}}});
  return reinterpret_cast<const float*>(to);
}

void placer::check_nothing_left() {
  if (!from_) return;
  for (const auto& [name, tensor] : from_->tensors()) {
    const bool harmless = name.ends_with(".rotary_emb.inv_freq") || name == "lm_head.weight";
    if (!used_.contains(name) && !harmless)
      fail(errc::bad_file, fmt::format("tensor '{}' {} is in the file, but {} implies no such tensor",
                                       from_->spelled(name), tensor.shape_text(), from_->described_by()));
  }
}

void placer::refuse(std::string_view thing) {
  fail(errc::not_supported, fmt::format("{} are not supported yet", thing));
}

dtype placer::check(const std::string& name, std::vector<u64> shape) {
  if (!from_) return take_type(random_type_of(name), kernels::name(random_type_of(name)), name);
  used_.insert(name);
  // Messages are made where there is a failure alone: a mixture has tens of thousands of tensors.
  const stored_tensor* t = from_->find(name);
  const auto wanted = [&] { return fmt::format("[{}]", fmt::join(shape, ", ")); };
  if (!t)
    return fail(errc::bad_file, fmt::format("tensor '{}' {} is missing", from_->spelled(name), wanted()));
  if (!fits(*t, shape))
    return fail(errc::bad_file,
                fmt::format("tensor '{}' is {} in the file, but {} implies {}", from_->spelled(name),
                            t->shape_text(), from_->described_by(), wanted()));
  const auto type = supported_type(t->dtype);
  if (!type)
    return fail(errc::not_supported,
                fmt::format("tensor '{}': dtype {} is not supported yet", from_->spelled(name), t->dtype));
  return take_type(*type, t->dtype, name);
}

// Whether a tensor has a shape, its rows rounded up to stored_tensor::row_unit.
bool placer::fits(const stored_tensor& t, std::vector<u64> shape) {
  if (t.row_unit > 1) shape[0] = (shape[0] + t.row_unit - 1) / t.row_unit * t.row_unit;
  return t.shape == shape;
}

// The inputs of a tensor's columns; null: in order.
std::shared_ptr<const std::vector<std::uint32_t>> placer::inputs_of(const weight_part& p) const {
  const stored_tensor* t = from_ ? from_->find(p.name) : nullptr;
  return t ? t->inputs : nullptr;
}

bool placer::same_inputs(const weight_part& a, const weight_part& b) const {
  const auto x = inputs_of(a), y = inputs_of(b);
  return x && y ? *x == *y : !x && !y;
}

// The type that a tensor of a random model has. Types with wide scales are for linears alone: embedding and
// head are bf16 beside them. In a mixture mxfp4 is for experts alone: all other tensors are bf16.
dtype placer::random_type_of(const std::string& name) const {
  if (random_type_ == dtype::mxfp4 && has_experts_)
    return name.find(".mlp.experts.") != name.npos ? random_type_ : dtype::bf16;
  const bool linear = name != "model.embed_tokens.weight" && name != "lm_head.weight";
  return linear || !kernels::format_of(random_type_).wide_scales ? random_type_ : dtype::bf16;
}

// `type`, if the backend has products for it.
dtype placer::take_type(dtype type, std::string_view named, const std::string& tensor) {
  const bool takes = kernels::is_plain(type) || (on_.takes_blocks && on_.takes_blocks(on_.self, type));
  if (takes) return type;
  return fail(errc::not_supported, fmt::format("tensor '{}': device {} does not run {} weights yet",
                                               from_ ? from_->spelled(tensor) : tensor, on_.name, named));
}

kernels::matrix placer::one(std::span<const weight_part> parts, std::uint32_t cols, dtype type) {
  const auto inputs = inputs_of(parts[0]);
  kernels::matrix m{nullptr, type, 0, inputs ? static_cast<std::uint32_t>(inputs->size()) : cols};
  for (const weight_part& p : parts) m.rows += p.rows;
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
const std::uint32_t* placer::place_order(const std::shared_ptr<const std::vector<std::uint32_t>>& inputs) {
  if (!last_order_.inputs || *last_order_.inputs != *inputs) {
    last_order_ = {take(inputs->size() * sizeof(std::uint32_t)), inputs};
    if (base_) orders_.push_back(last_order_);
  }
  return reinterpret_cast<const std::uint32_t*>(last_order_.to);
}

std::byte* placer::take(u64 bytes) {
  std::byte* at = base_ ? base_ + offset_ : nullptr;
  offset_ += (bytes + alignment - 1) / alignment * alignment;
  return at;
}

void placer::add(placed p, std::span<const weight_part> parts, std::uint32_t cols) {
  if (!base_) return;
  for (const weight_part& q : parts)
    p.pieces.push_back({u64{q.rows} * cols, from_ ? from_->find(q.name) : nullptr, 0, false});
  all_.push_back(std::move(p));
}

dtype placer::fail(errc code, std::string message) {
  if (!failure_) failure_ = error{code, std::move(message), {}};
  return random_type_;
}

}  // namespace weir::core
