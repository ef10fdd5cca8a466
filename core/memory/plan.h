// plan.h — whether models fit their devices, and how large their pools of pages become: computed before
// anything is allocated.
//
// Thread safety: pure functions, any thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/error.h"
#include "core/memory/ledger.h"
#include "kernels/pool_steps.h"

namespace weir::core {

// The pages of some consecutive layers. A pool is one group today: each page holds all layers.
struct page_group {
  std::uint64_t page_bytes = 0;  // of the keys and values of one page in these layers
  std::uint32_t first_layer = 0, layers = 0;
};

// What decides how many pages a model gets.
struct pool_needs {
  std::vector<page_group> groups;  // empty: pages take no memory (sim)
  std::uint32_t context = 0;       // most tokens of a sequence
  bool context_asked = false;      // an option says so, not the model's file alone
  std::uint32_t max_batch = 1;     // sequences that run at once
  std::uint64_t kv_tokens = 0;     // 0: auto, as much as is free and of use
  std::uint64_t kv_floor = 0;      // tokens below which an auto pool is of no use; 0: auto
  // How the pool can change. An auto pool is rounded down to a size that can, unless --kv-floor is above it.
  kernels::pool_steps steps;
};

// The bytes of one page of all groups.
std::uint64_t page_bytes(const pool_needs& p) noexcept;

// How memory is given to an auto pool.
enum class memory_kind : std::uint8_t {
  unknown,  // the device does not say how much there is (sim)
  host,     // the machine's own: at most a quarter of what is free goes to pages
  device    // a device's own: all that is free beside the reserve
};

// The number of pages of one model's pool where all else of it is allocated: --kv-tokens or, with auto, as
// many as are of use, but at most what `free` bytes and `reserve` leave. Error: does_not_fit, with the
// numbers.
result<std::uint32_t> pages_in(const pool_needs& p, memory_kind kind, std::uint64_t free,
                               std::uint64_t reserve);

// The pool of a model that stays, which can give way.
struct giving_pool : auto_pool {
  std::string model;
  std::uint64_t grant = 0;  // ledger::grant_id
};

// A device, and what models that stay there take of it.
struct plan_device : device_share {
  memory_kind kind = memory_kind::device;
  std::uint64_t loaded = 0;
  std::vector<giving_pool> pools;  // whose bytes are part of `loaded`; each may give way
};

// A model that is to be loaded. `lines.pages` is not used.
struct model_needs {
  std::string name;
  std::size_t device = 0;  // its index
  memory_lines lines;
  pool_needs pool;
};

struct pool_group : page_group {
  std::uint64_t count = 0;  // of pages
};

struct planned_model {
  std::string name;
  std::size_t needs = 0;   // the index of its model_needs
  std::size_t device = 0;  // that of its device
  memory_lines lines;
  std::vector<pool_group> pools;
  std::uint64_t pages = 0, kv_tokens = 0;  // of its pool
  // Of an auto pool: the pages that it keeps when others come, and those that are of use. 0: it is none.
  std::uint64_t floor = 0, useful = 0;
  std::uint32_t context = 0;               // most tokens of a sequence, which the pool may bound
};

struct memory_plan {
  struct device_row : plan_device {
    std::uint64_t free = 0;                // beside the reserve, once all models are loaded
    std::vector<std::uint64_t> left_with;  // pages of each of `pools` then; empty: none gives way
  };
  // What the first device that is too small lacks: so many bytes in all, of which the first are missing for
  // `of`, such as "the weights of chat".
  struct shortage {
    std::string device;
    std::uint64_t bytes = 0;
    std::string of;
  };

  std::vector<device_row> devices;    // as they were given
  std::vector<planned_model> models;  // in the order in which they are to be loaded: the least weights first
  std::optional<shortage> lacks;      // nullopt: all fit
  std::vector<std::string> assumed;   // figures that were assumed and not measured, for people
  std::vector<std::string> notes;     // what models cannot do on these devices, for people

  bool fits() const noexcept { return !lacks; }
};

// Plans the loads of models. A numeric --kv-tokens is never touched. Auto pools of a device first get their
// least, then their floors as far as there is room, then equal bytes of the rest, each at most what is of
// use. The least is --kv-floor where it is given; else 8,192 tokens or a whole sequence where several pools
// share a device, and a page where one has it for itself. The floor is then a whole sequence and a page for
// each place of the batch.
//
// Pools of models that stay give way: each is at its floor at first, and gets its part of the rest as the
// auto pools of the newcomers do, but no more than it has.
//
// Models fit a device where outside, context, reserve, loaded models, lines and least pages fit its total;
// on the host, least pages moreover take at most a quarter of what weights leave free. Where they do not fit,
// auto pools are shown with their least. Error: does_not_fit, for a --kv-tokens of more pages than have
// numbers. REQUIRES: the indices of devices are good
result<memory_plan> make_plan(std::vector<plan_device> devices, const std::vector<model_needs>& models);

}  // namespace weir::core
