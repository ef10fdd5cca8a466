#include "kernels/cuda/device.h"

#include <dlfcn.h>

#include <cstring>

#include "kernels/cuda/products.h"

namespace weir::kernels::cuda {
namespace {

constexpr std::size_t small_bytes = 4u << 20;  // of the staging buffer

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
  if (!WEIR_CUDA(*this, cudaSetDevice(at)) || !WEIR_CUDA(*this, cudaGetDeviceProperties(&facts, at)))
    return false;
  multiprocessors = facts.multiProcessorCount;
  capability = 10 * facts.major + facts.minor;
  shared_per_block = facts.sharedMemPerBlockOptin;
  name = label + " (" + facts.name + ")";
  if (capability < 80) {
    fault = name + ": compute capability " + std::to_string(facts.major) + "." + std::to_string(facts.minor) +
            ", 8.0 is the least";
    return false;
  }
  std::string why_not;
  blas = blas_library::load(why_not);
  if (!blas) {
    fault = label + ": " + why_not;
    return false;
  }
  small.size = small_bytes;
  workspaces = workspace_bytes + small_bytes;
  return WEIR_CUDA(*this, cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking)) &&
         WEIR_CUDA(*this, blas->create(&lt)) && WEIR_CUDA(*this, cudaMalloc(&workspace, workspace_bytes)) &&
         WEIR_CUDA(*this, cudaMalloc(&small.device, small.size)) &&
         WEIR_CUDA(*this, cudaMallocHost(&small.host, small.size)) && open_wide(*this);
}

device::~device() {
  if (cudaSetDevice(index) != cudaSuccess) return;  // the driver has shut down and freed the memory
  if (stream) cudaStreamSynchronize(stream);
  linears.reset();
  if (lt) blas->destroy(lt);
  if (workspace) cudaFree(workspace);
  if (arrived) cudaFree(arrived);
  if (small.device) cudaFree(small.device);
  if (small.host) cudaFreeHost(small.host);
  for (cudaEvent_t e : uploaded)
    if (e) cudaEventDestroy(e);
  if (stream) cudaStreamDestroy(stream);
}

void device::use() { WEIR_CUDA(*this, cudaSetDevice(index)); }

void device::sync() {
  if (!failed()) WEIR_CUDA(*this, cudaStreamSynchronize(stream));
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
