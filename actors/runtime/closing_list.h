// closing_list.h — a lock-free list to which many threads add and which one thread reads. The reader can
// close the list; after that, nothing can be added.
//
// Adding costs one compare-and-swap. The reader takes all nodes at once, in the order in which they were
// added.
//
// Thread safety: add, is_closed and empty from any thread; all other members by the reader only.
//
// Invariant: a node for which add() returned true is returned by a later take() or close().
#pragma once

#include <atomic>
#include <utility>

namespace weir::detail {

// Node has a member `Node* next`. It belongs to the list while the node is in the list.
template <class Node>
class closing_list {
 public:
  // Adds a node. Returns false if the list is closed; the node then still belongs to the caller.
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

  // Takes all nodes, the oldest first; null: none.
  Node* take() noexcept { return empty() ? nullptr : reversed(newest_.exchange(nullptr)); }
  // Closes the list and takes all nodes, the oldest first; null: none.
  Node* close() noexcept {
    Node* newest = newest_.exchange(closed());
    return newest == closed() ? nullptr : reversed(newest);
  }
  // Closes the list unless it has a node. Returns whether the list is closed now.
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
