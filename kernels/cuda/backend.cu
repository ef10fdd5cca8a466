// The table of a CUDA device: memory, copies, and the entries that other files implement.
#include "kernels/cuda/backend.h"

#include <algorithm>

#include "kernels/cuda/decoder.h"
#include "kernels/cuda/decoder_room.h"
#include "kernels/cuda/device/device.h"
#include "kernels/cuda/device/limits.h"
#include "kernels/cuda/device/pinned.h"
#include "kernels/cuda/device/vmm.h"
#include "kernels/cuda/pages/copy.h"
#include "kernels/cuda/pieces.h"
#include "kernels/cuda/products/block_layout.h"
#include "kernels/cuda/products/pack_codes.h"
#include "kernels/cuda/random.h"
#include "kernels/cuda/sizes.h"

namespace weir::kernels {
namespace cuda {
namespace {

constexpr std::uint64_t zeroed_at_once = 1u << 30;  // 0.4 ms on an H100
constexpr std::uint64_t long_copy = 16u << 20;      // bytes from which on a copy gives way to others

// Zeroes memory, and waits for it.
bool zero(device& d, void* at, std::uint64_t bytes) {
  for (std::uint64_t done = 0; done < bytes && !d.failed(); done += zeroed_at_once) {
    auto* to = static_cast<std::byte*>(at) + done;
    WEIR_CUDA(d, cudaMemsetAsync(to, 0, std::min(zeroed_at_once, bytes - done), d.stream));
    d.breathe(device::rests_of_copies);
  }
  d.sync();
  return !d.failed();
}

void* allocate_small(device& d, std::uint64_t bytes) {
  void* at = nullptr;
  const cudaError_t e = cudaMalloc(&at, bytes);
  if (e == cudaErrorMemoryAllocation) {
    (void)cudaGetLastError();  // clears the error, which the next launch would report
    return nullptr;
  }
  WEIR_CUDA(d, e);
  return at;
}

// Memory that is short is reported by null; it is not a fault of the device.
void* allocate(void* self, std::uint64_t bytes) {
  device& d = of(self);
  if (d.failed()) return nullptr;
  void* at = d.vmm && d.vmm->takes(bytes) ? d.vmm->allocate(bytes) : allocate_small(d, bytes);
  return at && zero(d, at, bytes) ? at : nullptr;
}

void release(void* self, void* at, std::uint64_t) {
  device& d = of(self);
  d.sync();
  if (d.vmm && d.vmm->owns(at)) return d.vmm->free(at);
  WEIR_CUDA(d, cudaFree(at));
}

void* reserve(void* self, std::uint64_t bytes, std::uint64_t piece) {
  device& d = of(self);
  if (d.failed()) return nullptr;
  if (!d.parts && !WEIR_CUDA(d, cudaStreamCreateWithFlags(&d.parts, cudaStreamNonBlocking))) return nullptr;
  return d.vmm->reserve(bytes, piece);
}

// Parts of reservations come and go on other threads than the device's: these two use nothing of the device
// but its virtual memory and a stream for them alone, and leave its fault as it is.
std::uint64_t give_back_part(device& d, void* at, std::uint64_t bytes) {
  return cudaSetDevice(d.index) == cudaSuccess ? d.vmm->give_back_part(at, bytes) : 0;
}

bool take_part(device& d, void* at, std::uint64_t bytes) {
  if (cudaSetDevice(d.index) != cudaSuccess || !d.vmm->take_part(at, bytes)) return false;
  if (cudaMemsetAsync(at, 0, bytes, d.parts) == cudaSuccess && cudaStreamSynchronize(d.parts) == cudaSuccess)
    return true;
  d.vmm->give_back_part(at, bytes);
  return false;
}

std::uint64_t give_back(void* self, void* at, std::uint64_t bytes) {
  virtual_memory& vmm = *static_cast<device*>(self)->vmm;
  if (vmm.reserved(at)) return give_back_part(*static_cast<device*>(self), at, bytes);
  device& d = of(self);
  d.sync();
  return d.failed() || !vmm.owns(at) ? 0 : vmm.give_back(at);
}

bool take_again(void* self, void* at, std::uint64_t bytes) {
  virtual_memory& vmm = *static_cast<device*>(self)->vmm;
  if (vmm.reserved(at)) return take_part(*static_cast<device*>(self), at, bytes);
  device& d = of(self);
  if (d.failed()) return false;
  return !vmm.owns(at) || (vmm.take_again(at) && zero(d, at, bytes));
}

void upload(void* self, void* to, const void* from, std::uint64_t bytes) {
  device& d = of(self);
  if (d.failed()) return;
  WEIR_CUDA(d, cudaMemcpyAsync(to, from, bytes, cudaMemcpyHostToDevice, d.stream));
  d.sync();
  if (bytes >= long_copy) d.breathe(device::rests_of_copies);
}

void download(void* self, void* to, const void* from, std::uint64_t bytes) {
  device& d = of(self);
  if (d.failed()) return;
  WEIR_CUDA(d, cudaMemcpyAsync(to, from, bytes, cudaMemcpyDeviceToHost, d.stream));
  d.sync();
  if (bytes >= long_copy) d.breathe(device::rests_of_copies);
}

void run_copy(void* self, const copy& c) { copy_pieces(of(self), c); }

void* allocate_host(void* self, std::uint64_t bytes) {
  device& d = of(self);
  return d.failed() ? nullptr : allocate_pinned(d, bytes);
}

void release_host(void* self, void* at, std::uint64_t bytes) {
  device& d = of(self);
  d.sync();
  free_pinned(d, at, bytes);
}

void begin_upload(void* self, void* to, const void* from, std::uint64_t bytes, unsigned lane) {
  device& d = of(self);
  if (d.failed()) return;
  cudaEvent_t& e = d.uploaded[lane];
  if (!e && !WEIR_CUDA(d, cudaEventCreateWithFlags(&e, cudaEventDisableTiming))) return;
  WEIR_CUDA(d, cudaMemcpyAsync(to, from, bytes, cudaMemcpyHostToDevice, d.stream));
  WEIR_CUDA(d, cudaEventRecord(e, d.stream));
  d.breathe(device::rests_of_copies);
}

void await_upload(void* self, unsigned lane) {
  device& d = of(self);
  if (!d.failed() && d.uploaded[lane]) WEIR_CUDA(d, cudaEventSynchronize(d.uploaded[lane]));
}

std::uint64_t free_bytes(void* self) {
  device& d = of(self);
  std::size_t free = 0, total = 0;
  if (!WEIR_CUDA(d, cudaMemGetInfo(&free, &total))) return 0;
  return free;
}

device_memory memory(void* self) {
  device& d = of(self);
  std::size_t free = 0, total = 0;
  if (!WEIR_CUDA(d, cudaMemGetInfo(&free, &total))) return {};
  return {total, free, d.workspaces};
}

void pack(void* self, const matrix& rows, void* to) {
  if (is_plain(rows.type)) return upload(self, to, rows.data, rows.bytes());
  device& d = of(self);
  if (d.failed()) return;
  matrix packed = rows;
  packed.data = to;
  WEIR_CUDA(d, cudaMemsetAsync(to, 0, block_bytes(rows.type, rows.rows, rows.cols), d.stream));
  upload_blocks(d, packed, 0, rows);
  d.sync();
}

void begin_pack(void* self, const matrix& packed, const packed_part& part, unsigned lane) {
  device& d = of(self);
  if (d.failed()) return;
  cudaEvent_t& e = d.uploaded[lane];
  if (!e && !WEIR_CUDA(d, cudaEventCreateWithFlags(&e, cudaEventDisableTiming))) return;
  if (part.codes)
    upload_codes(d, *part.codes, part.first, packed);
  else
    upload_blocks(d, packed, part.first, part.rows);
  WEIR_CUDA(d, cudaEventRecord(e, d.stream));
  d.breathe(device::rests_of_copies);
}

void give_way(void* self, const std::atomic<bool>* busy) {
  device& d = of(self);
  d.others_busy = busy;
  d.piece_began = std::chrono::steady_clock::now();
}

const char* fault(void* self) {
  device& d = of(self);
  return d.failed() ? d.fault.c_str() : nullptr;
}

}  // namespace
}  // namespace cuda

cuda_machine find_cuda() {
  cuda_count c;
  c.runtime = CUDART_VERSION;
  const cudaError_t e = cudaGetDeviceCount(&c.devices);
  (void)cudaGetLastError();  // clears the error, which the next launch would report
  if (cudaDriverGetVersion(&c.driver) != cudaSuccess) c.driver = 0;
  (void)cudaGetLastError();
  // The library that is only linked against, not a driver.
  if (e == cudaErrorStubLibrary) c.driver = 0;
  c.no_device = e == cudaErrorNoDevice;
  c.driver_too_old = e == cudaErrorInsufficientDriver;
  if (e != cudaSuccess) c.failure = std::string(cudaGetErrorName(e)) + ", " + cudaGetErrorString(e);
  return machine_of(c);
}

int cuda_devices(std::string& why_none) {
  const cuda_machine found = find_cuda();
  why_none = found.why;
  return found.devices;
}

std::shared_ptr<const backend> cuda_backend(int index, std::string& why_not, bool deterministic) {
  const int count = cuda_devices(why_not);
  if (count == 0) return nullptr;
  if (index < 0 || index >= count) {
    why_not =
        "cuda:" + std::to_string(index) + " is not there, devices are 0 to " + std::to_string(count - 1);
    return nullptr;
  }
  auto d = std::make_shared<cuda::device>();
  d->deterministic = deterministic;
  if (!d->open(index)) {
    why_not = d->fault;
    return nullptr;
  }
  backend& t = d->table;
  cuda::fill_sizes(t, *d);
  cuda::fill_table(t);
  t.name = d->name;
  t.self = d.get();
  t.decoder_needs_of = [](void* self, const decoder_shape& s, std::uint32_t decode_rows,
                          std::uint32_t most_pages) {
    return cuda::needs_of(*static_cast<cuda::device*>(self), s, decode_rows, most_pages);
  };
  t.do_allocate = cuda::allocate;
  t.do_free = cuda::release;
  if (d->vmm) {
    t.do_reserve = cuda::reserve;
    t.do_give_back = cuda::give_back;
    t.do_take_again = cuda::take_again;
  }
  t.do_upload = cuda::upload;
  t.do_download = cuda::download;
  t.do_copy = cuda::run_copy;
  t.free_bytes = cuda::free_bytes;
  t.memory = cuda::memory;
  t.do_allocate_host = cuda::allocate_host;
  t.do_free_host = cuda::release_host;
  t.do_begin_upload = cuda::begin_upload;
  t.do_await_upload = cuda::await_upload;
  t.fault = cuda::fault;
  t.do_give_way = cuda::give_way;
  t.do_pack = cuda::pack;
  t.do_begin_pack = cuda::begin_pack;
  t.do_fill_random = cuda::fill_random;
  t.do_read = cuda::read;
  t.peak_flops = cuda::peak_flops;
  t.make_decoder = cuda::make_decoder;
  return {d, &t};
}

std::optional<cuda_facts> facts_of(const backend& b) {
  if (b.make_decoder != cuda::make_decoder) return std::nullopt;
  return *static_cast<const cuda::device*>(b.self);
}

device_state cuda_state(int index) {
  char bus[32] = "";
  const cudaError_t e = cudaDeviceGetPCIBusId(bus, sizeof bus, index);
  if (e == cudaSuccess) return read_state(bus);
  (void)cudaGetLastError();  // clears the error, which the next launch would report
  device_state s;
  s.why_unknown = cudaGetErrorString(e);
  return s;
}

device_state state_of(const backend& b) {
  if (b.make_decoder == cuda::make_decoder) return cuda_state(cuda::of(b.self).index);
  device_state s;
  s.why_unknown = std::string(b.name) + " is no CUDA device";
  return s;
}

std::vector<decoder_piece> time_cuda_decoder(const backend& b, const decoder_shape& shape, std::uint32_t rows,
                                             std::uint32_t context) {
  if (b.make_decoder != cuda::make_decoder) return {};
  return cuda::time_decoder(b.self, shape, rows, context);
}

}  // namespace weir::kernels
