#include "kernels/cuda/device/pinned.h"

#include <sys/mman.h>

#include <algorithm>
#include <thread>
#include <vector>

#include "kernels/host_room.h"

namespace weir::kernels::cuda {
namespace {

constexpr std::uint64_t large = 64u << 20;     // bytes from which on threads are worth their start
constexpr std::uint64_t huge_page = 2u << 20;  // of x86 and of most kernels for Arm
constexpr unsigned most_threads = 8;

std::uint64_t rounded(std::uint64_t bytes) { return (bytes + huge_page - 1) / huge_page * huge_page; }

// Whether kernels reach registered memory by the host's addresses, as they reach memory of cudaMallocHost.
bool registers(const device& d) {
  int supported = 0, same_address = 0;
  const bool asked =
      cudaDeviceGetAttribute(&supported, cudaDevAttrHostRegisterSupported, d.index) == cudaSuccess &&
      cudaDeviceGetAttribute(&same_address, cudaDevAttrCanUseHostPointerForRegisteredMem, d.index) ==
          cudaSuccess;
  return asked && supported && same_address;
}

// Reserves `bytes` bytes that begin at a multiple of a huge page. Null: there are no such addresses.
void* reserve(std::uint64_t bytes) {
  const std::uint64_t all = bytes + huge_page;
  void* got = ::mmap(nullptr, all, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (got == MAP_FAILED) return nullptr;
  auto* first = static_cast<std::byte*>(got);
  auto* at = reinterpret_cast<std::byte*>(rounded(reinterpret_cast<std::uint64_t>(first)));
  if (at != first) ::munmap(first, static_cast<std::size_t>(at - first));
  ::munmap(at + bytes, static_cast<std::size_t>(first + all - (at + bytes)));
  ::madvise(at, bytes, MADV_HUGEPAGE);
  return at;
}

// Touches every page, so that the system maps it. The system's least page is 4 KiB.
void touch(std::byte* at, std::uint64_t bytes) {
  for (std::uint64_t i = 0; i < bytes; i += 4096) static_cast<volatile std::byte*>(at)[i] = std::byte{0};
}

void touch_all(void* at, std::uint64_t bytes) {
  const std::uint64_t pages = bytes / huge_page;
  const std::uint64_t parts = std::clamp(std::thread::hardware_concurrency(), 1u, most_threads);
  std::vector<std::thread> helpers;
  const auto part = [&](std::uint64_t i) {
    const std::uint64_t from = pages * i / parts * huge_page, to = pages * (i + 1) / parts * huge_page;
    touch(static_cast<std::byte*>(at) + from, to - from);
  };
  for (std::uint64_t i = 1; i < parts; ++i) helpers.emplace_back(part, i);
  part(0);
  for (std::thread& t : helpers) t.join();
}

// `e`: what an allocation answered. Null, and no fault, where it says that memory is short, or that the
// system lets no more of it be pinned.
void* unless_short(device& d, cudaError_t e, void* at) {
  if (e == cudaErrorMemoryAllocation || e == cudaErrorNotPermitted || e == cudaErrorNotSupported ||
      e == cudaErrorOperatingSystem) {
    (void)cudaGetLastError();  // clears the error, which the next launch would report
    return nullptr;
  }
  return WEIR_CUDA(d, e) ? at : nullptr;
}

}  // namespace

void* allocate_pinned(device& d, std::uint64_t bytes) {
  if (bytes < large || !registers(d)) {
    void* at = nullptr;
    const cudaError_t e = cudaMallocHost(&at, bytes);
    return unless_short(d, e, at);
  }
  // Memory is refused here: the system would end the process that touches more than there is.
  if (host_room() < bytes) return nullptr;
  const std::uint64_t all = rounded(bytes);
  void* at = reserve(all);
  if (!at) return nullptr;
  touch_all(at, all);
  void* out = unless_short(d, cudaHostRegister(at, all, cudaHostRegisterDefault), at);
  if (!out) ::munmap(at, all);
  return out;
}

void free_pinned(device& d, void* at, std::uint64_t bytes) {
  if (bytes < large || !registers(d)) {
    WEIR_CUDA(d, cudaFreeHost(at));
    return;
  }
  WEIR_CUDA(d, cudaHostUnregister(at));
  ::munmap(at, rounded(bytes));
}

}  // namespace weir::kernels::cuda
