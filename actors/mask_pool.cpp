#include "actors/mask_pool.h"

#include <pthread.h>

#include "core/insist.h"

namespace weir::actors {
namespace {

// Whether the job is gone: the pool holds the mask alone, so nobody can come to hold it again.
bool nobody_waits(const std::shared_ptr<core::grammar::job_mask>& m) { return m.use_count() == 1; }

}  // namespace

mask_pool::mask_pool(unsigned threads, std::size_t most) : work_(most) {
  for (unsigned i = 0; i < threads; ++i) {
    auto& t = threads_.emplace_back([this] { run(); });
    pthread_setname_np(t.native_handle(), "weir-mask");
  }
}

mask_pool::~mask_pool() {
  task dropped;
  while (work_.try_dequeue(dropped)) dropped = {};
  for (std::size_t i = 0; i < threads_.size(); ++i) core::insist([&] { work_.enqueue(task{}); });
}

// The queue has its memory from the start. If masks of jobs that are gone fill the queue, this mask is not
// posted, and its job waits for a later step.
bool mask_pool::post(std::shared_ptr<core::grammar::job_mask> m) noexcept {
  return work_.try_enqueue(task{std::move(m), false});
}

// Where the queue is full, the mask is destroyed here.
void mask_pool::discard(std::shared_ptr<core::grammar::job_mask> m) noexcept {
  work_.try_enqueue(task{std::move(m), true});
}

void mask_pool::run() {
  for (;;) {
    task next;
    work_.wait_dequeue(next);
    if (!next.mask) return;
    if (next.discards || nobody_waits(next.mask)) continue;
    next.mask->work();
  }
}

}  // namespace weir::actors
