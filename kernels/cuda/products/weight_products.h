// weight_products.h — the products of a decoder with its weights, plain or quantised.
//
// choose_product.h says which function multiplies. Where none multiplies quantised weights as they are, these
// are rounded to bf16 first, in a workspace, and multiplied from there: a matrix that does not fit goes
// through the workspace in pieces. A deterministic device always does that, so that a row's bits do not
// depend on the number of rows.
//
// Where a layer's matrix multiplies another type of elements than the decoder's rows have, x is converted in
// a workspace, and outputs that are rows are converted back. Where a matrix has inputs of its own (tensor.h),
// the elements of x are put in the order of its columns: by the product itself where that can (gathers()),
// otherwise first, in the same workspace. Quantised neighbours in a stack that have the same inputs are one
// product; every other matrix is a product of its own.
//
// Thread safety: the device's (device.h).
#pragma once

#include <map>
#include <span>
#include <tuple>
#include <vector>

#include "kernels/cuda/decoder_room.h"
#include "kernels/cuda/device/grown.h"
#include "kernels/cuda/element.h"
#include "kernels/cuda/products/norm_before.h"
#include "kernels/cuda/products/products.h"
#include "kernels/decoder.h"

namespace weir::kernels::cuda {

class weight_products {
 public:
  weight_products(device& d, const decoder_shape& s);

  // Makes the workspaces as large as decoder_room::rounded and ordered. Returns as grown::reserve() does.
  bool reserve(std::size_t rounded, std::size_t ordered);
  bool has_room() const { return room_.holds(room_bytes_) && ordered_.holds(ordered_bytes_); }

  // out[m, n] = x · wᵀ, or what `kind` says; x is [m, k] of the decoder's type. The rows of w are those of
  // `first`, then those of the matrices in `rest`. `scratch` is [m, n] floats; it is used where `kind` is
  // add_f32. REQUIRES: kind is not gated; room was made for m rows; `order`, that of x, is plain or what
  // order_for() says
  void run(const matrix& first, std::span<const matrix> rest, const element* x, std::uint32_t m, void* out,
           product_out kind, void* scratch, column_order order = column_order::plain);

  // The order in which x is best written for run() or run_gated(), which are then given that order.
  column_order order_for(const matrix& first, std::span<const matrix> rest, std::uint32_t m) const;

  // logits[m, vocab] = x · headᵀ; x is [m, hidden] of multiplied_type(head), in the order that `order` says.
  void run_head(const element* x, std::uint32_t m, float* logits, column_order order);

  // run() of the row that `norm` says, by the kernels that have a norm in front; `kind` may be gated, by
  // `gate`. Returns false where there are no such kernels for the product, and then launches nothing.
  bool run_normed(const matrix& first, std::span<const matrix> rest, const norm_before& norm, std::uint32_t m,
                  void* out, product_out kind, activation gate = activation::silu);

  // Whether the quickest product of m rows with `w` that adds to f32 does so. Otherwise it would read what is
  // there, and then write all of it: a caller that can do without the sum asks for product_out::f32.
  bool adds_quickly(const matrix& w, std::uint32_t m) const;

  // Whether run_gated() can compute f(gate) * up from gate_up at once.
  bool can_fuse_gate(const decoder_layer& l, const feed_forward& f, const element* x, std::uint32_t m) const;
  // `order` is that of x, `out_order` that of `out`; it may be paired only where `order` is.
  void run_gated(const decoder_layer& l, activation gate, const element* x, std::uint32_t m, element* out,
                 column_order order, column_order out_order);

 private:
  struct ordered_row {  // or rows
    const element* at;
    column_order order;
  };
  ordered_row in_order(const matrix& first, std::span<const matrix> rest, const ordered_row& x,
                       std::uint32_t m);
  ordered_row for_matrix(const matrix& first, std::span<const matrix> rest, const ordered_row& x,
                         std::uint32_t m);
  bool takes_pairs(const matrix& first, std::span<const matrix> rest, std::uint32_t m) const;
  bool gathers(const matrix& w, std::uint32_t m, product_out kind) const;
  void run_alike(const matrix& first, std::span<const matrix> rest, product p, void* scratch,
                 column_order order, bool gathers);
  bool stream_stack(const matrix& first, std::span<const matrix> rest, const product& p, column_order order,
                    bool gathers, const norm_before& norm);
  void run_plain(const product& p, void* scratch);
  void run_rounded(std::span<const matrix> parts, product p, void* scratch);
  void round(std::span<const matrix> parts, std::uint32_t first, std::uint32_t count, element* to);

  device& d_;
  const matrix head_;
  const dtype type_;
  products products_;
  // The `samples` of products::run: plain weights of one type and shape in all layers, by rows and columns.
  std::map<std::tuple<dtype, std::uint32_t, std::uint32_t>, std::vector<const void*>> samples_;
  grown room_;     // [room_bytes_]: weights in bf16
  grown ordered_;  // x in the type and in the order that a matrix multiplies
  std::size_t room_bytes_ = 0, ordered_bytes_ = 0;
};

}  // namespace weir::kernels::cuda
