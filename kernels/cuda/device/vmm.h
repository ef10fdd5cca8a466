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
// A reservation is a range of addresses of which parts have memory: a pool of pages that gives way. Its
// pieces are smaller than 64 MiB, as the pool has a part that ends by itself for each layer.
//
// Thread safety: the device's (device.h). Parts of reservations may be given back and taken on any thread,
// one call at a time, beside the device's own; a mutex guards the list of reservations, and no hot path takes
// it.
//
// Errors: memory that is short is no fault of the device. Any other failure is. A failure with a part is kept
// until the next call on the device's thread, which makes it the device's fault.
//
// Invariant: of an allocation, and of a part that is taken, all memory is mapped, or none.
#pragma once

#include <cuda.h>

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <unordered_map>
#include <vector>

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

  std::uint64_t unit() const noexcept { return unit_; }  // bytes

  // Whether an allocation of `bytes` bytes is large enough to be made here.
  bool takes(std::uint64_t bytes) const noexcept { return bytes >= unit_; }
  // Returns memory that is not zeroed. Null: memory is short, or the device failed. REQUIRES: takes(bytes)
  void* allocate(std::uint64_t bytes);

  // Reserves addresses without memory, which comes and goes in pieces of `piece` bytes. Null: so many are not
  // there, or the device failed. REQUIRES: bytes and piece are multiples of unit(), and not 0
  void* reserve(std::uint64_t bytes, std::uint64_t piece);
  // Whether `at` lies in a reservation. Any thread.
  bool reserved(void* at) const;
  // Gives back the memory of a part [at, at + bytes) of a reservation, as backend::do_give_back says, and
  // returns its bytes. Any thread. REQUIRES: the device is done with it; reserved(at)
  std::uint64_t give_back_part(void* at, std::uint64_t bytes);
  // Takes memory for a part, which is not zeroed. False: nothing was taken. Any thread. REQUIRES: nothing
  // there has memory; reserved(at)
  bool take_part(void* at, std::uint64_t bytes);

  // Whether `at` was allocated or reserved here.
  bool owns(void* at) const { return ranges_.contains(at) || reserved(at); }
  // These wait for no work: the device must be done with the memory. REQUIRES: owns(at)
  void free(void* at);
  // Of allocations alone.
  std::uint64_t give_back(void* at);  // the bytes that were given back; 0: they were before
  bool take_again(void* at);          // false: memory is short, or the device failed; nothing was taken

 private:
  // Reserved addresses; a multiple of unit_.
  struct range {
    std::uint64_t bytes = 0;
    bool mapped = false;
  };

  // Reserved addresses; the mapped bytes of each piece, from its beginning.
  struct reservation {
    std::uint64_t bytes = 0, piece = 0;
    std::vector<std::uint64_t> mapped;
  };
  // Where failures of calls are kept: a fault of the device, or `part_fault_`.
  using fault_of = std::string;

  bool check(CUresult e, const char* what);
  bool check(CUresult e, const char* what, fault_of& into) const;
  CUdeviceptr reserve_addresses(std::uint64_t bytes);
  bool map_all(void* at, std::uint64_t bytes);
  bool map_one(CUdeviceptr at, std::uint64_t bytes, fault_of& into);
  bool allow(CUdeviceptr at, std::uint64_t bytes, fault_of& into);
  void unmap(void* at, std::uint64_t bytes);
  std::uint64_t unmap_pieces(CUdeviceptr first, reservation& r, std::uint64_t from, std::uint64_t to);
  // The reservation that `at` lies in, with its first address; null: none. REQUIRES: mutex_ is held
  std::pair<CUdeviceptr, reservation*> find(void* at) const;
  void report_parts();

  device& d_;
  const vmm_driver driver_;
  const CUdevice on_;
  const std::uint64_t unit_;
  std::unordered_map<void*, range> ranges_;
  mutable std::mutex mutex_;                                 // guards the two below
  mutable std::map<CUdeviceptr, reservation> reservations_;  // by first address
  fault_of part_fault_;                                      // of a part, not reported yet
};

}  // namespace weir::kernels::cuda
