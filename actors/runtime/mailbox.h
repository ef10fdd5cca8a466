// mailbox.h — many senders, one reader, one total order: if one send happened before another, it is read
// before it.
//
// Senders push onto a shared list with one compare-and-swap; the reader takes the whole list at once and
// turns it round. (moodycamel's queue orders per producer only: a cancel could overtake its submit.)
//
// Thread safety: reserve, release, push and size from any thread; everything else by the reader alone.
//
// Invariants:
//   1. At most `capacity` messages are reserved or unread, but for those pushed without a reservation.
//   2. Once close() or close_if_empty() has succeeded, every push is refused, and nothing is left behind
//   unseen.
#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <optional>
#include <utility>

namespace weir::detail {

template <class Msg>
class mailbox {
 public:
  using time_point = std::chrono::steady_clock::time_point;
  struct letter {
    Msg message;
    time_point sent{};  // where the mailbox is timed
  };

  mailbox(std::size_t capacity, bool timed) : capacity_(capacity), timed_(timed) {}
  mailbox(const mailbox&) = delete;
  mailbox& operator=(const mailbox&) = delete;
  ~mailbox() { close(); }

  // Room for one message, to be pushed or released.
  bool reserve() noexcept {
    if (size_.fetch_add(1) < capacity_) return true;
    release();
    return false;
  }
  void reserve_beyond() noexcept { size_.fetch_add(1); }
  void release() noexcept { size_.fetch_sub(1); }

  // Takes m, or leaves it as it was, with the room released, where the mailbox is closed.
  // REQUIRES: a reservation.
  bool push(Msg& m) {
    node* n = new node{nullptr, {std::move(m), timed_ ? std::chrono::steady_clock::now() : time_point()}};
    n->next = inbox_.load();
    do {
      if (n->next == closed()) {
        m = std::move(n->content.message);
        delete n;
        release();
        return false;
      }
    } while (!inbox_.compare_exchange_weak(n->next, n));
    return true;
  }

  bool is_closed() const noexcept { return inbox_.load() == closed(); }
  std::size_t size() const noexcept { return size_.load(std::memory_order_relaxed); }

  std::optional<letter> pop() {
    if (!ready_) refill();
    if (!ready_) return std::nullopt;
    node* n = std::exchange(ready_, ready_->next);
    std::optional<letter> l(std::move(n->content));
    delete n;
    release();
    return l;
  }

  bool empty() const noexcept {
    if (ready_) return false;
    const node* n = inbox_.load();
    return n == nullptr || n == closed();
  }

  // True where nothing was unread: from then on nothing is taken.
  bool close_if_empty() {
    if (ready_) return false;
    node* none = nullptr;
    return inbox_.compare_exchange_strong(none, closed()) || none == closed();
  }

  // Takes nothing more and destroys what is unread, oldest first; returns how many.
  std::size_t close() {
    node* newest = inbox_.exchange(closed());
    if (newest != closed()) append(newest);
    std::size_t n = 0;
    while (ready_) {
      pop();
      ++n;
    }
    return n;
  }

 private:
  struct node {
    node* next;
    letter content;
  };

  static node* closed() noexcept {
    static char tag;
    return reinterpret_cast<node*>(&tag);
  }

  void refill() {
    node* newest = inbox_.load();
    if (newest == nullptr || newest == closed()) return;
    append(inbox_.exchange(nullptr));
  }

  // Turns a list, newest first, round and puts it behind what is ready.
  void append(node* newest) {
    node* oldest = nullptr;
    while (newest) {
      node* next = std::exchange(newest->next, oldest);
      oldest = std::exchange(newest, next);
    }
    node** end = &ready_;
    while (*end) end = &(*end)->next;
    *end = oldest;
  }

  std::atomic<node*> inbox_{nullptr};  // newest first
  std::atomic<std::size_t> size_{0};
  const std::size_t capacity_;
  const bool timed_;
  node* ready_ = nullptr;  // the reader's: oldest first
};

}  // namespace weir::detail
