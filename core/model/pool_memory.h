// pool_memory.h — the memory of a pool of pages, and where the keys and values of a page lie in it.
//
// By group of layers, then by layer, keys before values, lies a run: the parts of all pages behind each
// other. The addresses are reserved for the most pages that the pool may have. Where the backend can, and the
// pool is large enough (kernels/pool_steps.h), each run gives back the memory of its last pages and takes it
// again, so that graphs, which contain addresses, hold.
//
// Thread safety: resize() on any thread, one call at a time, beside everything but allocation, sleep and
// destruction; pages() on any thread. The rest on the owner's thread.
//
// Invariant: of a step of pages all runs have memory, or none.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <vector>

#include "core/cache/page.h"
#include "kernels/buffer.h"
#include "kernels/pool_steps.h"

namespace weir::core {

class pool_memory {
 public:
  // The part of a page that belongs to one group of layers: `count` pieces, each a layer's keys or its
  // values.
  struct part {
    std::uint64_t first = 0;  // bytes of a page's parts in front of it, where a page lies by itself
    std::uint64_t bytes = 0;  // of a piece
    std::uint32_t count = 0;
    std::uint64_t at = 0;      // bytes from the pool's first address to the group's first run
    std::uint64_t stride = 0;  // bytes from one run to the next
  };

  // `of` outlives the pool. `at` and `stride` of the parts are set by allocate().
  pool_memory(std::shared_ptr<const kernels::backend> of, std::vector<part> parts);
  pool_memory(const pool_memory&) = delete;

  // In which steps pools of this backend with these parts can change.
  const kernels::pool_steps& steps() const noexcept { return steps_; }
  // Bytes of a page.
  std::uint64_t page_bytes() const noexcept { return page_bytes_; }

  // Allocates memory, zeroed, for `count` pages, with addresses for `most`, in place of what there was.
  // False: memory is short, and the pool is empty. A pool that cannot change has memory for `most` pages.
  // REQUIRES: count <= most; the bytes of `most` pages are fewer than 2^63
  bool allocate(std::uint32_t count, std::uint32_t most);
  // The pages that may be used, and those that have addresses.
  std::uint32_t pages() const noexcept { return pages_.load(std::memory_order_relaxed); }
  std::uint32_t most() const noexcept { return most_; }
  bool changes() const noexcept { return reserved_ != nullptr; }

  // Changes the number of pages, as model::set_pages() says. False: memory is short, and nothing has changed.
  // REQUIRES: changes(); it does not sleep; 1 <= pages <= most()
  bool resize(std::uint32_t pages);

  // Gives back all memory, and takes it again. False: memory is short, and nothing was taken.
  void give_back();
  bool take_again();

  std::byte* data() const noexcept { return reserved_ ? reserved_.get() : fixed_.data(); }
  std::uint64_t bytes() const noexcept { return held_ * page_bytes_; }  // of memory, while it is awake

  const std::vector<part>& parts() const noexcept { return parts_; }
  // The first of the part's pieces of a page; the others are `stride` bytes apart.
  std::byte* piece(const part& p, page_id page) const noexcept {
    return data() + p.at + static_cast<std::uint64_t>(page) * p.bytes;
  }

 private:
  struct release {
    std::shared_ptr<const kernels::backend> of;
    std::uint64_t bytes;
    void operator()(std::byte* at) const { of->do_free(of->self, at, bytes); }
  };

  std::uint64_t lay_out(std::uint64_t piece);
  std::uint64_t piece_bytes() const;
  bool reserve();
  bool take(std::uint32_t from, std::uint32_t to);
  void give(std::uint32_t from, std::uint32_t to, std::size_t runs = ~std::size_t{0});

  std::shared_ptr<const kernels::backend> of_;
  std::vector<part> parts_;
  kernels::pool_steps steps_;
  std::uint64_t page_bytes_ = 0;
  std::uint32_t most_ = 0;
  std::uint32_t held_ = 0;  // pages that have memory, while it is awake
  std::atomic<std::uint32_t> pages_ = 0;
  kernels::buffer fixed_;                         // of a pool that cannot change
  std::unique_ptr<std::byte, release> reserved_;  // of one that can; else null
};

}  // namespace weir::core
