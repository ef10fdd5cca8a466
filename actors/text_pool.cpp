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

// The turn of a task in progress.
class text_pool::own_turn final : public core::turn {
 public:
  own_turn(text_pool& in, const turns::turn& mine) : pool_(in), mine_(mine), began_(in.time_.now()) {}

  core::time_point now() const noexcept override { return pool_.time_.now() - waited_; }
  bool go_on() override {
    if (pool_.time_.now() - began_ >= slice) pool_.give_way(*this);
    const auto& unwanted = mine_.what->what.unwanted;
    return !pool_.ending_.load(relaxed) && !(unwanted && unwanted());
  }

 private:
  friend text_pool;

  text_pool& pool_;
  const turns::turn mine_;
  core::time_point began_;   // the slice
  core::duration waited_{};  // for others
  bool may_go_on_ = false;   // under mutex_
  std::condition_variable woken_;
};

text_pool::text_pool(const text_bounds& limits, const core::clock& time,
                     std::shared_ptr<core::incidents> seen, size how_large,
                     boost::asio::any_io_executor instead)
    : limits_(limits), size_(how_large), time_(time), seen_(std::move(seen)), instead_(std::move(instead)) {
  if (instead_) return;
  handed_.reserve(size_.places);
  threads_.reserve(size_.threads);
  const std::lock_guard held(mutex_);
  for (std::uint32_t i = 0; i < size_.places; ++i) add_thread();
}

text_pool::~text_pool() {
  {
    const std::lock_guard held(mutex_);
    ending_ = true;
    hand_out();
  }
  changed_.notify_all();
}

void text_pool::post(task t) {
  const auto key = t.key;
  const auto bytes = t.bytes;
  try {
    if (const auto no = enter(t)) return t.refuse(*no);
  } catch (const std::bad_alloc&) {
    return t.refuse(out_of_memory());
  }
  work mine{std::move(t)};
  try {
    const std::lock_guard held(mutex_);
    turns_.add(key, mine);
    if (!instead_) return hand_out();
  } catch (const std::bad_alloc&) {
    leave(key, bytes);
    return mine.what.refuse(out_of_memory());
  }
  boost::asio::post(instead_, [this] { run_one(); });
}

// Gives free places to the keys whose turn it is. When the pool ends, all half-done tasks go on, and no
// other.
void text_pool::hand_out() {
  const auto may = [this](const work& w) { return w.begun || (!ending_ && has_thread()); };
  while (running_ < size_.places || ending_) {
    const auto next = turns_.take(may);
    if (!next) return;
    ++running_;
    if (auto* t = std::exchange(next->what->half_done, nullptr)) {
      t->may_go_on_ = true;
      t->woken_.notify_one();
    } else {
      ++begun_;
      next->what->begun = true;
      handed_.push_back(*next);
      changed_.notify_one();
    }
  }
}

// Where the system gives no further thread, the task waits for one of those that are there.
bool text_pool::has_thread() {
  if (begun_ < threads_.size()) return true;
  if (threads_.size() == size_.threads) return false;
  return core::contained(*seen_, "a thread for texts", [this] { add_thread(); });
}

void text_pool::drop(std::shared_ptr<const void> what) noexcept {
  if (instead_) return;
  try {
    const std::lock_guard held(mutex_);
    dropped_.push_back(std::move(what));
  } catch (const std::bad_alloc&) {
    return;
  }
  changed_.notify_one();
}

void text_pool::destroy_dropped(std::unique_lock<std::mutex>& held) noexcept {
  auto all = std::exchange(dropped_, {});
  held.unlock();
  all.clear();
  held.lock();
}

void text_pool::run() {
  pthread_setname_np(pthread_self(), "weir-text");
  std::unique_lock held(mutex_);
  for (;;) {
    changed_.wait(held, [this] { return ending_ || !dropped_.empty() || !handed_.empty(); });
    if (ending_) return;
    if (!dropped_.empty()) {
      destroy_dropped(held);
      continue;
    }
    const auto mine = handed_.front();
    handed_.erase(handed_.begin());
    held.unlock();
    run_task(mine);
    held.lock();
    turns_.done(mine.key);
    --begun_;
    --running_;
    hand_out();
  }
}

