// waiting_room.h — the senders that wait for room in a full mailbox, by async_tell.
//
// Thread safety: every member from any thread.
//
// Invariants:
//   1. Senders are admitted in the order in which they came. The message of a sender that was cancelled is
//      not sent.
//   2. While a sender waits, admit() is called after each message that is read, so no room stays unused.
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

  // Moves messages of waiting senders into the mailbox while there is room. Returns whether any was moved.
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

  // Refuses all waiting senders, and all later ones, with mailbox_closed.
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

  // Moves one message into the mailbox and completes its sender. Returns whether the message was moved.
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
