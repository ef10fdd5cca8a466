// device.h — one CUDA device as this backend holds it: a stream, cuBLASLt, what it can do, and its first
// fault.
//
// Every call into CUDA goes through WEIR_CUDA, which names its place. The first failure is kept (fault) and
// everything after it is left out: a device that failed once stays failed, and the step's owner asks.
//
// Thread safety: one thread at a time; use() makes the device current on it.
#pragma once

#include <cublasLt.h>
#include <cuda_runtime.h>

#include <cstdint>
#include <memory>
#include <string>

#include "kernels/ops.h"

namespace weir::kernels::cuda {

// cuBLASLt, loaded when a device is opened: a program that was built with CUDA starts where it is not.
struct blas_library {
  static const blas_library* load(std::string& why_not);

  decltype(&cublasLtCreate) create = nullptr;
  decltype(&cublasLtDestroy) destroy = nullptr;
  decltype(&cublasLtMatmul) matmul = nullptr;
  decltype(&cublasLtMatmulAlgoGetHeuristic) heuristic = nullptr;
  decltype(&cublasLtMatmulAlgoCheck) check = nullptr;
  decltype(&cublasLtMatmulAlgoConfigGetAttribute) config = nullptr;
  decltype(&cublasLtMatmulDescCreate) desc_create = nullptr;
  decltype(&cublasLtMatmulDescDestroy) desc_destroy = nullptr;
  decltype(&cublasLtMatmulDescSetAttribute) desc_set = nullptr;
  decltype(&cublasLtMatrixLayoutCreate) layout_create = nullptr;
  decltype(&cublasLtMatrixLayoutDestroy) layout_destroy = nullptr;
  decltype(&cublasLtMatmulPreferenceCreate) preference_create = nullptr;
  decltype(&cublasLtMatmulPreferenceDestroy) preference_destroy = nullptr;
  decltype(&cublasLtMatmulPreferenceSetAttribute) preference_set = nullptr;
};

// Small host data on its way to the device: what operations find in spans.
class staging {
 public:
  void* host = nullptr;  // pinned
  void* device = nullptr;
  std::size_t size = 0, used = 0;
};

class products;

struct device {
  int index = 0;
  int multiprocessors = 0;
  int capability = 0;                // 10 * major + minor
  std::size_t shared_per_block = 0;  // most dynamic shared memory of one block
  bool deterministic = false;        // a row's bits depend on that row alone
  // Clusters of so many blocks that run at once, each block alone on its multiprocessor; -1: nobody asked
  // yet.
  int clusters[9] = {-1, -1, -1, -1, -1, -1, -1, -1, -1};
  std::string label, name;
  cudaStream_t stream = nullptr;
  const blas_library* blas = nullptr;
  cublasLtHandle_t lt = nullptr;
  void* workspace = nullptr;  // of cuBLASLt
  static constexpr std::size_t workspace_bytes = 64u << 20;
  staging small;
  std::uint64_t workspaces = 0;                       // bytes of all memory here that is not do_allocate's
  cudaEvent_t uploaded[backend::upload_lanes] = {};  // made when they are needed
  // Of products by warpgroups (stream_wide.cu); null: the device or the build has none.
  void* encode_map = nullptr;   // cuTensorMapEncodeTiled
  unsigned* arrived = nullptr;  // [multiprocessors, 2], zero between kernels
  std::shared_ptr<products> linears;  // of f32 weights by single operations; made with the first of them
  std::string fault;  // the first failure, with its place; empty: none
  backend table;

  device() = default;
  device(const device&) = delete;
  ~device();

  // Null: it failed, and `fault` says why.
  bool open(int at);

  bool failed() const noexcept { return !fault.empty(); }
  bool check(cudaError_t e, const char* what, const char* file, int line);
  bool check(cublasStatus_t s, const char* what, const char* file, int line);
  void use();  // current on this thread
  void sync();

  // An operation that stages says so first. What it stages stays until a later one has 2 MiB behind it.
  void begin_staging();
  const void* stage(const void* from, std::size_t bytes);
  template <class T>
  const T* stage_array(const T* from, std::size_t count) {
    return static_cast<const T*>(stage(from, count * sizeof(T)));
  }
};

inline device& of(void* self) {
  auto& d = *static_cast<device*>(self);
  d.use();
  return d;
}

// The plain operations, one simple kernel each (ops.cu).
void fill_table(backend& table);

}  // namespace weir::kernels::cuda

#define WEIR_CUDA(dev, call) (dev).check((call), #call, __FILE__, __LINE__)
