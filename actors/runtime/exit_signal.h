// exit_signal.h — tells all waiters that an actor has ended, and how.
//
// Thread safety: wait() and said() from any thread; say() from one thread, once.
//
// Invariant: each waiter is told once, in the order of the calls of wait(). A waiter that comes after the end
// is told at once.
#pragma once

#include <boost/system/error_code.hpp>
#include <memory>
#include <utility>

#include "closing_list.h"
#include "options.h"
#include "pending.h"

namespace weir::detail {

class exit_signal {
 public:
  using waiter = pending<exit_status>;

  exit_signal() = default;
  exit_signal(const exit_signal&) = delete;
  exit_signal& operator=(const exit_signal&) = delete;
  ~exit_signal() { tell_all(); }

  void wait(waiter who) {
    auto n = std::make_unique<node>(std::move(who));
    if (waiting_.add(n.get())) return (void)n.release();
    n->who.complete({}, how_);
  }

  bool said() const noexcept { return waiting_.is_closed(); }
  void say(exit_status how) {
    how_ = std::move(how);
    tell_all();
  }

 private:
  struct node {
    explicit node(waiter w) : who(std::move(w)) {}
    node* next = nullptr;
    waiter who;
  };

  void tell_all() {
    for (node* n = waiting_.close(); n;) {
      const std::unique_ptr<node> now(std::exchange(n, n->next));
      now->who.complete({}, how_);
    }
  }

  exit_status how_;  // written before the list closes, read after
  closing_list<node> waiting_;
};

}  // namespace weir::detail
