#include "kernels/cuda/products/products.h"

#include <algorithm>
#include <array>
#include <mutex>
#include <optional>

namespace weir::kernels::cuda {
namespace {

// Whether an algorithm computes each output's sum over k in one block, without parts that are added later.
bool sums_in_one_go(const blas_library& b, const cublasLtMatmulAlgo_t& algo) {
  std::int32_t parts = 0;
  std::uint32_t scheme = 0;
  std::size_t written = 0;
  return b.config(&algo, CUBLASLT_ALGO_CONFIG_SPLITK_NUM, &parts, sizeof parts, &written) ==
             CUBLAS_STATUS_SUCCESS &&
         b.config(&algo, CUBLASLT_ALGO_CONFIG_REDUCTION_SCHEME, &scheme, sizeof scheme, &written) ==
             CUBLAS_STATUS_SUCCESS &&
         parts <= 1 && scheme == CUBLASLT_REDUCTION_SCHEME_NONE;
}

// Sets *differ to 1 where the arrays differ in any word.
__global__ void differ_kernel(const std::uint32_t* a, const std::uint32_t* b, std::size_t words,
                              int* differ) {
  for (std::size_t i = blockIdx.x * std::size_t{blockDim.x} + threadIdx.x; i < words;
       i += std::size_t{gridDim.x} * blockDim.x)
    if (a[i] != b[i]) *differ = 1;
}

cudaDataType_t cuda_type(dtype t) {
  return t == dtype::f32 ? CUDA_R_32F : t == dtype::f16 ? CUDA_R_16F : CUDA_R_16BF;
}

// The bytes of one output.
std::size_t out_size(const product& p) {
  return p.kind == product_out::element ? size_of(p.type) : sizeof(float);
}

// The class of `m` rows is named by its largest number of rows. All products of a class share an algorithm.
// Each batch class of a step (batch_classes) of 32 rows or more is the largest of a class here: an
// algorithm that was searched for fewer rows may be half as fast.
std::uint32_t class_of(std::uint32_t m) {
  if (m <= 64) return (m + 7) / 8 * 8;
  if (m <= 128) return (m + 15) / 16 * 16;
  if (m <= 256) return (m + 31) / 32 * 32;
  if (m <= 512) return (m + 63) / 64 * 64;
  return (m + 511) / 512 * 512;
}

}  // namespace

// The descriptions that cuBLASLt needs of one product. cuBLASLt is column-major, so it computes outᵀ: out'
// [n, m] = w' [k, n]ᵀ · x' [k, m].
struct products::setup {
  device& d;
  cublasLtMatmulDesc_t desc = nullptr;
  cublasLtMatrixLayout_t w = nullptr, x = nullptr, out = nullptr;

