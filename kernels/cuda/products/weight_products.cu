#include "kernels/cuda/products/weight_products.h"

#include <algorithm>

#include "kernels/cuda/device/launch.h"
#include "kernels/cuda/layers.h"
#include "kernels/cuda/products/block_layout.h"
#include "kernels/cuda/products/gate.h"
#include "kernels/cuda/products/launch_product.h"

namespace weir::kernels::cuda {
namespace {

std::vector<matrix> stack_of(const matrix& first, std::span<const matrix> rest) {
  std::vector<matrix> all{first};
  all.insert(all.end(), rest.begin(), rest.end());
  return all;
}

bool is_quantised(const matrix& m) { return !is_plain(m.type); }

// A thread converts eight elements of one type to the other. A number whose magnitude an f16 cannot have
// becomes the nearest that it can.
template <dtype from, dtype to>
__global__ void convert_kernel(const uint4* x, std::uint32_t eights, std::uint32_t stride, uint4* out) {
  let_next_start();
  wait_for_previous();
  const std::uint32_t i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= eights) return;
  const auto converted = [](std::uint32_t pair) {
    const float2 two = floats_of<from>(pair);
    return pair_of<to>(two.x, two.y);
  };
  const std::size_t at = std::size_t{blockIdx.y} * stride + i;
  const uint4 v = __ldcg(x + at);
  out[at] = make_uint4(converted(v.x), converted(v.y), converted(v.z), converted(v.w));
}

// Converts x [rows, columns] from type `from` to the other type of elements. `out` has the same shape, and
// rows as far apart; it may be `x`. REQUIRES: columns and stride are multiples of 8
void convert(device& d, dtype from, const element* x, std::uint32_t rows, std::uint32_t columns,
             std::uint32_t stride, element* out) {
  const auto kernel =
      from == dtype::f16 ? convert_kernel<dtype::f16, dtype::bf16> : convert_kernel<dtype::bf16, dtype::f16>;
  constexpr unsigned threads = 256;
  launch(d, kernel, dim3((columns / 8 + threads - 1) / threads, rows), threads, 0,
         reinterpret_cast<const uint4*>(x), columns / 8, stride / 8, reinterpret_cast<uint4*>(out));
}

}  // namespace

weight_products::weight_products(device& d, const decoder_shape& s)
    : d_(d), head_(s.head), type_(rows_type(s)), products_(d), room_(d), ordered_(d) {
  for_products(s, [&](const matrix& first, std::span<const matrix> rest) {
    for (const matrix& m : stack_of(first, rest))
      if (!is_quantised(m)) samples_[{m.type, m.rows, m.cols}].push_back(m.data);
  });
}

bool weight_products::reserve(std::size_t rounded, std::size_t ordered) {
  room_bytes_ = rounded;
  ordered_bytes_ = ordered;
  const bool moved = room_.reserve(room_bytes_);
  return ordered_.reserve(ordered_bytes_) || moved;
}

// x in the order of the inputs that `first` and `rest` share.
weight_products::ordered_row weight_products::in_order(const matrix& first, std::span<const matrix> rest,
                                                       const ordered_row& x, std::uint32_t m) {
  if (first.input_count == 0) return x;
  auto* const to = ordered_.as<element>();
  const column_order order = takes_pairs(first, rest, m) ? column_order::paired : column_order::plain;
  order_inputs(d_, first, x.at, m, to, order);
  return {to, order};
}

// What `first` and `rest` multiply: x as it is, or in their type and in their order.
weight_products::ordered_row weight_products::for_matrix(const matrix& first, std::span<const matrix> rest,
                                                         const ordered_row& x, std::uint32_t m) {
  const ordered_row in = in_order(first, rest, x, m);
  const dtype type = multiplied_type(first);
  if (type == type_) return in;
  auto* const to = ordered_.as<element>();
  convert(d_, type_, in.at, m, first.cols, first.cols, to);
  return {to, in.order};
}

// Whether the product itself puts x in the order of the inputs of `w`.
bool weight_products::gathers(const matrix& w, std::uint32_t m, product_out kind) const {
  block_product p{w, nullptr, m, nullptr, kind};
  p.gathers = true;
  return w.input_count != 0 && function_for(d_, p) != product_function::none;
}

