// mailbox.h — many senders, one reader, one total order: if one send happened before another, it is read
// before it.
//
// Senders push onto a shared list with one compare-and-swap; the reader takes the whole list at once and
// turns it round. (moodycamel's queue orders per producer only: a cancel could overtake its submit.)
//
// Thread safety: push and size from any thread; everything else by the reader alone.
//
// Invariants:
//   1. At most `capacity` messages are unread; a refused message stays with its sender.
//   2. Once close() or close_if_empty() has succeeded, every push says closed, and nothing is left behind
//   unseen.
#pragma once

#include <atomic>
#include <cstddef>
#include <optional>
#include <utility>

namespace weir {

enum class sent { ok, full, closed };  // the sender always learns

namespace detail {

template <class Msg>
class mailbox {
 public:
  explicit mailbox(std::size_t capacity) : capacity_(capacity) {}
  mailbox(const mailbox&) = delete;
  mailbox& operator=(const mailbox&) = delete;
  ~mailbox() { close(); }

  // Moves from m only where it says ok.
  sent push(Msg& m) {
    if (inbox_.load() == closed()) return sent::closed;
    if (size_.fetch_add(1, std::memory_order_relaxed) >= capacity_) return refuse(sent::full);
    node* n = new node{nullptr, std::move(m)};
    n->next = inbox_.load();
    do {
      if (n->next == closed()) {
        m = std::move(n->message);
        delete n;
        return refuse(sent::closed);
      }
    } while (!inbox_.compare_exchange_weak(n->next, n));
    return sent::ok;
  }

  std::optional<Msg> pop() {
    if (!ready_) refill();
    if (!ready_) return std::nullopt;
    node* n = std::exchange(ready_, ready_->next);
    std::optional<Msg> m(std::move(n->message));
    delete n;
    size_.fetch_sub(1, std::memory_order_relaxed);
    return m;
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

  // Takes nothing more, and gives what is unread to `each`, oldest first.
  template <class F>
  void close(F&& each) {
    node* newest = inbox_.exchange(closed());
    if (newest != closed()) append(newest);
    while (auto m = pop_ready()) each(*m);
  }
  void close() {
    close([](Msg&) {});
  }

  std::size_t size() const noexcept { return size_.load(std::memory_order_relaxed); }

 private:
  struct node {
    node* next;
    Msg message;
  };

  static node* closed() noexcept {
    static char tag;
    return reinterpret_cast<node*>(&tag);
  }

  sent refuse(sent why) {
    size_.fetch_sub(1, std::memory_order_relaxed);
    return why;
  }

  void refill() {
    node* newest = inbox_.load();
    if (newest == nullptr || newest == closed()) return;
    append(inbox_.exchange(nullptr));
  }

  // Turns a list, newest first, round and behind what is ready.
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

  std::optional<Msg> pop_ready() { return ready_ ? pop() : std::nullopt; }

  std::atomic<node*> inbox_{nullptr};  // newest first
  std::atomic<std::size_t> size_{0};
  const std::size_t capacity_;
  node* ready_ = nullptr;  // the reader's: oldest first
};

}  // namespace detail
}  // namespace weir
