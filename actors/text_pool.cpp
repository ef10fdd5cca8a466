#include "actors/text_pool.h"

#include <pthread.h>

#include <algorithm>
#include <boost/asio/post.hpp>
#include <new>
#include <utility>

#include "actors/overloaded.h"
#include "core/insist.h"

namespace weir::actors {
namespace {

constexpr auto relaxed = std::memory_order_relaxed;
constexpr std::uint64_t least_measured = 4096;  // bytes of the shortest task that counts
constexpr double half_weight = 256 * 1024;      // bytes of a task whose weight in the mean is one half
constexpr double most_wait_s = 1e6;

core::error out_of_memory() { return overloaded(1, "out of memory"); }
core::error broken() { return core::make_error(core::errc::internal, "the text could not be worked on"); }

}  // namespace

text_pool::text_pool(const text_bounds& limits, const core::clock& time,
                     std::shared_ptr<core::incidents> seen, boost::asio::any_io_executor instead)
    : limits_(limits), time_(time), seen_(std::move(seen)), instead_(std::move(instead)) {
  if (!instead_) thread_ = std::jthread([this] { run(); });
}

text_pool::~text_pool() {
  task dropped;
  while (work_.try_dequeue(dropped)) {
  }
  if (thread_.joinable()) work_.enqueue(task{});
}

void text_pool::post(task t) {
  if (!enter(t.bytes)) return t.refuse(no_room(t.bytes));
  if (instead_) return boost::asio::post(instead_, [this, t = std::move(t)]() mutable { work(t); });
  const auto bytes = t.bytes;
  if (work_.enqueue(std::move(t))) return;
  leave(bytes);  // the queue had no memory for the task
  t.refuse(out_of_memory());
}

void text_pool::run() {
  pthread_setname_np(pthread_self(), "weir-text");
  for (task t;;) {
    work_.wait_dequeue(t);
    if (!t.run) return;
    work(t);
  }
}

void text_pool::work(task& t) noexcept {
  const auto began = time_.now();
  try {
    t.run();
  } catch (const std::bad_alloc&) {
    fault(t, out_of_memory());
  } catch (...) {
    fault(t, broken());
  }
  note_pace(t.bytes, time_.now() - began);
  t.run = nullptr;
  t.refuse = nullptr;
  leave(t.bytes);
}

// The client that waits for the task must be told of the error. This needs memory, so it is repeated until
// there is some.
void text_pool::fault(task& t, core::error e) noexcept {
  seen_->note("a text to be tokenised", std::current_exception());
  t.run = nullptr;  // releases the memory of its captures
  core::insist([&] { t.refuse(e); });
}

bool text_pool::enter(std::uint64_t bytes) noexcept {
  const auto tasks = tasks_.fetch_add(1, relaxed);
  const auto held = bytes_.fetch_add(bytes, relaxed);
  if (tasks < limits_.queue && (tasks == 0 || held + bytes <= limits_.queue_bytes)) return true;
  leave(bytes);
  return false;
}

void text_pool::leave(std::uint64_t bytes) noexcept {
  bytes_.fetch_sub(bytes, relaxed);
  tasks_.fetch_sub(1, std::memory_order_release);
}

core::error text_pool::no_room(std::uint64_t bytes) const {
  const auto held = bytes_.load(relaxed);
  const auto tasks = tasks_.load(relaxed);
  if (tasks >= limits_.queue)
    return overloaded(seconds_for(held / std::max(1u, tasks)),
                      fmt::format("{} texts wait to be tokenised, and no more are taken for now", tasks));
  const auto room = limits_.queue_bytes - std::min(limits_.queue_bytes, bytes);
  return overloaded(
      seconds_for(held - std::min(held, room)),
      fmt::format("texts of {} bytes wait to be tokenised, and {} more are not taken for now", held, bytes));
}

core::duration text_pool::predicted_wait() const noexcept {
  const double s = std::min(seconds_for(bytes_.load(relaxed)), most_wait_s);
  return std::chrono::duration_cast<core::duration>(std::chrono::duration<double>(s));
}

double text_pool::seconds_for(std::uint64_t bytes) const noexcept {
  return static_cast<double>(bytes) * seconds_per_byte_.load(relaxed);
}

void text_pool::note_pace(std::uint64_t bytes, core::duration took) noexcept {
  if (bytes < least_measured) return;
  const auto size = static_cast<double>(bytes);
  const double each = std::chrono::duration<double>(took).count() / size;
  const double mean = seconds_per_byte_.load(relaxed);
  seconds_per_byte_.store(mean == 0 ? each : mean + size / (size + half_weight) * (each - mean), relaxed);
}

}  // namespace weir::actors
