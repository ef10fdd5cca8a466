// memory_use.h — what a model takes of its device, in bytes: counted, and measured around its load.
#pragma once

#include <cstdint>

#include "kernels/ops.h"

namespace weir::actors {

struct memory_use {
  std::uint64_t weights = 0, pages = 0;
  std::uint64_t host_pages = 0;  // of the host tier
  std::uint64_t workspaces = 0;  // what steps compute in, at their most rows
  std::uint64_t runtime = 0;  // code and graphs: by how much more than all this the device's free memory fell
  // The device, when the load was done; 0: the memory is the host's.
  std::uint64_t total = 0, free = 0;

  // From what the device said before and after. The driver hands out memory in large pieces: the rest of one
  // may have been there already.
  void reconcile(const kernels::device_memory& before, const kernels::device_memory& after) {
    workspaces = after.workspaces - before.workspaces;
    const std::uint64_t counted = weights + pages + workspaces, fell = before.free - after.free;
    runtime = before.free > after.free && fell > counted ? fell - counted : 0;
    total = after.total;
    free = after.free;
  }

  memory_use& operator+=(const memory_use& later) {
    weights += later.weights;
    pages += later.pages;
    host_pages += later.host_pages;
    workspaces += later.workspaces;
    runtime += later.runtime;
    total = later.total;
    free = later.free;
    return *this;
  }
};

}  // namespace weir::actors
