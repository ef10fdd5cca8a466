// waiting_room.h — senders who would rather wait for room in a mailbox than be refused: async_tell.
//
// Thread safety: every member from any thread.
//
// Invariants:
//   1. First come, first admitted. A sender that gives up takes its message with it.
//   2. While somebody waits, a message read is followed by admit(): room is never left unused.
#pragma once

#include <atomic>
#include <cstddef>
#include <list>
#include <memory>
#include <mutex>
#include <utility>

#include "actor_error.h"
#include "mailbox.h"
#include "pending.h"

namespace weir::detail {

template <class Msg>
class waiting_room {
 public:
  bool empty() const noexcept { return waiting_.load() == 0; }

  void enter(Msg m, pending<> sender) {
    const std::lock_guard lock(mutex_);
    if (closed_) return (void)sender.fail(actor_error::mailbox_closed);
    queue_.push_back({std::move(m), std::move(sender)});
    waiting_.fetch_add(1);
  }

  // Moves senders into the mailbox while there is room; true where any went.
  bool admit(mailbox<Msg>& mail) {
    std::list<place> done;  // destroyed after the lock
    bool any = false;
    const std::lock_guard lock(mutex_);
    while (!queue_.empty() && mail.reserve()) {
      done.splice(done.end(), queue_, queue_.begin());
      waiting_.fetch_sub(1);
      any |= settle(done.back(), mail);
    }
    return any;
  }

  // Nobody waits any more.
  void close() {
    std::list<place> refused;
    {
      const std::lock_guard lock(mutex_);
      closed_ = true;
      refused.swap(queue_);
      waiting_.store(0);
    }
    for (auto& p : refused) p.sender.fail(actor_error::mailbox_closed);
  }

 private:
  struct place {
    Msg message;
    pending<> sender;
  };

  // REQUIRES: a reservation.
  bool settle(place& p, mailbox<Msg>& mail) {
    bool taken = false;
    const bool waited = p.sender.complete_with([&]() -> boost::system::error_code {
      taken = mail.push(p.message);
      return taken ? boost::system::error_code() : actor_error::mailbox_closed;
    });
    if (!waited) mail.release();
    return taken;
  }

  std::mutex mutex_;
  std::list<place> queue_;
  bool closed_ = false;
  std::atomic<std::size_t> waiting_{0};
};

}  // namespace weir::detail