  setup(device& dev, const product& p) : d(dev) {
    const auto& b = *d.blas;
    const cublasOperation_t transposed = CUBLAS_OP_T;
    const cudaDataType_t type = p.kind == product_out::element ? cuda_type(p.type) : CUDA_R_32F;
    WEIR_CUDA(d, b.desc_create(&desc, CUBLAS_COMPUTE_32F, CUDA_R_32F));
    if (desc) WEIR_CUDA(d, b.desc_set(desc, CUBLASLT_MATMUL_DESC_TRANSA, &transposed, sizeof transposed));
    WEIR_CUDA(d, b.layout_create(&w, cuda_type(p.type), p.k, p.n, p.k));
    WEIR_CUDA(d, b.layout_create(&x, cuda_type(p.type), p.k, p.m, p.k));
    WEIR_CUDA(d, b.layout_create(&out, type, p.n, p.m, p.stride()));
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

// The descriptions of each product are kept. A step needs several for each layer, and making them took longer
// than the device takes to compute few rows.
const products::setup& products::setup_of(const product& p) {
  auto& s = setups_[key_of(p, p.m)];
  if (!s) s = std::make_shared<const setup>(d_, p);
  return *s;
}

bool products::multiply(const setup& s, const product& p, const void* w, void* out,
                        const cublasLtMatmulAlgo_t* algo) {
  const float one = 1, keep = p.kind == product_out::add_f32 ? 1 : 0;
  return WEIR_CUDA(d_, d_.blas->matmul(d_.lt, s.desc, &one, w, s.w, p.x, s.x, &keep, out, s.out, out, s.out,
                                       algo, d_.workspace, device::workspace_bytes, d_.stream));
}

// Finds the fastest of the algorithms that the heuristic proposes, each timed over weights that are not in
// the cache.
bool products::find(const product& p, std::span<const void* const> samples, void* scratch,
                    cublasLtMatmulAlgo_t& best) {
  constexpr int most = 16, rounds = 3;
  // A deterministic device cannot use all proposals, so it asks for more. Products of f32 take the first
  // proposal: models in f32 are not warmed up, and a step should not wait for a search.
  const int asked = p.type == dtype::f32 ? 1 : d_.deterministic ? most : 8;
  const auto& b = *d_.blas;
  const setup s(d_, p);
  cublasLtMatmulPreference_t preference = nullptr;
  const std::size_t room = device::workspace_bytes;
  std::array<cublasLtMatmulHeuristicResult_t, most> found{};
  int count = 0;
  if (d_.failed() || !WEIR_CUDA(d_, b.preference_create(&preference))) return false;
  if (d_.deterministic) {
    const std::uint32_t none = CUBLASLT_REDUCTION_SCHEME_NONE;
    WEIR_CUDA(d_,
              b.preference_set(preference, CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK, &none, sizeof none));
  }
  WEIR_CUDA(d_, b.preference_set(preference, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, &room, sizeof room));
  WEIR_CUDA(d_, b.heuristic(d_.lt, s.desc, s.w, s.x, s.out, s.out, preference, asked, found.data(), &count));
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
  for (int i = 0; i < count && !d_.failed(); ++i) {
    if (found[i].state != CUBLAS_STATUS_SUCCESS) continue;
    if (d_.deterministic && !sums_in_one_go(b, found[i].algo)) continue;
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
    d_.breathe(device::rests_of_kernels);
    if (sum < least) {
      least = sum;
      best = found[i].algo;
    }
  }
  if (from) cudaEventDestroy(from);
  if (to) cudaEventDestroy(to);
  if (least == 1e30f && !d_.failed())
    d_.fault = d_.label + ": cuBLASLt has no product of " + std::to_string(p.m) + " x " +
               std::to_string(p.n) + " x " + std::to_string(p.k) +
               (d_.deterministic ? " that sums in one go" : "");
  return !d_.failed();
}

// What was found in this process. Engines of one shape on a device thus have the same algorithms, and a model
// that is loaded beside streams takes less of the device's time. Any thread.
class products::searches {
 public:
  using name = std::tuple<int, bool, key>;  // device, whether it is deterministic, product

  static searches& of_process() {
    static searches all;
    return all;
  }
  std::optional<cublasLtMatmulAlgo_t> look(const name& n) const {
    const std::lock_guard hold(lock_);
    const auto it = found_.find(n);
    return it == found_.end() ? std::nullopt : std::optional(it->second);
  }
  void add(const name& n, const cublasLtMatmulAlgo_t& algo) {
    const std::lock_guard hold(lock_);
    found_.emplace(n, algo);
  }

 private:
  mutable std::mutex lock_;
  std::map<name, cublasLtMatmulAlgo_t> found_;
};

bool products::find_once(const key& k, const product& p, std::span<const void* const> samples, void* scratch,
                         cublasLtMatmulAlgo_t& best) {
  const searches::name n{d_.index, d_.deterministic, k};
  if (const auto before = searches::of_process().look(n)) {
    best = *before;
    return true;
  }
  if (!find(p, samples, scratch, best)) return false;
  searches::of_process().add(n, best);
  return true;
}

std::uint32_t products::next_class(std::uint32_t m) { return class_of(m + 1); }

void products::run(const product& p, std::span<const void* const> samples, void* scratch) {
  if (d_.failed()) return;
  if (d_.deterministic) {
    fixed* f = find_fixed(p, samples, scratch);
    if (f) run_fixed(p, *f, f->whole.at(p.m), p.out);
    return;
  }
  const setup& s = setup_of(p);
  const key exact = key_of(p, p.m);
  auto it = checked_.find(exact);
  if (it == checked_.end()) {
    cublasLtMatmulAlgo_t best;
    if (!choose(p, s, samples, scratch, best)) return;
    it = checked_.emplace(exact, best).first;
  }
  if (!d_.failed()) multiply(s, p, p.w, p.out, &it->second);
}

// Chooses the algorithm of the class of p.m, or another one where that does not support p.m.
bool products::choose(const product& p, const setup& s, std::span<const void* const> samples, void* scratch,
                      cublasLtMatmulAlgo_t& best) {
  const key k = key_of(p, class_of(p.m));
  const auto it = chosen_.find(k);
  if (it == chosen_.end()) {
    if (!find_once(k, p, samples, scratch, best)) return false;
    chosen_.emplace(k, best);
    return true;
  }
  cublasLtMatmulHeuristicResult_t fits{};
  best = it->second;
  const bool good =
      d_.blas->check(d_.lt, s.desc, s.w, s.x, s.out, s.out, &best, &fits) == CUBLAS_STATUS_SUCCESS &&
      fits.workspaceSize <= device::workspace_bytes;
  return good || find(p, samples, scratch, best);
}

// Returns the algorithm of the shape, and tries once for each p.m whether its rows can be computed at once
// (products::unit).
products::fixed* products::find_fixed(const product& p, std::span<const void* const> samples, void* scratch) {
  const key k = key_of(p, 0);
  auto it = fixed_.find(k);
  if (it == fixed_.end()) {
    product one = p;
    one.m = unit;
    fixed f{};
    if (!find_once(k, one, samples, scratch, f.algo)) return nullptr;
    it = fixed_.emplace(k, std::move(f)).first;
  }
  fixed& f = it->second;
  if (!f.whole.contains(p.m)) f.whole[p.m] = p.m == unit || same_bits(p, f);
  return d_.failed() ? nullptr : &f;
}

// Computes all rows at once where `whole`, otherwise `unit` rows at a time.
void products::run_fixed(const product& p, const fixed& f, bool whole, void* out) {
  product part = p;
  part.m = whole ? p.m : unit;
  const setup& s = setup_of(part);
  for (std::uint32_t row = 0; row < p.m && !d_.failed(); row += part.m) {
    part.x = static_cast<const std::byte*>(p.x) + std::size_t{row} * p.k * size_of(p.type);
    auto* const to = static_cast<std::byte*>(out) + std::size_t{row} * p.stride() * out_size(p);
    multiply(s, part, p.w, to, &f.algo);
  }
}

// Computes the present rows both ways, and returns whether the bits are the same.
bool products::same_bits(const product& strided, const fixed& f) {
  product p = strided;
  p.out_stride = 0;
  cublasLtMatmulHeuristicResult_t fits{};
  {
    const setup s(d_, p);
    if (d_.failed() ||
        d_.blas->check(d_.lt, s.desc, s.w, s.x, s.out, s.out, &f.algo, &fits) != CUBLAS_STATUS_SUCCESS ||
        fits.workspaceSize > device::workspace_bytes)
      return false;
  }
  const std::size_t bytes = std::size_t{p.m} * p.n * out_size(p);
  std::byte* both = nullptr;
  int* differ = nullptr;
  int answer = 1;
  if (cudaMalloc(&both, 2 * bytes + sizeof(int)) != cudaSuccess) {
    (void)cudaGetLastError();
    return false;  // memory is short: compute in units
  }
  differ = reinterpret_cast<int*>(both + 2 * bytes);
  WEIR_CUDA(d_, cudaMemsetAsync(both, 0, 2 * bytes + sizeof(int), d_.stream));
  run_fixed(p, f, true, both);
  run_fixed(p, f, false, both + bytes);
  differ_kernel<<<256, 256, 0, d_.stream>>>(reinterpret_cast<const std::uint32_t*>(both),
                                            reinterpret_cast<const std::uint32_t*>(both + bytes), bytes / 4,
                                            differ);
  WEIR_CUDA(d_, cudaGetLastError());
  WEIR_CUDA(d_, cudaMemcpyAsync(&answer, differ, sizeof answer, cudaMemcpyDeviceToHost, d_.stream));
  d_.sync();
  WEIR_CUDA(d_, cudaFree(both));
  return answer == 0 && !d_.failed();
}

}  // namespace weir::kernels::cuda
