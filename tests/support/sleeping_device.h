// sleeping_device.h — a device whose memory can be given back, made of a backend of the host: its memory is
// its own (on_host is false), and whoever touches memory that was given back dies.
#pragma once

#include <sys/mman.h>

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <new>
#include <utility>
#include <vector>

#include "kernels/host_memory.h"
#include "kernels/ops.h"

namespace weir::tests {

// What the device does wrong, and what it counts. One device at a time.
struct sleeping_device {
  kernels::backend table;
  std::shared_ptr<const kernels::backend> real;
  std::map<std::byte*, std::uint64_t> given_back;  // by address
  std::uint64_t taken = 0;                         // bytes of allocations that are not given back
  bool host_short = false;                         // do_allocate_host has no memory
  std::uint64_t room = ~std::uint64_t{0};          // the most bytes that may be taken
  std::vector<const std::atomic<bool>*> ways;      // to whom it was told to give way, in order
  std::byte* flip = nullptr;                       // the byte that the next upload over it gets wrong

  static sleeping_device& now() {
    static sleeping_device it;
    return it;
  }
};

inline std::shared_ptr<const kernels::backend> make_sleeping_device(
    std::shared_ptr<const kernels::backend> real) {
  sleeping_device& d = sleeping_device::now();
  d = {};
  d.table = *real;
  d.real = std::move(real);
  d.table.on_host = false;
  d.table.do_allocate = [](void* self, std::uint64_t bytes) -> void* {
    auto& it = sleeping_device::now();
    if (it.taken + bytes > it.room) return nullptr;
    void* at = kernels::host_allocate(self, bytes);
    if (at) it.taken += bytes;
    return at;
  };
  d.table.do_free = [](void* self, void* at, std::uint64_t bytes) {
    auto& it = sleeping_device::now();
    if (it.given_back.erase(static_cast<std::byte*>(at)) == 0) it.taken -= bytes;
    kernels::host_free(self, at, bytes);
  };
  d.table.do_give_back = [](void* self, void* at, std::uint64_t bytes) {
    auto& it = sleeping_device::now();
    it.given_back.emplace(static_cast<std::byte*>(at), bytes);
    it.taken -= bytes;
    kernels::host_give_back(self, at, bytes);
    ::mprotect(at, bytes, PROT_NONE);
    return bytes;
  };
  d.table.do_take_again = [](void* self, void* at, std::uint64_t bytes) {
    auto& it = sleeping_device::now();
    if (it.taken + bytes > it.room) return false;
    ::mprotect(at, bytes, PROT_READ | PROT_WRITE);
    it.given_back.erase(static_cast<std::byte*>(at));
    it.taken += bytes;
    return kernels::host_take_again(self, at, bytes);
  };
  d.table.do_upload = [](void* self, void* to, const void* from, std::uint64_t bytes) {
    auto& it = sleeping_device::now();
    kernels::host_move(self, to, from, bytes);
    auto* first = static_cast<std::byte*>(to);
    if (it.flip < first || it.flip >= first + bytes) return;
    *it.flip ^= std::byte{0x10};
    it.flip = nullptr;
  };
  d.table.do_allocate_host = [](void*, std::uint64_t bytes) -> void* {
    return sleeping_device::now().host_short ? nullptr : ::operator new(bytes, std::nothrow);
  };
  d.table.do_give_way = [](void*, const std::atomic<bool>* to) { sleeping_device::now().ways.push_back(to); };
  d.table.do_free_host = [](void*, void* at, std::uint64_t) { ::operator delete(at); };
  return {d.real, &d.table};
}

}  // namespace weir::tests
