// memory_use.h — the bytes that a model takes of its device: some counted, some measured around its load.
#pragma once

#include <cstdint>
#include <string_view>

#include "core/memory/ledger.h"
#include "kernels/ops.h"

namespace weir::actors {

struct memory_use {
  std::uint64_t weights = 0, pages = 0;  // pages: of KV memory on the device
  std::string_view kv_type;              // of keys and values in pages; mixed: models differ; empty: no pages
  std::uint64_t host_pages = 0;          // host tier, in host memory
  std::uint64_t workspaces = 0;          // what the largest step computes in
  std::uint64_t runtime = 0;             // code and graphs: the measured fall of free memory beyond the above
  // The whole device after the load; 0 where models lie in host memory.
  std::uint64_t total = 0, free = 0;

  // Sets workspaces, runtime, total and free from what the device reported before and after the load, through
  // a backend that the model has for itself: what that backend took when it was opened counts, too. `runtime`
  // is 0 where free memory fell by less than was counted: the driver takes memory in large pieces, and one
  // may have been partly free before. REQUIRES: weights, pages and the model's own workspaces are set.
  void reconcile(const kernels::device_memory& before, const kernels::device_memory& after) {
    workspaces += after.workspaces;
    const std::uint64_t counted = weights + pages + workspaces - before.workspaces,
                        fell = before.free - after.free;
    runtime = before.free > after.free && fell > counted ? fell - counted : 0;
    total = after.total;
    free = after.free;
  }

  // What a model keeps of this device while it sleeps at level host, as core::asleep_part().
  friend memory_use asleep_part(memory_use m, std::string_view device) {
    m.pages = 0;
    if (!core::weights_stay(device)) m.weights = 0;
    return m;
  }

  // Adds a model that was loaded later on the same device; total and free become those of `later`.
  memory_use& operator+=(const memory_use& later) {
    weights += later.weights;
    pages += later.pages;
    kv_type = kv_type.empty() || kv_type == later.kv_type ? later.kv_type : "mixed";
    host_pages += later.host_pages;
    workspaces += later.workspaces;
    runtime += later.runtime;
    total = later.total;
    free = later.free;
    return *this;
  }

  // Adds what is taken of another device.
  void add_device(const memory_use& other) {
    const auto all = total + other.total, left = free + other.free;
    *this += other;
    total = all;
    free = left;
  }
};

}  // namespace weir::actors
