// device.h — one CUDA device as this backend holds it: its stream, cuBLASLt, its properties, and its first
// failure.
//
// Every call into CUDA goes through WEIR_CUDA, which records the place of the call. The first failure is kept
// in `fault`, and work is left out from then on: a device that has failed once stays failed. The code that
// runs a step asks failed().
//
// Thread safety: one thread at a time; use() makes the device current on it. «The device's» thread safety,
// which other headers name, is this one.
#pragma once

#include <cublasLt.h>
#include <cuda_runtime.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "kernels/cuda/device/facts.h"
#include "kernels/cuda/device/machine.h"
#include "kernels/ops.h"

namespace weir::kernels::cuda {

// The functions of cuBLASLt, which is loaded when the first device is opened: a program that was built with
// CUDA thus starts on a machine without the library.
struct blas_library {
  // Returns null where the library or one of its functions is missing, and sets `why_not` to the reason.
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

// A buffer for small arrays that operations pass as spans, on their way from the host to the device.
class staging {
 public:
  void* host = nullptr;            // pinned
  void* device = nullptr;          // memory of the device; an array has the same offset in both
  std::size_t size = 0, used = 0;  // bytes of each; bytes that are taken
};

class products;
class virtual_memory;

// The most shared memory of a block on the general path: 8.6, 8.9 and 12.0 have no more.
constexpr std::size_t general_shared = 99 << 10;
// On the Hopper path, what a kernel declares itself included.
constexpr std::size_t hopper_shared = 227 << 10;

// What one launch asked for (device::launches).
struct launched {
  const void* kernel;
  unsigned threads;    // of a block
  std::size_t shared;  // bytes of dynamic shared memory of a block
  unsigned cluster;    // blocks of a cluster
};

struct device : cuda_facts {
  int index = 0;  // CUDA's number of the device
  // clusters[n]: how many clusters of n blocks run at once (attention_wgmma.cu); -1: not known yet. It is the
  // same for all of these kernels, as each block is alone on its multiprocessor.
  int clusters[9] = {-1, -1, -1, -1, -1, -1, -1, -1, -1};
  std::string label, name;        // "cuda:0"; the same with the model of the device (backend::name)
  cudaStream_t stream = nullptr;  // all work of the backend is on it
  // Null where the library is not there: products then use tile_product().
  const blas_library* blas = nullptr;
  cublasLtHandle_t lt = nullptr;
  void* workspace = nullptr;  // scratch of products, [workspace_bytes]
  static constexpr std::size_t workspace_bytes = cuda::workspace_bytes;
  staging small;                 // filled by stage()
  std::uint64_t workspaces = 0;  // bytes of memory on the device that is not do_allocate's
  cudaEvent_t uploaded[backend::upload_lanes] = {};  // one for each lane; made on first use
  // cuTensorMapEncodeTiled, for products by warpgroups (tensor_map.h). Null on the general path.
  void* encode_map = nullptr;
  // Counters for products whose blocks share tiles, zero between kernels: [multiprocessors, arrived_each].
  unsigned* arrived = nullptr;
  static constexpr int arrived_each = 2;
  // Large allocations (vmm.h); null: the device has no virtual memory management.
  std::shared_ptr<virtual_memory> vmm;
  // Zeroes parts of reservations beside the other work; null until the first reservation.
  cudaStream_t parts = nullptr;
  std::shared_ptr<products> linears;  // products of f32 weights (ops.cu); made on first use
  // While it is true, others have work on the device that must not wait; null: nobody has (breathe()).
  const std::atomic<bool>* others_busy = nullptr;
  std::chrono::steady_clock::time_point piece_began{};  // of work; the last breathe() ended then
  // For tests: where it is not null, every launch by launch.h is added to it.
  std::vector<launched>* launches = nullptr;
  std::string fault;  // the first failure, with its place; empty as long as there is none
  backend table;

  device() = default;
  device(const device&) = delete;
  ~device();

  // Opens CUDA device number `at`. False: it failed, and `fault` says why and what to do.
  bool open(int at);

  bool failed() const noexcept { return !fault.empty(); }
  // Whether the call succeeded; if not, keeps its failure in `fault` where that is empty (WEIR_CUDA).
  bool check(cudaError_t e, const char* what, const char* file, int line);
  bool check(cublasStatus_t s, const char* what, const char* file, int line);
  void use();   // makes the device current on the calling thread
  void sync();  // waits until the stream has done everything

  // Called after a short piece of the work of a load. Where others are busy, waits for the stream, and then
  // `rests` times as long as the piece took, so that it takes a small share of the device.
  void breathe(double rests);
  static constexpr double rests_of_copies = 1;   // half the link
  static constexpr double rests_of_kernels = 4;  // a fifth of the multiprocessors' time
  bool gives_way() const noexcept { return others_busy && others_busy->load(std::memory_order_relaxed); }

  // Called by an operation before it stages its arrays. Where more than half of the buffer is used, it waits
  // for the stream and begins anew: what earlier operations staged is then gone.
  void begin_staging();
  // Copies `bytes` bytes from the host to the device on the stream, and returns their address there. Returns
  // null where the device has failed, or where the buffer is full, which becomes its fault. The source may
  // change as soon as this returns.
  const void* stage(const void* from, std::size_t bytes);
  template <class T>
  const T* stage_array(const T* from, std::size_t count) {
    return static_cast<const T*>(stage(from, count * sizeof(T)));
  }

 private:
  // The steps of open(). A failure is recorded in `o` or in `fault`.
  bool asks_for(const char* variable, std::string_view value, bool& yes);
  void reserve(cuda_opening& o);
  void try_code(cuda_opening& o, bool& has_hopper);
};

// The device behind a backend's `self`, made current on the calling thread.
inline device& of(void* self) {
  auto& d = *static_cast<device*>(self);
  d.use();
  return d;
}

// Enters the single operations into the table (ops.cu).
void fill_table(backend& table);

}  // namespace weir::kernels::cuda

#define WEIR_CUDA(dev, call) (dev).check((call), #call, __FILE__, __LINE__)
