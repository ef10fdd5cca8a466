// inbox.h — the part of an actor that receives messages: the mailbox, the pending receive, and two bits for
// stop and kill.
//
// Thread safety: as the groups of members say.
//
// Invariants:
//   1. Stop and kill are bits and not messages, so they are never refused. Kill is checked before the next
//      message is taken. After a stop, async_receive() gives an empty optional once no message is unread.
//   2. A message is taken from the mailbox when the receiving handler runs, and not before. Cancelling a
//      receive therefore loses no message.
//   3. After close() the mailbox is closed and empty, no sender waits for room, and every question to the
//      actor is answered or destroyed.
#pragma once

#include <atomic>
#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/associated_cancellation_slot.hpp>
#include <boost/asio/cancellation_type.hpp>
#include <boost/asio/error.hpp>
#include <boost/system/error_code.hpp>
#include <cassert>
#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <utility>

#include "mailbox.h"
#include "options.h"
#include "own_handler.h"
#include "pending.h"
#include "waiting_room.h"
#include "wakes.h"

namespace weir::detail {

template <class Msg>
class inbox : public waker {
 public:
  using waker::where;
  using error_code = boost::system::error_code;

  const options& opts() const noexcept { return mail_.opts(); }

  // ---- any thread

  std::size_t backlog() const noexcept { return mail_.size(); }
  bool stopping() const noexcept { return control_.load() != 0; }

  // Moves from m only if it returns ok.
  sent tell(Msg& m) {
    if (stopping()) return refused(sent::closed);
    if (crowded() || !mail_.reserve()) return refused(sent::full);
    if (!mail_.push(m)) return refused(sent::closed);
    signal_published();
    return sent::ok;
  }

  void tell_when_room(Msg m, pending<> sender) {
    auto& r = room();
    r.enter(std::move(m), std::move(sender));
    if (stopping()) r.close();  // the room may have been made after stop() looked for one to close
    if (r.admit(mail_)) signal();
  }

  // ---- the actor's executor

  std::optional<Msg> try_receive() { return killed() ? std::nullopt : take(); }

  template <class Handler>
  void receive(Handler handler) {
    assert(!receiver_ && "one async_receive at a time");
    note_worked();
    auto slot = boost::asio::get_associated_cancellation_slot(handler);
    receiver_.set(std::move(handler), where(), false);
    cancelled_ = false;
    ++receive_no_;
    if (slot.is_connected()) {
      slot.assign([weak = weak_from_this(), no = receive_no_](boost::asio::cancellation_type type) {
        auto w = type == boost::asio::cancellation_type::none ? nullptr : weak.lock();
        if (w) static_cast<inbox&>(*w).cancel_receive(no);
      });
    }
    if (!delivering_) listen();
  }

  // Adds a message from the actor's own timer. Never refused while the actor lives.
  void remind(Msg m) {
    mail_.reserve_beyond();
    if (mail_.push(m)) signal_published();
  }

 protected:
  inbox(boost::asio::any_io_executor ex, options o, waker::function on_wake)
      : waker(std::move(ex), on_wake), mail_(std::move(o)) {}
  ~inbox() { delete room_.load(); }

  // ---- any thread

  bool killed() const noexcept { return control_.load() & kill_bit; }
  void order_stop() { order(stop_bit); }
  void order_kill() { order(stop_bit | kill_bit); }

  // ---- the actor's executor

  // The next signal causes a wake. If there is something to receive already, there is a wake now.
  void listen() {
    arm();
    if (!mail_.empty() || stopping() || cancelled_) signal();
  }

  void deliver_some() {
    struct scope {  // its destructor runs even if a handler throws
      inbox& i;
      explicit scope(inbox& i) : i(i) { i.delivering_ = true; }
      ~scope() {
        i.delivering_ = false;
        if (i.receiver_) i.listen();
      }
    } const delivering(*this);
    for (int n = 0; n < burst && receiver_ && deliver(); ++n) {
    }
  }

  void cancel_receive() { cancel_receive(receive_no_); }
  void drop_receiver() noexcept { receiver_.drop(); }

  void note_worked() {
    if (!opts().watch || read_at_ == time_point()) return;
    opts().watch->worked(opts().name,
                         std::chrono::steady_clock::now() - std::exchange(read_at_, time_point()));
  }

  void close() {
    order(stop_bit);
    const std::size_t unread = mail_.close();
    if (unread && opts().watch) opts().watch->dead_letters(opts().name, unread, sent::ok);
  }

 private:
  using time_point = std::chrono::steady_clock::time_point;
  static constexpr unsigned stop_bit = 1, kill_bit = 2;
  static constexpr int burst = 16;  // messages read before other handlers of the executor run

  sent refused(sent why) {
    if (opts().watch) opts().watch->dead_letters(opts().name, 1, why);
    return why;
  }

  void order(unsigned bits) {
    control_.fetch_or(bits);
    if (auto* r = room_.load()) r->close();
  }

  // Makes the waiting room on first use. Most actors never have one.
  waiting_room<Msg>& room() {
    auto* r = room_.load();
    if (r) return *r;
    auto fresh = std::make_unique<waiting_room<Msg>>();
    return room_.compare_exchange_strong(r, fresh.get()) ? *fresh.release() : *r;
  }
  bool crowded() const noexcept {
    const auto* r = room_.load();
    return r && !r->empty();
  }

  // Completes the pending receive if there is something for it, and returns whether there was. The handler
  // may call receive() again.
  bool deliver() {
    if (killed() || cancelled_) {
      receiver_.complete(boost::asio::error::operation_aborted, std::nullopt);
    } else if (auto m = take()) {
      receiver_.complete({}, std::move(m));
    } else if (stopping() && mail_.close_if_empty()) {
      receiver_.complete({}, std::nullopt);
    } else {
      return false;
    }
    return true;
  }

  std::optional<Msg> take() {
    note_worked();
    auto letter = mail_.pop();
    if (!letter) return std::nullopt;
    if (crowded()) room().admit(mail_);
    if (opts().watch) {
      const auto now = std::chrono::steady_clock::now();
      opts().watch->read(opts().name, now - letter->sent, mail_.size());
      read_at_ = now;
    }
    return std::optional<Msg>(std::move(letter->message));
  }

  void cancel_receive(std::uint64_t no) {
    if (!receiver_ || no != receive_no_) return;
    cancelled_ = true;
    arm();
    signal();
  }

  std::atomic<waiting_room<Msg>*> room_{nullptr};
  std::atomic<unsigned> control_{0};
  mailbox<Msg> mail_;

  // Used on the actor's executor only:
  bool delivering_ = false;  // deliver_some() is running
  bool cancelled_ = false;   // the pending receive was cancelled
  std::uint64_t receive_no_ = 0;
  own_handler<error_code, std::optional<Msg>> receiver_;
  time_point read_at_{};  // when the current message was taken; time_point(): no message, or no observer
};

}  // namespace weir::detail