void weight_products::run(const matrix& first, std::span<const matrix> rest, const element* x,
                          std::uint32_t m, void* out, product_out kind, void* scratch, column_order order) {
  const std::size_t size = kind == product_out::element ? sizeof(element) : sizeof(float);
  std::uint32_t all = first.rows, at = 0;
  for (const matrix& w : rest) all += w.rows;
  for (std::size_t i = 0, end = 0; i <= rest.size(); i = end) {
    const matrix& one = i == 0 ? first : rest[i - 1];
    std::uint32_t rows = one.rows;
    const dtype type = multiplied_type(one);
    const auto is_alike = [&](const matrix& w) {
      return is_quantised(w) && is_quantised(one) && w.inputs == one.inputs;
    };
    for (end = i + 1; end <= rest.size() && is_alike(rest[end - 1]); ++end) rows += rest[end - 1].rows;
    const std::span more = rest.subspan(i, end - i - 1);
    const auto takes = [&](const matrix& w) { return gathers(w, m, kind); };
    const bool in_product = type == type_ && takes(one) && std::ranges::all_of(more, takes);
    const ordered_row from = in_product ? ordered_row{x, order} : for_matrix(one, more, {x, order}, m);
    auto* const to = static_cast<std::byte*>(out) + at * size;
    product p{type, one.data, rows, one.cols, from.at, m, to, kind};
    p.out_stride = rows < all ? all : 0;
    run_alike(one, more, p, scratch, from.order, in_product);
    if (auto* const rows_out = reinterpret_cast<element*>(to); type != type_ && kind == product_out::element)
      convert(d_, type, rows_out, m, rows, all, rows_out);
    at += rows;
  }
}

void weight_products::run_head(const element* x, std::uint32_t m, float* logits, column_order order) {
  const bool in_product = gathers(head_, m, product_out::f32);
  const ordered_row in = in_product ? ordered_row{x, order} : in_order(head_, {}, {x, order}, m);
  run_alike(head_, {},
            {multiplied_type(head_), head_.data, head_.rows, head_.cols, in.at, m, logits, product_out::f32},
            nullptr, in.order, in_product);
}

// Multiplies one plain matrix, or quantised matrices with the same inputs, whose outputs are columns of
// p.out.
void weight_products::run_alike(const matrix& first, std::span<const matrix> rest, product p, void* scratch,
                                column_order order, bool gathers) {
  if (!is_quantised(first)) return run_plain(p, scratch);
  if (!stream_stack(first, rest, p, order, gathers, {})) run_rounded(stack_of(first, rest), p, scratch);
}

// Multiplies quantised matrices as they are, with `norm` in front where there is one. `gathers`: the row is
// not in the order of their inputs yet. Returns false where no kernel does, and then launches nothing.
bool weight_products::stream_stack(const matrix& first, std::span<const matrix> rest, const product& p,
                                   column_order order, bool gathers, const norm_before& norm) {
  const bool floats = p.kind == product_out::f32 || p.kind == product_out::add_f32;
  const std::size_t size = floats ? sizeof(float) : sizeof(element);
  // Calls f with the parts of the stack, one after another. Returns whether f returned true for all of them.
  const auto each = [&](const auto& f) {
    std::uint32_t at = 0;
    const auto part = [&](const matrix& w) {
      auto* const to = static_cast<std::byte*>(p.out) + at * size;
      block_product b{w, static_cast<const element*>(p.x), p.m, to, p.kind, p.stride(), order};
      b.norm = norm;
      b.gate = p.gate;
      b.gathers = gathers && w.input_count != 0;
      at += w.rows;
      return f(b);
    };
    bool good = part(first);
    for (const matrix& w : rest) good &= part(w);
    return good;
  };
  const bool can = each([&](const block_product& b) { return reads_blocks(function_for(d_, b)); });
  if (can)
    each([&](const block_product& b) {
      launch_product(d_, function_for(d_, b), b);
      return true;
    });
  return can;
}

bool weight_products::run_normed(const matrix& first, std::span<const matrix> rest, const norm_before& norm,
                                 std::uint32_t m, void* out, product_out kind, activation gate) {
  const auto takes = [&](const matrix& w) {
    return multiplied_type(w) == type_ && is_quantised(w) == is_quantised(first);
  };
  if (m != 1 || !takes(first) || !std::ranges::all_of(rest, takes)) return false;
  product p{type_, first.data, first.rows, first.cols, nullptr, m, out, kind};
  p.gate = gate;
  if (is_quantised(first)) {
    for (const matrix& w : rest) p.n += w.rows;
    return stream_stack(first, rest, p, column_order::plain, true, norm);
  }
  const product_function by = rest.empty() ? function_for(d_, p, true) : product_function::none;
  if (by == product_function::none) return false;
  launch_product(d_, by, p, norm);
  return true;
}

column_order weight_products::order_for(const matrix& first, std::span<const matrix> rest,
                                        std::uint32_t m) const {
  const auto has_order = [](const matrix& w) { return w.input_count != 0; };
  const bool plain = has_order(first) || std::ranges::any_of(rest, has_order) || !takes_pairs(first, rest, m);
  return plain ? column_order::plain : column_order::paired;
}

