#include "kernels/cuda/device/vmm.h"

#include <algorithm>

#include "kernels/cuda/device/device.h"

namespace weir::kernels::cuda {
namespace {

// Whether the driver has the function.
template <class F>
bool find(F& to, const char* name) {
  void* at = nullptr;
  cudaDriverEntryPointQueryResult found = cudaDriverEntryPointSymbolNotFound;
  const cudaError_t e = cudaGetDriverEntryPointByVersion(name, &at, 12000, cudaEnableDefault, &found);
  (void)cudaGetLastError();  // clears the error, which the next launch would report
  if (e != cudaSuccess || found != cudaDriverEntryPointSuccess) return false;
  to = reinterpret_cast<F>(at);
  return to != nullptr;
}

bool find_all(vmm_driver& to) {
  return find(to.device_of, "cuDeviceGet") && find(to.attribute, "cuDeviceGetAttribute") &&
         find(to.error_name, "cuGetErrorName") && find(to.granularity, "cuMemGetAllocationGranularity") &&
         find(to.reserve, "cuMemAddressReserve") && find(to.unreserve, "cuMemAddressFree") &&
         find(to.create, "cuMemCreate") && find(to.release, "cuMemRelease") && find(to.map, "cuMemMap") &&
         find(to.unmap, "cuMemUnmap") && find(to.set_access, "cuMemSetAccess");
}

CUdeviceptr number(void* at) { return reinterpret_cast<CUdeviceptr>(at); }

CUmemAllocationProp memory_of(CUdevice on) {
  CUmemAllocationProp out = {};
  out.type = CU_MEM_ALLOCATION_TYPE_PINNED;
  out.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
  out.location.id = on;
  return out;
}

}  // namespace

std::shared_ptr<virtual_memory> virtual_memory::open(device& d) {
  vmm_driver driver;
  CUdevice on = 0;
  int supported = 0;
  std::size_t unit = 0;
  if (!find_all(driver) || driver.device_of(&on, d.index) != CUDA_SUCCESS) return nullptr;
  const auto asked = CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED;
  if (driver.attribute(&supported, asked, on) != CUDA_SUCCESS || !supported) return nullptr;
  const CUmemAllocationProp k = memory_of(on);
  const CUresult e = driver.granularity(&unit, &k, CU_MEM_ALLOC_GRANULARITY_MINIMUM);
  if (e != CUDA_SUCCESS || unit == 0 || granule % unit != 0) return nullptr;
  return std::make_shared<virtual_memory>(d, driver, on, unit);
}

virtual_memory::~virtual_memory() {
  for (const auto& [at, r] : ranges_) {
    if (r.mapped) unmap(at, r.bytes);
    driver_.unreserve(number(at), r.bytes);
  }
}

// Whether a call succeeded. Where it failed for another reason than a shortage, the device has failed.
bool virtual_memory::check(CUresult e, const char* what) {
  if (e == CUDA_SUCCESS) return true;
  if (e == CUDA_ERROR_OUT_OF_MEMORY || d_.failed()) return false;
  const char* name = nullptr;
  if (driver_.error_name(e, &name) != CUDA_SUCCESS || !name) name = "unknown error";
  d_.fault = d_.label + ": " + name + " at " + what;
  return false;
}

void* virtual_memory::allocate(std::uint64_t bytes) {
  if (bytes > ~std::uint64_t{0} - unit_) return nullptr;
  const std::uint64_t all = (bytes + unit_ - 1) / unit_ * unit_;
  CUdeviceptr first = 0;
  const CUresult e = driver_.reserve(&first, all, 0, 0, 0);
  // More addresses than there are: so much memory is not there, either.
  if (e == CUDA_ERROR_INVALID_VALUE || !check(e, "cuMemAddressReserve")) return nullptr;
  void* at = reinterpret_cast<void*>(first);
  if (!map_all(at, all)) {
    check(driver_.unreserve(first, all), "cuMemAddressFree");
    return nullptr;
  }
  ranges_.emplace(at, range{all, true});
  return at;
}

void virtual_memory::free(void* at) {
  const auto found = ranges_.find(at);
  if (found->second.mapped) unmap(at, found->second.bytes);
  check(driver_.unreserve(number(at), found->second.bytes), "cuMemAddressFree");
  ranges_.erase(found);
}

std::uint64_t virtual_memory::give_back(void* at) {
  range& r = ranges_.at(at);
  if (!r.mapped) return 0;
  unmap(at, r.bytes);
  r.mapped = false;
  return r.bytes;
}

bool virtual_memory::take_again(void* at) {
  range& r = ranges_.at(at);
  if (!r.mapped) r.mapped = map_all(at, r.bytes);
  return r.mapped;
}

// Maps all granules of a range, or none.
bool virtual_memory::map_all(void* at, std::uint64_t bytes) {
  std::uint64_t done = 0;
  while (done < bytes) {
    const std::uint64_t n = std::min(granule, bytes - done);
    if (!map_one(number(at) + done, n)) break;
    done += n;
  }
  CUmemAccessDesc access = {};
  access.location = memory_of(on_).location;
  access.flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
  if (done == bytes && check(driver_.set_access(number(at), bytes, &access, 1), "cuMemSetAccess"))
    return true;
  unmap(at, done);
  return false;
}

// Once the handle is released, the mapping alone holds the memory.
bool virtual_memory::map_one(CUdeviceptr at, std::uint64_t bytes) {
  const CUmemAllocationProp k = memory_of(on_);
  CUmemGenericAllocationHandle handle = 0;
  if (!check(driver_.create(&handle, bytes, &k, 0), "cuMemCreate")) return false;
  const bool mapped = check(driver_.map(at, bytes, 0, handle, 0), "cuMemMap");
  check(driver_.release(handle), "cuMemRelease");
  return mapped;
}

// Unmaps the first `bytes` bytes of a range, granule by granule: a call takes whole mappings alone.
void virtual_memory::unmap(void* at, std::uint64_t bytes) {
  for (std::uint64_t done = 0; done < bytes; done += granule)
    check(driver_.unmap(number(at) + done, std::min(granule, bytes - done)), "cuMemUnmap");
}

}  // namespace weir::kernels::cuda
