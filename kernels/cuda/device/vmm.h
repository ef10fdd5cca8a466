// vmm.h — memory of a device that can be given back while its addresses stay: an allocation is a reserved
// range of addresses, and memory that is mapped there. Recorded graphs, plans of products and tensor maps,
// which contain addresses, thus hold when the memory is gone and comes again.
//
// Source: CUDA Driver API, «Virtual Memory Management» (cuMemAddressReserve, cuMemCreate, cuMemMap,
// cuMemSetAccess). Memory is made in granules of 64 MiB, since the cost is by the call: 8 GiB in and out took
// 179 and 161 ms in granules of 2 MiB, and 7.3 and 8.3 ms in granules of 64 MiB (H200). The last granule of
// an allocation is smaller, so that the allocation takes what cudaMalloc would: its bytes, rounded up to the
// device's granularity (2 MiB).
//
// The driver's functions are asked for at run time, so that the program starts without a driver.
//
// Thread safety: the device's (device.h).
//
// Errors: memory that is short is no fault of the device. Any other failure is.
//
// Invariant: of an allocation all memory is mapped, or none.
#pragma once

#include <cuda.h>

#include <cstdint>
#include <memory>
#include <unordered_map>

namespace weir::kernels::cuda {

struct device;

// The functions of the driver. A null function: the driver does not have it.
struct vmm_driver {
  decltype(&cuDeviceGet) device_of = nullptr;
  decltype(&cuDeviceGetAttribute) attribute = nullptr;
  decltype(&cuGetErrorName) error_name = nullptr;
  decltype(&cuMemGetAllocationGranularity) granularity = nullptr;
  decltype(&cuMemAddressReserve) reserve = nullptr;
  decltype(&cuMemAddressFree) unreserve = nullptr;
  decltype(&cuMemCreate) create = nullptr;
  decltype(&cuMemRelease) release = nullptr;
  decltype(&cuMemMap) map = nullptr;
  decltype(&cuMemUnmap) unmap = nullptr;
  decltype(&cuMemSetAccess) set_access = nullptr;
};

class virtual_memory {
 public:
  static constexpr std::uint64_t granule = 64u << 20;

  // Null: the device has no virtual memory management, or the driver lacks a function of it. `d` outlives
  // what is returned.
  static std::shared_ptr<virtual_memory> open(device& d);

  // `unit`: the device's granularity, which divides `granule`.
  virtual_memory(device& d, const vmm_driver& driver, CUdevice on, std::uint64_t unit)
      : d_(d), driver_(driver), on_(on), unit_(unit) {}
  virtual_memory(const virtual_memory&) = delete;
  ~virtual_memory();

  // Whether an allocation of `bytes` bytes is large enough to be made here.
  bool takes(std::uint64_t bytes) const noexcept { return bytes >= unit_; }
  // Returns memory that is not zeroed. Null: memory is short, or the device failed. REQUIRES: takes(bytes)
  void* allocate(std::uint64_t bytes);

  // Whether `at` was allocated here.
  bool owns(void* at) const { return ranges_.contains(at); }
  // These wait for no work: the device must be done with the memory. REQUIRES: owns(at)
  void free(void* at);
  std::uint64_t give_back(void* at);  // the bytes that were given back; 0: they were before
  bool take_again(void* at);          // false: memory is short, or the device failed; nothing was taken

 private:
  // Reserved addresses; a multiple of unit_.
  struct range {
    std::uint64_t bytes = 0;
    bool mapped = false;
  };

  bool check(CUresult e, const char* what);
  bool map_all(void* at, std::uint64_t bytes);
  bool map_one(CUdeviceptr at, std::uint64_t bytes);
  void unmap(void* at, std::uint64_t bytes);

  device& d_;
  const vmm_driver driver_;
  const CUdevice on_;
  const std::uint64_t unit_;
  std::unordered_map<void*, range> ranges_;
};

}  // namespace weir::kernels::cuda