// The task stands behind those of all other keys. Where no other may run, its turn is at once.
void text_pool::give_way(own_turn& half_done) {
  const auto from = time_.now();
  if (!instead_) {
    std::unique_lock held(mutex_);
    half_done.mine_.what->half_done = &half_done;
    turns_.put_back(half_done.mine_.key);
    --running_;
    hand_out();
    half_done.woken_.wait(held, [&] { return half_done.may_go_on_; });
    half_done.may_go_on_ = false;
  }
  half_done.began_ = time_.now();
  half_done.waited_ += half_done.began_ - from;
}

// One task for each that was posted, though not always the same one.
void text_pool::run_one() {
  std::unique_lock held(mutex_);
  const auto next = turns_.take([](const work&) { return true; });
  if (!next) return;
  held.unlock();
  run_task(*next);
  held.lock();
  turns_.done(next->key);
}

void text_pool::run_task(const turns::turn& mine) noexcept {
  task& t = mine.what->what;
  own_turn turn(*this, mine);
  const auto began = turn.now();
  try {
    t.run(turn);
  } catch (const std::bad_alloc&) {
    fault(t, out_of_memory());
  } catch (...) {
    fault(t, broken());
  }
  note_pace(t.bytes, turn.now() - began);
  t.run = nullptr;
  t.refuse = nullptr;
  t.unwanted = nullptr;
  leave(t.key, t.bytes);
}

// The client that waits for the task must be told of the error. This needs memory, so it is repeated until
// there is some.
void text_pool::fault(task& t, core::error e) noexcept {
  seen_->note("a text to be tokenised", std::current_exception());
  t.run = nullptr;  // releases the memory of its captures
  core::insist([&] { t.refuse(e); });
}

// All keys together have the room of the limits, and each key half of it.
std::optional<core::error> text_pool::enter(const task& t) {
  const std::lock_guard held(mutex_);
  const share all{tasks_.load(relaxed), bytes_.load(relaxed)};
  if (auto no = no_room(t.bytes, all, limits_.queue, limits_.queue_bytes)) return no;
  if (t.key != 0) {
    share& mine = shares_[t.key];
    if (auto no = no_room(t.bytes, mine, std::max(1u, limits_.queue / 2), limits_.queue_bytes / 2)) {
      if (mine.tasks == 0) shares_.erase(t.key);
      return no;
    }
    mine = {mine.tasks + 1, mine.bytes + t.bytes};
  }
  bytes_.fetch_add(t.bytes, relaxed);
  tasks_.fetch_add(1, relaxed);
  return std::nullopt;
}

void text_pool::leave(std::uint64_t key, std::uint64_t bytes) noexcept {
  const std::lock_guard held(mutex_);
  if (const auto mine = shares_.find(key); mine != shares_.end()) {
    mine->second.bytes -= bytes;
    if (--mine->second.tasks == 0) shares_.erase(mine);
  }
  bytes_.fetch_sub(bytes, relaxed);
  tasks_.fetch_sub(1, std::memory_order_release);
}

std::optional<core::error> text_pool::no_room(std::uint64_t bytes, const share& held, std::uint32_t most,
                                              std::uint64_t most_bytes) const {
  if (held.tasks >= most)
    return overloaded(
        seconds_for(held.bytes / std::max(1u, held.tasks)),
        fmt::format("{} texts wait to be tokenised, and no more are taken for now", held.tasks));
  if (held.tasks == 0 || held.bytes + bytes <= most_bytes) return std::nullopt;
  const auto room = most_bytes - std::min(most_bytes, bytes);
  return overloaded(seconds_for(held.bytes - std::min(held.bytes, room)),
                    fmt::format("texts of {} bytes wait to be tokenised, and {} more are not taken for now",
                                held.bytes, bytes));
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