// Whether products of m rows with a stack take them in paired order.
bool weight_products::takes_pairs(const matrix& first, std::span<const matrix> rest, std::uint32_t m) const {
  const auto wide = [&](const matrix& w) {
    const block_product p{w, nullptr, m, nullptr, product_out::element, 0, column_order::paired};
    return function_for(d_, p) != product_function::none;
  };
  return wide(first) && std::ranges::all_of(rest, wide);
}

void weight_products::run_plain(const product& p, void* scratch) {
  const product_function by = function_for(d_, p);
  if (by != product_function::blas) return launch_product(d_, by, p);
  const auto it = samples_.find({p.type, p.n, p.k});
  const std::span<const void* const> samples =
      it == samples_.end() ? std::span<const void* const>() : std::span<const void* const>(it->second);
  products_.run(p, samples, p.kind == product_out::add_f32 ? scratch : p.out);
}

// Rounds the weights and multiplies them, one piece of the rows after the other, all by one function: a piece
// begins where cuBLASLt expects it if the first one does.
void weight_products::run_rounded(std::span<const matrix> parts, product p, void* scratch) {
  const std::uint32_t all = p.n, stride = p.stride();
  const auto held = static_cast<std::uint32_t>(room_bytes_ / (std::uint64_t{p.k} * sizeof(element)));
  const std::uint32_t most = held >= all ? all : std::max(held / rounded_rows, 1u) * rounded_rows;
  const std::size_t size = p.kind == product_out::element ? sizeof(element) : sizeof(float);
  auto* const out = static_cast<std::byte*>(p.out);
  p.w = room_.as<void>();
  p.out_stride = most < stride ? stride : 0;
  p.fresh = true;
  const product_function by = function_for(d_, p);
  for (std::uint32_t at = 0; at < all && !d_.failed(); at += most) {
    p.n = std::min(most, all - at);
    p.out = out + at * size;
    round(parts, at, p.n, room_.as<element>());
    if (by == product_function::blas)
      products_.run(p, {}, p.kind == product_out::add_f32 ? scratch : p.out);
    else
      launch_product(d_, by, p);
  }
}

// Writes rows [first, first + count) of the stack to `to`, in bf16.
void weight_products::round(std::span<const matrix> parts, std::uint32_t first, std::uint32_t count,
                            element* to) {
  for (const matrix& m : parts) {
    const std::uint32_t here = std::min(count, m.rows > first ? m.rows - first : 0);
    if (here == 0) {
      first -= m.rows;
      continue;
    }
    unpack_blocks(d_, m, first, here, to);
    to += std::size_t{here} * m.cols;
    count -= here;
    first = 0;
    if (count == 0) return;
  }
}

bool weight_products::adds_quickly(const matrix& w, std::uint32_t m) const {
  if (multiplied_type(w) != type_) return false;
  const product_function by =
      is_quantised(w) ? function_for(d_, block_product{w, nullptr, m, nullptr, product_out::add_f32})
                      : function_for(d_, product{type_, w.data, w.rows, w.cols, nullptr, m, nullptr,
                                                 product_out::add_f32});
  return by != product_function::blas && by != product_function::tile_product;
}

bool weight_products::can_fuse_gate(const decoder_layer& l, const feed_forward& f, const element* x,
                                    std::uint32_t m) const {
  if (!f.gated || !can_gate(f.kind)) return false;
  if (l.gate_up_bias || !l.gate_up_rest.empty() || multiplied_type(l.gate_up) != type_) return false;
  const matrix& w = l.gate_up;
  const product_function by =
      is_quantised(w)
          ? function_for(d_, block_product{w, x, m, nullptr, product_out::gated})
          : function_for(d_, product{type_, w.data, w.rows, w.cols, x, m, nullptr, product_out::gated});
  return by != product_function::none;
}

void weight_products::run_gated(const decoder_layer& l, activation gate, const element* said, std::uint32_t m,
                                element* out, column_order order, column_order out_order) {
  const matrix& w = l.gate_up;
  const bool in_product = gathers(w, m, product_out::gated);
  const ordered_row x = in_product ? ordered_row{said, order} : for_matrix(w, {}, {said, order}, m);
  if (is_quantised(w)) {
    block_product p{w, x.at, m, out, product_out::gated, 0, x.order, out_order};
    p.gate = gate;
    p.gathers = in_product;
    return launch_product(d_, function_for(d_, p), p);
  }
  product p{type_, w.data, w.rows, w.cols, x.at, m, out, product_out::gated};
  p.gate = gate;
  launch_product(d_, function_for(d_, p), p);
}

}  // namespace weir::kernels::cuda
