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
  for (auto& [at, r] : reservations_) {
    unmap_pieces(at, r, 0, r.bytes);
    driver_.unreserve(at, r.bytes);
  }
}

// Whether a call succeeded. Where it failed for another reason than a shortage, the device has failed.
bool virtual_memory::check(CUresult e, const char* what) { return check(e, what, d_.fault); }

bool virtual_memory::check(CUresult e, const char* what, fault_of& into) const {
  if (e == CUDA_SUCCESS) return true;
  if (e == CUDA_ERROR_OUT_OF_MEMORY || !into.empty()) return false;
  const char* name = nullptr;
  if (driver_.error_name(e, &name) != CUDA_SUCCESS || !name) name = "unknown error";
  into = d_.label + ": " + name + " at " + what;
  return false;
}

// Makes a failure with a part the device's fault. On the device's thread.
void virtual_memory::report_parts() {
  const std::lock_guard hold(mutex_);
  if (!d_.failed()) d_.fault = part_fault_;
}

// 0: they are not there.
CUdeviceptr virtual_memory::reserve_addresses(std::uint64_t bytes) {
  CUdeviceptr first = 0;
  const CUresult e = driver_.reserve(&first, bytes, 0, 0, 0);
  // More addresses than there are: so much memory is not there, either.
  if (e == CUDA_ERROR_INVALID_VALUE || !check(e, "cuMemAddressReserve")) return 0;
  return first;
}

void* virtual_memory::allocate(std::uint64_t bytes) {
  report_parts();
  if (d_.failed() || bytes > ~std::uint64_t{0} - unit_) return nullptr;
  const std::uint64_t all = (bytes + unit_ - 1) / unit_ * unit_;
  const CUdeviceptr first = reserve_addresses(all);
  if (first == 0) return nullptr;
  void* at = reinterpret_cast<void*>(first);
  if (!map_all(at, all)) {
    check(driver_.unreserve(first, all), "cuMemAddressFree");
    return nullptr;
  }
  ranges_.emplace(at, range{all, true});
  return at;
}

void virtual_memory::free(void* at) {
  report_parts();
  const auto found = ranges_.find(at);
  if (found == ranges_.end()) {
    const std::lock_guard hold(mutex_);
    const auto [first, r] = find(at);
    unmap_pieces(first, *r, 0, r->bytes);
    check(driver_.unreserve(first, r->bytes), "cuMemAddressFree");
    reservations_.erase(first);
    return;
  }
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

void* virtual_memory::reserve(std::uint64_t bytes, std::uint64_t piece) {
  report_parts();
  if (d_.failed()) return nullptr;
  const CUdeviceptr first = reserve_addresses(bytes);
  if (first == 0) return nullptr;
  const std::lock_guard hold(mutex_);
  reservations_[first] = {bytes, piece, std::vector<std::uint64_t>((bytes + piece - 1) / piece)};
  return reinterpret_cast<void*>(first);
}

std::pair<CUdeviceptr, virtual_memory::reservation*> virtual_memory::find(void* at) const {
  auto behind = reservations_.upper_bound(number(at));
  if (behind == reservations_.begin()) return {0, nullptr};
  auto& [first, r] = *--behind;
  if (number(at) - first >= r.bytes) return {0, nullptr};
  return {first, &r};
}

bool virtual_memory::reserved(void* at) const {
  const std::lock_guard hold(mutex_);
  return find(at).second != nullptr;
}

std::uint64_t virtual_memory::give_back_part(void* at, std::uint64_t bytes) {
  const std::lock_guard hold(mutex_);
  const auto [first, r] = find(at);
  const std::uint64_t from = number(at) - first;
  return unmap_pieces(first, *r, from, from + bytes);
}

bool virtual_memory::take_part(void* at, std::uint64_t bytes) {
  const std::lock_guard hold(mutex_);
  if (!part_fault_.empty()) return false;
  const auto [first, r] = find(at);
  const std::uint64_t from = number(at) - first, end = from + bytes;
  std::uint64_t done = from;
  while (done < end) {
    const std::uint64_t n = std::min(r->piece, end - done);
    if (!map_one(first + done, n, part_fault_)) break;
    r->mapped[done / r->piece] = n;
    done += n;
  }
  if (done == end && allow(number(at), bytes, part_fault_)) return true;
  unmap_pieces(first, *r, from, done);
  return false;
}

// Maps all granules of a range, or none.
bool virtual_memory::map_all(void* at, std::uint64_t bytes) {
  std::uint64_t done = 0;
  while (done < bytes) {
    const std::uint64_t n = std::min(granule, bytes - done);
    if (!map_one(number(at) + done, n, d_.fault)) break;
    done += n;
  }
  if (done == bytes && allow(number(at), bytes, d_.fault)) return true;
  unmap(at, done);
  return false;
}

// Once the handle is released, the mapping alone holds the memory.
bool virtual_memory::map_one(CUdeviceptr at, std::uint64_t bytes, fault_of& into) {
  const CUmemAllocationProp k = memory_of(on_);
  CUmemGenericAllocationHandle handle = 0;
  if (!check(driver_.create(&handle, bytes, &k, 0), "cuMemCreate", into)) return false;
  const bool mapped = check(driver_.map(at, bytes, 0, handle, 0), "cuMemMap", into);
  check(driver_.release(handle), "cuMemRelease", into);
  return mapped;
}

bool virtual_memory::allow(CUdeviceptr at, std::uint64_t bytes, fault_of& into) {
  CUmemAccessDesc access = {};
  access.location = memory_of(on_).location;
  access.flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
  return check(driver_.set_access(at, bytes, &access, 1), "cuMemSetAccess", into);
}

// Unmaps the first `bytes` bytes of a range, granule by granule: a call takes whole mappings alone.
void virtual_memory::unmap(void* at, std::uint64_t bytes) {
  for (std::uint64_t done = 0; done < bytes; done += granule)
    check(driver_.unmap(number(at) + done, std::min(granule, bytes - done)), "cuMemUnmap");
}

// Unmaps the pieces that begin in [from, to), offsets from the first address, and returns their bytes. A
// piece that the driver keeps counts as unmapped: the device has failed then.
std::uint64_t virtual_memory::unmap_pieces(CUdeviceptr first, reservation& r, std::uint64_t from,
                                           std::uint64_t to) {
  std::uint64_t sum = 0;
  for (std::uint64_t i = from / r.piece; i * r.piece < to; ++i) {
    if (r.mapped[i] == 0) continue;
    if (check(driver_.unmap(first + i * r.piece, r.mapped[i]), "cuMemUnmap", part_fault_)) sum += r.mapped[i];
    r.mapped[i] = 0;
  }
  return sum;
}

}  // namespace weir::kernels::cuda
