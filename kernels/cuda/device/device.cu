#include "kernels/cuda/device/device.h"

#include <dlfcn.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <thread>

#include "kernels/cuda/device/vmm.h"
#include "kernels/cuda/products/products.h"

namespace weir::kernels::cuda {
namespace {

// Says whether the code of this build that runs on the device is that of 9.0a.
__global__ void code_kernel(int* hopper) {
#ifdef __CUDA_ARCH_FEAT_SM90_ALL
  *hopper = 1;
#else
  *hopper = 0;
#endif
}

}  // namespace

const blas_library* blas_library::load(std::string& why_not) {
  static blas_library library;
  static std::string missing;
  static const bool loaded = [] {
    const std::string named = "libcublasLt.so." + std::to_string(CUBLAS_VER_MAJOR);
    void* handle = ::dlopen(named.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (!handle) {
      const char* e = ::dlerror();
      missing = e ? e : named;
      return false;
    }
    const auto bind = [&](auto& to, const char* symbol) {
      to = reinterpret_cast<std::decay_t<decltype(to)>>(::dlsym(handle, symbol));
      if (!to) missing = named + " has no " + symbol;
    };
    bind(library.create, "cublasLtCreate");
    bind(library.destroy, "cublasLtDestroy");
    bind(library.matmul, "cublasLtMatmul");
    bind(library.heuristic, "cublasLtMatmulAlgoGetHeuristic");
    bind(library.check, "cublasLtMatmulAlgoCheck");
    bind(library.config, "cublasLtMatmulAlgoConfigGetAttribute");
    bind(library.desc_create, "cublasLtMatmulDescCreate");
    bind(library.desc_destroy, "cublasLtMatmulDescDestroy");
    bind(library.desc_set, "cublasLtMatmulDescSetAttribute");
    bind(library.layout_create, "cublasLtMatrixLayoutCreate");
    bind(library.layout_destroy, "cublasLtMatrixLayoutDestroy");
    bind(library.preference_create, "cublasLtMatmulPreferenceCreate");
    bind(library.preference_destroy, "cublasLtMatmulPreferenceDestroy");
    bind(library.preference_set, "cublasLtMatmulPreferenceSetAttribute");
    return missing.empty();
  }();
  why_not = missing;
  return loaded ? &library : nullptr;
}

bool device::check(cudaError_t e, const char* what, const char* file, int line) {
  if (e == cudaSuccess) return true;
  // Clears the error, which CUDA keeps for the thread: otherwise the first launch on a device that is opened
  // later would report it.
  (void)cudaGetLastError();
  if (fault.empty())
    fault = label + ": " + cudaGetErrorName(e) + " (" + cudaGetErrorString(e) + ") at " + file + ":" +
            std::to_string(line) + ", " + what;
  return false;
}

bool device::check(cublasStatus_t s, const char* what, const char* file, int line) {
  if (s == CUBLAS_STATUS_SUCCESS) return true;
  if (fault.empty())
    fault = label + ": cuBLASLt status " + std::to_string(s) + " at " + file + ":" + std::to_string(line) +
            ", " + what;
  return false;
}

bool device::open(int at) {
  index = at;
  label = "cuda:" + std::to_string(at);
  cudaDeviceProp facts;
  if (!WEIR_CUDA(*this, cudaGetDeviceProperties(&facts, at))) return false;
  multiprocessors = facts.multiProcessorCount;
  cuda_opening o;
  o.name = label + " (" + facts.name + ")";
  o.capability = 10 * facts.major + facts.minor;
  o.built_for = WEIR_CUDA_BUILT_FOR;
  o.total = facts.totalGlobalMem;
  o.wanted = workspaces = own_bytes;
  const auto refused = [&] {
    if (fault.empty()) fault = refusal_of(o);
    return failed();
  };
  if (refused()) return false;
  bool general = false, no_blas = false;
  if (!asks_for("WEIR_CUDA_PATH", "general", general) || !asks_for("WEIR_CUDA_BLAS", "off", no_blas))
    return false;
  std::string why_not;
  if (!no_blas) blas = blas_library::load(why_not);
  reserve(o);
  bool has_hopper = false;
  if (!refused()) try_code(o, has_hopper);
  if (refused()) return false;
  const bool hopper = has_hopper && !general;
  path = hopper ? code_path::hopper : code_path::general;
  shared_per_block = hopper ? facts.sharedMemPerBlockOptin
                            : std::min(std::size_t{facts.sharedMemPerBlockOptin}, general_shared);
  name = label + " (" + facts.name + (o.capability == 90 && !hopper ? ", general kernels" : "") +
         (blas ? "" : ", without cuBLASLt") + ")";
  vmm = virtual_memory::open(*this);
  memory_unit = vmm ? vmm->unit() : 0;
  return open_wide(*this);
}

// Makes the context, the stream and the backend's own buffers.
void device::reserve(cuda_opening& o) {
  cudaError_t e = cudaSetDevice(index);
  if (e == cudaSuccess) e = cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking);
  if (e == cudaSuccess) e = cudaMalloc(&workspace, workspace_bytes);
  if (e == cudaSuccess) e = cudaMalloc(&small.device, staging_bytes);
  if (e == cudaSuccess) e = cudaMallocHost(&small.host, staging_bytes);
  const std::size_t counters = static_cast<std::size_t>(multiprocessors) * arrived_each * sizeof(unsigned);
  if (e == cudaSuccess) e = cudaMalloc(&arrived, counters);
  if (e == cudaSuccess) e = cudaMemsetAsync(arrived, 0, counters, stream);
  small.size = staging_bytes;
  const cublasStatus_t s = e == cudaSuccess && blas ? blas->create(&lt) : CUBLAS_STATUS_SUCCESS;
  o.memory_short = e == cudaErrorMemoryAllocation || s == CUBLAS_STATUS_ALLOC_FAILED;
  if (o.memory_short) {
    std::size_t free = 0, total = 0;
    if (cudaMemGetInfo(&free, &total) == cudaSuccess) o.free = free;
    (void)cudaGetLastError();  // clears the errors, which the next launch would report
    return;
  }
  check(e, "context, stream and buffers", __FILE__, __LINE__);
  check(s, "cublasLtCreate", __FILE__, __LINE__);
}

// Runs a kernel, which shows whether this build has code for the device, and which code it is.
void device::try_code(cuda_opening& o, bool& has_hopper) {
  code_kernel<<<1, 1, 0, stream>>>(static_cast<int*>(workspace));
  const cudaError_t e = cudaGetLastError();
  o.newer_ptx = e == cudaErrorUnsupportedPtxVersion;
  o.runs_code = e != cudaErrorNoKernelImageForDevice;
  if (o.newer_ptx || !o.runs_code || !check(e, "the first kernel", __FILE__, __LINE__)) return;
  int answer = 0;
  WEIR_CUDA(*this, cudaMemcpyAsync(&answer, workspace, sizeof answer, cudaMemcpyDeviceToHost, stream));
  sync();
  has_hopper = answer == 1;
}

// Whether the environment has `variable` with its one value. False: it has another value.
bool device::asks_for(const char* variable, std::string_view value, bool& yes) {
  const char* found = std::getenv(variable);
  const std::string_view wish = found ? found : "";
  yes = wish == value;
  if (yes || wish.empty()) return true;
  fault = std::string(variable) + " must be " + std::string(value) + ", or not set, not '" +
          std::string(wish) + "'";
  return false;
}

device::~device() {
  if (cudaSetDevice(index) != cudaSuccess) return;  // the driver has shut down and freed the memory
  if (stream) cudaStreamSynchronize(stream);
  linears.reset();
  vmm.reset();
  if (lt) blas->destroy(lt);
  if (workspace) cudaFree(workspace);
  if (arrived) cudaFree(arrived);
  if (small.device) cudaFree(small.device);
  if (small.host) cudaFreeHost(small.host);
  for (cudaEvent_t e : uploaded)
    if (e) cudaEventDestroy(e);
  if (parts) cudaStreamDestroy(parts);
  if (stream) cudaStreamDestroy(stream);
}

void device::use() { WEIR_CUDA(*this, cudaSetDevice(index)); }

void device::sync() {
  if (!failed()) WEIR_CUDA(*this, cudaStreamSynchronize(stream));
}

void device::breathe(double rests) {
  if (!others_busy || failed()) return;
  const auto now = std::chrono::steady_clock::now;
  if (gives_way()) {
    sync();
    std::this_thread::sleep_for(rests * (now() - piece_began));
  }
  piece_began = now();
}

void device::begin_staging() {
  if (small.used <= small.size / 2) return;
  sync();
  small.used = 0;
}

const void* device::stage(const void* from, std::size_t bytes) {
  const std::size_t room = (bytes + 255) / 256 * 256;
  if (failed()) return nullptr;
  if (small.used + room > small.size) {
    fault = label + ": an operation has more than " + std::to_string(small.size / 2) + " bytes of indices";
    return nullptr;
  }
  auto* host = static_cast<std::byte*>(small.host) + small.used;
  auto* there = static_cast<std::byte*>(small.device) + small.used;
  small.used += room;
  std::memcpy(host, from, bytes);
  WEIR_CUDA(*this, cudaMemcpyAsync(there, host, bytes, cudaMemcpyHostToDevice, stream));
  return there;
}

}  // namespace weir::kernels::cuda
