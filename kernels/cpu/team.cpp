#include "kernels/cpu/team.h"

#include <algorithm>
#include <limits>

namespace weir::kernels {
namespace {

constexpr std::uint32_t stopping = std::numeric_limits<std::uint32_t>::max();
constexpr int spins =
    2000;  // some 20 to 40 microseconds: longer than the gaps between the operations of a step

void relax() noexcept {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#endif
}

// Until `value` is no longer `old`: spinning first, then parked.
void await_change(const std::atomic<std::uint32_t>& value, std::uint32_t old) noexcept {
  for (int i = 0; i < spins; ++i) {
    if (value.load(std::memory_order_acquire) != old) return;
    relax();
  }
  value.wait(old, std::memory_order_acquire);
}

}  // namespace

team::team(unsigned threads) {
  for (unsigned i = 1; i < std::max(threads, 1u); ++i) workers_.emplace_back([this, i] { serve(i); });
}

team::~team() {
  left_.store(stopping, std::memory_order_release);
  left_.notify_all();
  for (std::thread& t : workers_) t.join();
}

void team::run_items(std::uint32_t items, item_function f, const void* context) {
  if (items == 0) return;
  if (workers_.empty() || items == 1) {
    for (std::uint32_t i = 0; i < items; ++i) f(context, i, 0);
    return;
  }
  function_ = f;
  context_ = context;
  unfinished_.store(items, std::memory_order_relaxed);
  left_.store(items, std::memory_order_release);
  left_.notify_all();
  while (do_one(0)) {
  }
  while (const std::uint32_t n = unfinished_.load(std::memory_order_acquire)) await_change(unfinished_, n);
}

// Takes an item if there is one. The job is read after the taking: until the item is finished it cannot
// change.
bool team::do_one(unsigned worker) {
  std::uint32_t n = left_.load(std::memory_order_acquire);
  do {
    if (n == 0 || n == stopping) return false;
  } while (!left_.compare_exchange_weak(n, n - 1, std::memory_order_acq_rel, std::memory_order_acquire));
  function_(context_, n - 1, worker);
  if (unfinished_.fetch_sub(1, std::memory_order_acq_rel) == 1) unfinished_.notify_all();
  return true;
}

void team::serve(unsigned worker) {
  while (left_.load(std::memory_order_acquire) != stopping)
    if (!do_one(worker)) await_change(left_, 0);
}

}  // namespace weir::kernels
