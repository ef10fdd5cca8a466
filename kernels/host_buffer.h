// host_buffer.h — memory of the host that a backend's copies and uploads may use: pinned where the backend
// has do_allocate_host, else ordinary memory, whose pages are first mapped when they are used.
//
// A host_buffer keeps its backend alive.
//
// Thread safety: none needed; one owner.
#pragma once

#include <cstdint>
#include <new>

#include "kernels/buffer.h"

namespace weir::kernels {

struct host_kind {
  static void* take(const backend& of, std::uint64_t bytes) {
    return of.do_allocate_host ? of.do_allocate_host(of.self, bytes) : ::operator new(bytes, std::nothrow);
  }
  static void give_back(const backend& of, void* at, std::uint64_t bytes) {
    if (of.do_free_host) return of.do_free_host(of.self, at, bytes);
    ::operator delete(at);
  }
};

using host_buffer = owned_memory<host_kind>;

}  // namespace weir::kernels
