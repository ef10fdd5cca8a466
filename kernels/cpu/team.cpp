#include "kernels/cpu/team.h"

#include <algorithm>
#include <chrono>

#include "kernels/relax.h"

namespace weir::kernels {
namespace {

// The flags of left_, in the bits above the count of items.
constexpr std::uint32_t hot = 1u << 31;       // a step is running: more jobs will come soon
constexpr std::uint32_t stopping = 1u << 30;  // the workers end
constexpr std::uint32_t odd =
    1u << 29;  // flips with every step, so that a worker that parked in the last step sees a change
constexpr std::uint32_t count_of = odd - 1;

// The time that a worker spins before it parks. It is longer than what a step does on one thread between two
// jobs; a wake costs some microseconds.
constexpr std::chrono::microseconds patience{50};

// Returns when `value` is no longer `old`: spins for `patience`, then parks.
void await_change(const std::atomic<std::uint32_t>& value, std::uint32_t old) noexcept {
  constexpr int looks = 16;  // loads between two looks at the clock
  const auto give_up = std::chrono::steady_clock::now() + patience;
  do {
    for (int i = 0; i < looks; ++i) {
      if (value.load(std::memory_order_acquire) != old) return;
      relax();
    }
  } while (std::chrono::steady_clock::now() < give_up);
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

void team::begin_step() noexcept {
  if (workers_.empty()) return;
  base_ = (base_ ^ odd) | hot;
  left_.store(base_, std::memory_order_release);
  left_.notify_all();
}

// Workers that spin see the change and park. Nothing notifies the parked ones, so that they stay parked.
void team::end_step() noexcept {
  if (workers_.empty()) return;
  base_ &= ~hot;
  left_.store(base_, std::memory_order_release);
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
  left_.store(base_ | items, std::memory_order_release);
  left_.notify_all();
  while (do_one(0)) {
  }
  while (const std::uint32_t n = unfinished_.load(std::memory_order_acquire)) await_change(unfinished_, n);
}

// Takes an item and does it, if there is one. function_ and context_ are read after the item is taken: they
// cannot change until the item is finished.
bool team::do_one(unsigned worker) {
  std::uint32_t n = left_.load(std::memory_order_acquire);
  do {
    if ((n & count_of) == 0) return false;
  } while (!left_.compare_exchange_weak(n, n - 1, std::memory_order_acq_rel, std::memory_order_acquire));
  function_(context_, (n & count_of) - 1, worker);
  if (unfinished_.fetch_sub(1, std::memory_order_acq_rel) == 1) unfinished_.notify_all();
  return true;
}

void team::serve(unsigned worker) {
  for (;;) {
    while (do_one(worker)) {
    }
    const std::uint32_t n = left_.load(std::memory_order_acquire);
    if (n & stopping) return;
    if (n & count_of) continue;
    if (n & hot)
      await_change(left_, n);
    else
      left_.wait(n, std::memory_order_acquire);
  }
}

}  // namespace weir::kernels
