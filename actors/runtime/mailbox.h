// mailbox.h — a bounded queue with many senders and one reader. Messages have one total order: if the send
// of one message happened before the send of another, the first message is read first.
//
// Senders push onto a shared list with one compare-and-swap. The reader takes the whole list at once and
// reverses it. moodycamel's queue has an order for each producer only, so a cancel could overtake its submit.
//
// Thread safety: reserve, reserve_beyond, release, push, is_closed and size from any thread; all other
// members by the reader only.
//
// Invariants:
//   1. At most options::mailbox messages are reserved or unread, not counting those of reserve_beyond().
//   2. After close() or a successful close_if_empty(), every push is refused and no message is unread.
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
    time_point sent{};  // when it was pushed; time_point() if the actor has no observer
  };

  explicit mailbox(options o) : options_(std::move(o)) {}
  mailbox(const mailbox&) = delete;
  mailbox& operator=(const mailbox&) = delete;
  ~mailbox() { close(); }

  const options& opts() const noexcept { return options_; }

  // Reserves room for one message, which the caller must push or release. Returns false if the mailbox is
  // full.
  bool reserve() noexcept {
    const std::size_t before = taken_.fetch_add(1);
    if (fits(before, freed_seen_.load(std::memory_order_relaxed))) return true;
    const std::size_t freed = freed_.load();  // in the reader's cache line: read only if necessary
    freed_seen_.store(freed, std::memory_order_relaxed);
    if (fits(before, freed)) return true;
    release();
    return false;
  }
  // Reserves room even if the mailbox is full.
  void reserve_beyond() noexcept { taken_.fetch_add(1); }
  // Gives a reservation back.
  void release() noexcept { taken_.fetch_sub(1); }

  // Moves m into the mailbox. If the mailbox is closed, releases the reservation, leaves m as it was and
  // returns false. Without memory for m it throws bad_alloc, with the same effect. REQUIRES: a reservation.
  bool push(Msg& m) {
    if (inbox_.is_closed()) return release(), false;
    node* n = make_node(m);
    if (inbox_.add(n)) return true;
    m = std::move(n->content.message);
    delete n;
    release();
    return false;
  }

  bool is_closed() const noexcept { return inbox_.is_closed(); }
  // Messages that are reserved or unread.
  std::size_t size() const noexcept {
    const std::size_t freed = freed_.load(std::memory_order_acquire);  // first, so that taken_ is not smaller
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

  // Closes the mailbox unless a message is unread. Returns whether the mailbox is closed now.
  bool close_if_empty() { return !ready_ && inbox_.close_if_empty(); }

  // Closes the mailbox and destroys unread messages, the oldest first. Returns their number.
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

  // Moves m into a new node. Without memory it releases the reservation and throws.
  node* make_node(Msg& m) {
    try {
      const auto sent = options_.watch ? std::chrono::steady_clock::now() : time_point();
      return new node{nullptr, {std::move(m), sent}};
    } catch (...) {
      release();
      throw;
    }
  }

  // `before`: rooms taken before this one. `freed` may be larger than `before`.
  bool fits(std::size_t before, std::size_t freed) const noexcept {
    return before < freed || before - freed < options_.mailbox;
  }

  // Written by senders:
  closing_list<node> inbox_;
  std::atomic<std::size_t> taken_{0};       // rooms taken so far, less those released
  std::atomic<std::size_t> freed_seen_{0};  // a value that freed_ had, as a sender saw it last
  // Constant; lies here to keep the two sides in different cache lines:
  const options options_;
  // Written by the reader:
  std::atomic<std::size_t> freed_{0};  // messages taken by pop() so far
  node* ready_ = nullptr;              // messages taken from inbox_, the oldest first
};

}  // namespace weir::detail
