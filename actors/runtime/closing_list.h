// closing_list.h — many threads add, one takes, and at some moment it closes: from then on adding is refused.
//
// One compare-and-swap to add. The taker gets everything at once, in the order in which it was added.
//
// Thread safety: add and is_closed from any thread; everything else by the taker alone.
//
// Invariant: what add() said yes to is in a later take() or close(); nothing is left behind unseen.
#pragma once

#include <atomic>
#include <utility>

namespace weir::detail {

// Node has a member `Node* next`, the list's while it is in it.
template <class Node>
class closing_list {
 public:
  // False where it is closed: n is still the caller's.
  bool add(Node* n) noexcept {
    Node* newest = newest_.load();
    do {
      if (newest == closed()) return false;
      n->next = newest;
    } while (!newest_.compare_exchange_weak(newest, n));
    return true;
  }

  bool is_closed() const noexcept { return newest_.load() == closed(); }
  bool empty() const noexcept {
    const Node* n = newest_.load();
    return n == nullptr || n == closed();
  }

  // Oldest first.
  Node* take() noexcept { return empty() ? nullptr : reversed(newest_.exchange(nullptr)); }
  Node* close() noexcept {
    Node* newest = newest_.exchange(closed());
    return newest == closed() ? nullptr : reversed(newest);
  }
  // True where it is closed now.
  bool close_if_empty() noexcept {
    Node* none = nullptr;
    return newest_.compare_exchange_strong(none, closed()) || none == closed();
  }

 private:
  static Node* closed() noexcept {
    static char tag;
    return reinterpret_cast<Node*>(&tag);
  }

  static Node* reversed(Node* newest) noexcept {
    Node* oldest = nullptr;
    while (newest) {
      Node* next = std::exchange(newest->next, oldest);
      oldest = std::exchange(newest, next);
    }
    return oldest;
  }

  std::atomic<Node*> newest_{nullptr};
};

}  // namespace weir::detail
