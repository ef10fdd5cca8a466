#include "kernels/cuda/products.h"

#include <algorithm>
#include <array>

namespace weir::kernels::cuda {
namespace {

// Rows of one class share an algorithm.
std::uint32_t class_of(std::uint32_t m) {
  if (m <= 64) return (m + 7) / 8 * 8;
  if (m <= 512) return (m + 63) / 64 * 64;
  return (m + 511) / 512 * 512;
}

}  // namespace

// What cuBLASLt asks to be told, for one product; column-major: out' [n, m] = w' [k, n]ᵀ · x' [k, m].
struct products::setup {
  device& d;
  cublasLtMatmulDesc_t desc = nullptr;
  cublasLtMatrixLayout_t w = nullptr, x = nullptr, out = nullptr;

  setup(device& dev, const product& p) : d(dev) {
    const auto& b = *d.blas;
    const cublasOperation_t transposed = CUBLAS_OP_T;
    const cudaDataType_t type = p.kind == product_out::bf16 ? CUDA_R_16BF : CUDA_R_32F;
    WEIR_CUDA(d, b.desc_create(&desc, CUBLAS_COMPUTE_32F, CUDA_R_32F));
    if (desc) WEIR_CUDA(d, b.desc_set(desc, CUBLASLT_MATMUL_DESC_TRANSA, &transposed, sizeof transposed));
    WEIR_CUDA(d, b.layout_create(&w, CUDA_R_16BF, p.k, p.n, p.k));
    WEIR_CUDA(d, b.layout_create(&x, CUDA_R_16BF, p.k, p.m, p.k));
    WEIR_CUDA(d, b.layout_create(&out, type, p.n, p.m, p.n));
  }
  setup(const setup&) = delete;
  ~setup() {
    const auto& b = *d.blas;
    if (out) b.layout_destroy(out);
    if (x) b.layout_destroy(x);
    if (w) b.layout_destroy(w);
    if (desc) b.desc_destroy(desc);
  }
};

bool products::multiply(const setup& s, const product& p, const void* w, void* out,
                        const cublasLtMatmulAlgo_t* algo) {
  const float one = 1, keep = p.kind == product_out::add_f32 ? 1 : 0;
  return WEIR_CUDA(d_, d_.blas->matmul(d_.lt, s.desc, &one, w, s.w, p.x, s.x, &keep, out, s.out, out, s.out,
                                       algo, d_.workspace, device::workspace_bytes, d_.stream));
}

// Times what the heuristic proposes, each over weights that are not in the cache.
bool products::find(const product& p, std::span<const void* const> samples, void* scratch,
                    cublasLtMatmulAlgo_t& best) {
  constexpr int most = 8, rounds = 3;
  const auto& b = *d_.blas;
  const setup s(d_, p);
  cublasLtMatmulPreference_t preference = nullptr;
  const std::size_t room = device::workspace_bytes;
  std::array<cublasLtMatmulHeuristicResult_t, most> found{};
  int count = 0;
  if (d_.failed() || !WEIR_CUDA(d_, b.preference_create(&preference))) return false;
  WEIR_CUDA(d_, b.preference_set(preference, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, &room, sizeof room));
  WEIR_CUDA(d_, b.heuristic(d_.lt, s.desc, s.w, s.x, s.out, s.out, preference, most, found.data(), &count));
  b.preference_destroy(preference);
  if (d_.failed()) return false;
  if (count == 0) {
    d_.fault = d_.label + ": cuBLASLt has no product of " + std::to_string(p.m) + " x " +
               std::to_string(p.n) + " x " + std::to_string(p.k);
    return false;
  }
  cudaEvent_t from = nullptr, to = nullptr;
  WEIR_CUDA(d_, cudaEventCreate(&from));
  WEIR_CUDA(d_, cudaEventCreate(&to));
  float least = 1e30f;
  best = found[0].algo;
  for (int i = 0; i < count && !d_.failed(); ++i) {
    if (found[i].state != CUBLAS_STATUS_SUCCESS) continue;
    float sum = 0;
    for (int round = -1; round < rounds; ++round) {
      const void* w =
          samples.empty() ? p.w : samples[static_cast<std::size_t>(i * 4 + round + 1) % samples.size()];
      float ms = 0;
      WEIR_CUDA(d_, cudaEventRecord(from, d_.stream));
      multiply(s, p, w, scratch, &found[i].algo);
      WEIR_CUDA(d_, cudaEventRecord(to, d_.stream));
      WEIR_CUDA(d_, cudaEventSynchronize(to));
      WEIR_CUDA(d_, cudaEventElapsedTime(&ms, from, to));
      if (round >= 0) sum += ms;
    }
    if (sum < least) {
      least = sum;
      best = found[i].algo;
    }
  }
  if (from) cudaEventDestroy(from);
  if (to) cudaEventDestroy(to);
  return !d_.failed();
}

void products::run(const product& p, std::span<const void* const> samples, void* scratch) {
  if (d_.failed()) return;
  const key k{class_of(p.m), p.n, p.k, p.kind};
  auto it = chosen_.find(k);
  if (it == chosen_.end()) {
    cublasLtMatmulAlgo_t best;
    if (!find(p, samples, scratch, best)) return;
    it = chosen_.emplace(k, best).first;
  }
  const setup s(d_, p);
  if (d_.failed()) return;
  // Chosen for the class; another row count in it may have needs of its own.
  cublasLtMatmulHeuristicResult_t fits{};
  const bool good =
      d_.blas->check(d_.lt, s.desc, s.w, s.x, s.out, s.out, &it->second, &fits) == CUBLAS_STATUS_SUCCESS &&
      fits.workspaceSize <= device::workspace_bytes;
  multiply(s, p, p.w, p.out, good ? &it->second : nullptr);
}

}  // namespace weir::kernels::cuda
