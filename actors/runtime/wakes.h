// wakes.h — wakes readers on other threads, with one post for each executor, however many readers it has.
//
// Posting to a sleeping io_context takes microseconds, and moving a token takes nanoseconds. So a producer
// collects the wakes of a whole step and flushes them together:
//
//   struct inbox final : weir::waker {  // the reader's side, held by shared_ptr
//     explicit inbox(executor ex) : waker(ex, [](waker& w) { static_cast<inbox&>(w).drain(); }) {}
//     void drain() { arm(); while (queue.try_dequeue(x)) use(x); }
//     moodycamel::ReaderWriterQueue<item> queue;
//   };
//   in->queue.try_enqueue(x);  in->signal(wakes);  // by the producer, for every inbox that it wrote to
//   wakes.flush();                                 // once for each step
//
// An executor runs eight wakes in one handler, and then its other handlers before the next eight.
//
// Thread safety: signal() from any thread; arm() and on_wake on the waker's executor. A `wakes` is used by
// one thread.
//
// Invariants:
//   1. A reader that reads after arm() sees everything that was written before a signal, or a wake for it is
//      pending. At most one wake is pending for a waker; further signals have no effect until it has run.
//   2. A waker exists until its wake has run, or its context is destroyed. In the second case nothing is
//      posted and nothing leaks.
//   3. signal() and flush() do not allocate once the producer has posted to each of its contexts before. This
//      holds for an io_context; a post to a strand allocates.
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <boost/asio/any_io_executor.hpp>
#include <memory>
#include <utility>
#include <vector>

#include "home.h"
#include "lifeline.h"
#include "post_slot.h"

namespace weir {

class wakes;

class waker : public std::enable_shared_from_this<waker> {
 public:
  using function = void (*)(waker&);
  waker(boost::asio::any_io_executor ex, function on_wake) : on_wake_(on_wake), home_(std::move(ex)) {}
  waker(const waker&) = delete;
  waker& operator=(const waker&) = delete;

  // Called on the executor's own thread only. Empty once the context is destroyed.
  const boost::asio::any_io_executor& get_executor() const noexcept { return home_.get_executor(); }

  // From now on the next signal causes one wake. A reader must call arm() before it looks for items: in the
  // other order it can miss some.
  void arm() noexcept {
    if (std::exchange(waiting_, true)) return;
    armed_.exchange(true);
  }

  void signal(wakes& batch);
  void signal();  // posts at once

 protected:
  ~waker() = default;

  const detail::home& where() const noexcept { return home_; }

  // The same as signal(), for items that were published by a read-modify-write operation. Needs no second
  // such operation if the reader is awake.
  void signal_published() {
    if (armed_.load()) signal();
  }

 private:
  friend class wakes;
  class chain;

  // Returns whether the waker was armed, and disarms it. arm() and fire() are read-modify-write operations on
  // one atomic, so whichever comes second sees everything that was written before the first.
  bool fire() noexcept { return armed_.exchange(false); }

  // The first member, so that it is near the reference count: signal() uses both.
  std::atomic<bool> armed_{false};
  bool waiting_ = false;  // used by the reader: armed, and no wake has run since
  // Used by the thread whose fire() returned true, until the wake runs:
  waker* next_ = nullptr;
  std::shared_ptr<waker> keep_;
  const function on_wake_;
  const detail::home home_;
  detail::post_slot slot_;
};

// A list of wakers with a pending wake. It owns the wakers, and runs each once.
class waker::chain {
 public:
  chain() = default;
  chain(chain&& other) noexcept
      : first_(std::exchange(other.first_, nullptr)), last_(std::exchange(other.last_, nullptr)) {}
  chain& operator=(chain&&) = delete;
  ~chain() {
    while (first_) pop();
  }

  const waker* front() const noexcept { return first_; }

  void push(std::shared_ptr<waker> w) noexcept {
    waker* it = w.get();
    it->next_ = nullptr;
    it->keep_ = std::move(w);
    (first_ ? last_->next_ : first_) = it;
    last_ = it;
  }

  // Whether w can be sent together with the others, as far as can be known without a visit.
  bool takes(const waker& w) const noexcept {
    return first_->home_.line() == w.home_.line() && first_->home_.plain() == w.home_.plain();
  }

  // Posts once for each executor. REQUIRES: not empty; takes() was true for each waker.
  void send() && {
    const detail::lifeline::visit open(*first_->home_.line());
    if (!open) return;
    if (first_->home_.plain() || !first_->next_) return std::move(*this).post();
    std::move(*this).post_apart();
  }

  void operator()() {
    const detail::lifeline::stay here(*first_->home_.line());
    for (int left = most_at_once; first_; --left) {
      if (left == 0) return std::move(*this).post();  // the context's other handlers run in between
      const auto w = pop();
      w->waiting_ = false;
      try {
        w->on_wake_(*w);
      } catch (...) {
        if (first_) std::move(*this).post();  // the others must not miss their wake
        throw;
      }
    }
  }

 private:
  static constexpr int most_at_once = 8;  // wakes of one handler

  void post() && {
    waker& head = *first_;
    head.home_.post(head.slot_, std::move(*this));
  }

  // Sorts the wakers by executor, and posts once for each. If there are more than eight executors, such as a
  // strand for each session, the oldest group is posted before it is complete.
  void post_apart() && {
    std::array<chain, 8> to;
    std::size_t next = 0;
    while (first_) {
      auto w = pop();
      auto same = std::find_if(to.begin(), to.end(),
                               [&](const chain& c) { return c.front() && c.front()->home_ == w->home_; });
      if (same == to.end()) {
        same = to.begin() + next++ % to.size();
        if (same->front()) std::move(*same).post();
      }
      same->push(std::move(w));
    }
    for (chain& c : to) {
      if (c.front()) std::move(c).post();
    }
  }

  std::shared_ptr<waker> pop() noexcept {
    waker* it = std::exchange(first_, first_->next_);
    return std::move(it->keep_);
  }

  waker* first_ = nullptr;
  waker* last_ = nullptr;
};

class wakes {
 public:
  wakes() { lanes_.reserve(8); }
  wakes(const wakes&) = delete;
  wakes& operator=(const wakes&) = delete;
  ~wakes() { flush(); }

  void flush() {
    for (waker::chain& lane : lanes_) std::move(lane).send();
    lanes_.clear();
  }

 private:
  friend class waker;
  void add(std::shared_ptr<waker> w) {
    for (waker::chain& lane : lanes_) {
      if (lane.takes(*w)) return lane.push(std::move(w));
    }
    lanes_.emplace_back().push(std::move(w));
  }

  std::vector<waker::chain> lanes_;  // one for each context, and another for its wakers on strands
};

inline void waker::signal(wakes& batch) {
  if (fire()) batch.add(shared_from_this());
}

inline void waker::signal() {
  if (!fire()) return;
  chain alone;
  alone.push(shared_from_this());
  std::move(alone).send();
}

}  // namespace weir
