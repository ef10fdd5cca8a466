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
  std::map<std::byte*, std::uint64_t> given_back;                      // allocations, by address
  std::map<std::byte*, std::map<std::byte*, std::uint64_t>> reserved;  // their parts that have memory
  std::uint64_t taken = 0;                     // bytes of allocations that are not given back, and of parts
  bool host_short = false;                     // do_allocate_host has no memory
  std::uint64_t room = ~std::uint64_t{0};      // the most bytes that may be taken
  std::vector<const std::atomic<bool>*> ways;  // to whom it was told to give way, in order
  std::byte* flip = nullptr;                   // the byte that the next upload over it gets wrong

  static sleeping_device& now() {
    static sleeping_device it;
    return it;
  }

  // The parts of the reservation that `at` lies in; null: in none.
  std::map<std::byte*, std::uint64_t>* parts_around(void* at) {
    auto behind = reserved.upper_bound(static_cast<std::byte*>(at));
    if (behind == reserved.begin()) return nullptr;
    --behind;
    const std::uint64_t from = static_cast<std::uint64_t>(static_cast<std::byte*>(at) - behind->first);
    return from < reserved_bytes[behind->first] ? &behind->second : nullptr;
  }
  std::map<std::byte*, std::uint64_t> reserved_bytes;
};

// Gives back a part of a reservation; returns the bytes of it that had memory.
inline std::uint64_t give_part(void* self, std::byte* at, std::uint64_t bytes) {
  auto& it = sleeping_device::now();
  auto& parts = *it.parts_around(at);
  std::uint64_t had = 0;
  for (auto p = parts.lower_bound(at); p != parts.end() && p->first < at + bytes; p = parts.erase(p))
    had += p->second;
  it.taken -= had;
  kernels::host_give_back(self, at, bytes);
  ::mprotect(at, bytes, PROT_NONE);
  return had;
}

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
  d.table.do_reserve = [](void* self, std::uint64_t bytes, std::uint64_t piece) -> void* {
    auto& it = sleeping_device::now();
    void* at = kernels::host_reserve(self, bytes, piece);
    if (!at) return nullptr;
    ::mprotect(at, bytes, PROT_NONE);
    it.reserved[static_cast<std::byte*>(at)] = {};
    it.reserved_bytes[static_cast<std::byte*>(at)] = bytes;
    return at;
  };
  d.table.do_free = [](void* self, void* at, std::uint64_t bytes) {
    auto& it = sleeping_device::now();
    if (auto* parts = it.parts_around(at)) {
      for (const auto& [part, n] : *parts) it.taken -= n;
      it.reserved.erase(static_cast<std::byte*>(at));
      it.reserved_bytes.erase(static_cast<std::byte*>(at));
      return kernels::host_free(self, at, bytes);
    }
    if (it.given_back.erase(static_cast<std::byte*>(at)) == 0) it.taken -= bytes;
    kernels::host_free(self, at, bytes);
  };
  d.table.do_give_back = [](void* self, void* at, std::uint64_t bytes) {
    auto& it = sleeping_device::now();
    if (it.parts_around(at)) return give_part(self, static_cast<std::byte*>(at), bytes);
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
    if (auto* parts = it.parts_around(at)) {
      // in the smallest pages, so that any part of it may be given back
      for (std::uint64_t i = 0; i < bytes; i += it.table.pieces.unit)
        (*parts)[static_cast<std::byte*>(at) + i] = it.table.pieces.unit;
      it.taken += bytes;
      return kernels::host_take_again(self, at, bytes);
    }
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
