// products.h — products x · wᵀ: of elements for a decoder, the weights streamed by our own kernels for few
// rows, else by cuBLASLt with an algorithm searched once per shape; and of f32, by cuBLASLt in f32 throughout
// (no TF32).
//
// Thread safety: one thread at a time.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <tuple>
#include <vector>

#include "kernels/cuda/device.h"

namespace weir::kernels::cuda {

enum class product_out {
  element,  // out[m, n], of the weights' type
  f32,      // out[m, n], f32
  add_f32,  // out[m, n] += , f32
  silu      // rows are gate then up: out[m, n / 2] = silu(gate) * up, of the weights' type
};

struct product {
  dtype type = dtype::bf16;  // of w and x
  const void* w = nullptr;   // [n, k]
  std::uint32_t n = 0, k = 0;
  const void* x = nullptr;  // [m, k]
  std::uint32_t m = 0;
  void* out = nullptr;
  product_out kind = product_out::element;
};

// Our own kernels, which read the weights once: up to 8 rows (stream.cu), and up to 64, or 128 of large
// weights (stream_wide.cu), on devices that have bulk copies and warpgroups (9.0), where rows need not have
// the same bits in every company.
bool can_stream(const device& d, const product& p);
void stream_product(device& d, const product& p);

bool can_stream_wide(const device& d, const product& p);
void stream_wide_product(device& d, const product& p);
// Once a device: what the wide ones need, if it has them. False: it failed.
bool open_wide(device& d);

class products {
 public:
  explicit products(device& d) : d_(d) {}

  // The most rows that share an algorithm with m + 1 of them.
  static std::uint32_t next_class(std::uint32_t m);

  // `samples`: other weights of the same shape, to search with cold caches; `scratch`: at least as large as
  // the output, f32. A search synchronises, so it must not happen while a graph is recorded: run a shape once
  // before.
  //
  // On a deterministic device a row's bits do not depend on m: one algorithm a shape, that of `unit` rows,
  // which sums over k in one go; m is a multiple of `unit`, and where so many rows at once do not give the
  // bits of `unit` at a time (which is tried once for each m), they are computed so.
  static constexpr std::uint32_t unit = 64;
  void run(const product& p, std::span<const void* const> samples, void* scratch);

 private:
  using key = std::tuple<dtype, std::uint32_t, std::uint32_t, std::uint32_t, product_out>;
  struct setup;
  struct fixed {
    cublasLtMatmulAlgo_t algo;
    std::map<std::uint32_t, bool> whole;  // by m: the same bits as in units
  };
  fixed* find_fixed(const product& p, std::span<const void* const> samples, void* scratch);
  void run_fixed(const product& p, const fixed& f, bool whole, void* out);
  bool same_bits(const product& p, const fixed& f);
  const setup& setup_of(const product& p);
  bool choose(const product& p, const setup& s, std::span<const void* const> samples, void* scratch,
              cublasLtMatmulAlgo_t& best);
  bool find(const product& p, std::span<const void* const> samples, void* scratch,
            cublasLtMatmulAlgo_t& best);
  bool multiply(const setup& s, const product& p, const void* w, void* out, const cublasLtMatmulAlgo_t* algo);

  device& d_;
  std::map<key, std::shared_ptr<const setup>> setups_;
  std::map<key, cublasLtMatmulAlgo_t> chosen_;   // by class of m, and
  std::map<key, cublasLtMatmulAlgo_t> checked_;  // by m: the class's, or another where that does not fit
  std::map<key, fixed> fixed_;                   // m of the key: 0
};

}  // namespace weir::kernels::cuda
