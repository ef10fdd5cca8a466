// products.h — matrix products out = x · wᵀ on a CUDA device, with plain weights.
//
// Products of elements (element.h) are for the decoder: few rows are multiplied by our own kernels, which
// stream the weights, and more rows by cuBLASLt with an algorithm that is searched once for each shape.
// Products of f32 go through cuBLASLt, in f32 throughout (no TF32). choose_product.h says which function a
// product has, and launch_product.h launches it.
//
// Thread safety: the device's (device.h).
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <tuple>
#include <type_traits>
#include <vector>

#include "kernels/cuda/decoder_room.h"
#include "kernels/cuda/device/device.h"
#include "kernels/cuda/products/choose_product.h"
#include "kernels/cuda/products/norm_before.h"

namespace weir::kernels::cuda {

// One product, all in memory of the device.
struct product {
  dtype type = dtype::bf16;  // of w and x
  const void* w = nullptr;   // [n, k]
  std::uint32_t n = 0, k = 0;
  const void* x = nullptr;  // [m, k]
  std::uint32_t m = 0;
  void* out = nullptr;
  product_out kind = product_out::element;
  // Elements of `out` from one row to the next; 0: as many as a row has. More where the outputs are some
  // columns of a wider array, which only `products` and tile_product() support.
  std::uint32_t out_stride = 0;
  bool fresh = false;                  // the kernel in front of the product writes w
  activation gate = activation::silu;  // f, where `kind` is gated

  std::uint32_t stride() const noexcept {
    return out_stride ? out_stride : kind == product_out::gated ? n / 2 : n;
  }
};

// Calls f(type, kind) with the type and the kind of a product of elements as constants, which a kernel has as
// template parameters.
template <class F>
void with_constants(const product& p, F&& f) {
  const auto with_kind = [&](auto type) {
    const auto call = [&]<product_out kind>() { f(type, std::integral_constant<product_out, kind>()); };
    switch (p.kind) {
      case product_out::element:
        return call.template operator()<product_out::element>();
      case product_out::f32:
        return call.template operator()<product_out::f32>();
      case product_out::add_f32:
        return call.template operator()<product_out::add_f32>();
      case product_out::gated:
        return call.template operator()<product_out::gated>();
    }
  };
  if (p.type == dtype::f16) return with_kind(std::integral_constant<dtype, dtype::f16>());
  with_kind(std::integral_constant<dtype, dtype::bf16>());
}

// The functions for products of elements, each in the file of its name. They launch kernels. REQUIRES: what
// choose_product.cpp asks of the device, the shape and the addresses. It need not be the quickest.
void stream_product(device& d, const product& p, const norm_before& norm = {});
void stream_wide_product(device& d, const product& p);
void stream_general_product(device& d, const product& p);
void wgmma_product(device& d, const product& p);

// Of any number of rows, where there is no cuBLASLt. On a deterministic device a row's bits do not depend on
// p.m. REQUIRES: p.k % 8 == 0, w and x begin at multiples of 16 bytes, p.kind is not gated
void tile_product(device& d, const product& p);

// Prepares a device for stream_wide.cu, where it supports that. Called once, when it is opened. False: the
// device failed.
bool open_wide(device& d);

// Products by cuBLASLt, with the algorithms that were found for them.
class products {
 public:
  explicit products(device& d) : d_(d) {}

  // The largest number of rows in the class of m + 1 rows. The products of a class share an algorithm.
  static std::uint32_t next_class(std::uint32_t m);

  // Launches a product. REQUIRES: the device has cuBLASLt. On its first call for a class of a shape it
  // searches the algorithm, over the `samples`: weights of other layers with the same shape, so that none of
  // them is in a cache. `scratch` is at least as large as the output in f32. A search synchronises with the
  // device, so it must not happen while a graph is recorded: run the product once before.
  //
  // On a deterministic device a row's bits do not depend on m. Each shape then has one algorithm, that of
  // `unit` rows, which sums over k in one go, and m is a multiple of `unit`. All rows are multiplied at once
  // where that gives the same bits as `unit` rows at a time, which is tried once for each m; otherwise `unit`
  // rows are multiplied at a time.
  static constexpr std::uint32_t unit = row_unit;
  void run(const product& p, std::span<const void* const> samples, void* scratch);

 private:
  // Type, m, n, k, what becomes of the product, and its stride.
  using key = std::tuple<dtype, std::uint32_t, std::uint32_t, std::uint32_t, product_out, std::uint32_t>;
  static key key_of(const product& p, std::uint32_t m) { return {p.type, m, p.n, p.k, p.kind, p.stride()}; }
  struct setup;
  class searches;
  struct fixed {
    cublasLtMatmulAlgo_t algo;
    std::map<std::uint32_t, bool> whole;  // by m: whether all rows at once give the same bits as in units
  };
  fixed* find_fixed(const product& p, std::span<const void* const> samples, void* scratch);
  void run_fixed(const product& p, const fixed& f, bool whole, void* out);
  bool same_bits(const product& strided, const fixed& f);
  const setup& setup_of(const product& p);
  bool choose(const product& p, const setup& s, std::span<const void* const> samples, void* scratch,
              cublasLtMatmulAlgo_t& best);
  bool find(const product& p, std::span<const void* const> samples, void* scratch,
            cublasLtMatmulAlgo_t& best);
  // The same for `k`, unless another backend of the device has searched that.
  bool find_once(const key& k, const product& p, std::span<const void* const> samples, void* scratch,
                 cublasLtMatmulAlgo_t& best);
  bool multiply(const setup& s, const product& p, const void* w, void* out, const cublasLtMatmulAlgo_t* algo);

  device& d_;
  std::map<key, std::shared_ptr<const setup>> setups_;
  std::map<key, cublasLtMatmulAlgo_t> chosen_;   // the algorithm of each class; m of the key is the class
  std::map<key, cublasLtMatmulAlgo_t> checked_;  // the algorithm of each m: its class's, or another that fits
  std::map<key, fixed> fixed_;                   // on a deterministic device; m of the key is 0
};

}  // namespace weir::kernels::cuda
