// mailbox.h — many senders, one reader, one total order: if one send happened before another, it is read
// before it.
//
// Senders push onto a shared list with one compare-and-swap; the reader takes the whole list at once and
// reverses it. (moodycamel's queue orders per producer only: a cancel could overtake its submit.)
//
// Thread safety: reserve, release, push and size from any thread; everything else by the reader alone.
//
// Invariants:
//   1. At most options::mailbox messages are reserved or unread, but for those pushed without a reservation.
//   2. Once close() or close_if_empty() has succeeded, every push is refused, and nothing is left behind
//      unseen.
#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <optional>
#include <utility>

#include "closing_list.h"
#include "options.h"

namespace weir::detail {

template <class Msg>
class mailbox {
 public:
  using time_point = std::chrono::steady_clock::time_point;
  struct letter {
    Msg message;
    time_point sent{};  // where the mailbox is timed
  };

  explicit mailbox(options o) : options_(std::move(o)) {}
  mailbox(const mailbox&) = delete;
  mailbox& operator=(const mailbox&) = delete;
  ~mailbox() { close(); }

  const options& opts() const noexcept { return options_; }

  // Room for one message, to be pushed or released.
  bool reserve() noexcept {
    const std::size_t before = taken_.fetch_add(1);
    if (fits(before, freed_seen_.load(std::memory_order_relaxed))) return true;
    const std::size_t freed = freed_.load();  // the reader's: looked at only where there seems to be no room
    freed_seen_.store(freed, std::memory_order_relaxed);
    if (fits(before, freed)) return true;
    release();
    return false;
  }
  void reserve_beyond() noexcept { taken_.fetch_add(1); }
  void release() noexcept { taken_.fetch_sub(1); }

  // Takes m, or leaves it as it was, with the room released, where the mailbox is closed. REQUIRES: a
  // reservation.
  bool push(Msg& m) {
    if (inbox_.is_closed()) return release(), false;
    node* n =
        new node{nullptr, {std::move(m), options_.watch ? std::chrono::steady_clock::now() : time_point()}};
    if (inbox_.add(n)) return true;
    m = std::move(n->content.message);
    delete n;
    release();
    return false;
  }

  bool is_closed() const noexcept { return inbox_.is_closed(); }
  std::size_t size() const noexcept {
    const std::size_t freed = freed_.load(std::memory_order_acquire);  // first: never less than none
    return taken_.load(std::memory_order_relaxed) - freed;
  }

  std::optional<letter> pop() {
    if (!ready_) ready_ = inbox_.take();
    if (!ready_) return std::nullopt;
    node* n = std::exchange(ready_, ready_->next);
    std::optional<letter> l(std::move(n->content));
    delete n;
    freed_.store(freed_.load(std::memory_order_relaxed) + 1);
    return l;
  }

  bool empty() const noexcept { return !ready_ && inbox_.empty(); }

  // True where nothing was unread: from then on nothing is taken.
  bool close_if_empty() { return !ready_ && inbox_.close_if_empty(); }

  // Takes nothing more and destroys what is unread, oldest first; returns how many.
  std::size_t close() {
    node** end = &ready_;
    while (*end) end = &(*end)->next;
    *end = inbox_.close();
    std::size_t n = 0;
    while (pop()) ++n;
    return n;
  }

 private:
  struct node {
    node* next;
    letter content;
  };

  // More may have been freed than were taken before.
  bool fits(std::size_t before, std::size_t freed) const noexcept {
    return before < freed || before - freed < options_.mailbox;
  }

  // The senders':
  closing_list<node> inbox_;
  std::atomic<std::size_t> taken_{0};       // rooms, ever
  std::atomic<std::size_t> freed_seen_{0};  // freed_ as a sender saw it last: never ahead of it
  // What never changes, and keeps the cache lines of the two sides apart:
  const options options_;
  // The reader's:
  std::atomic<std::size_t> freed_{0};  // rooms, ever
  node* ready_ = nullptr;              // oldest first
};

}  // namespace weir::detail
