// cell.h — what an actor is made of: its mailbox, its control bits, its coroutine, and who waits for its end.
//
// A ref is a pointer to a cell, a context is the body's view of it. The coroutine is the body's; the cell
// hands it mail, tells it to stop, cancels it, calls it again where the options say so, and says how it
// ended.
//
// Thread safety: tell, stop, kill, join from any thread; the rest on the actor's executor.
//
// Invariants:
//   1. Control is bits, not mail: it is never refused, and looked at before mail.
//   2. Mail is taken from the mailbox when the receiving handler runs, not before: cancelling a receive loses
//   none.
//   3. finish() happens once, whatever ends the actor: the body, a kill, or the death of its context. By then
//   the
//      mailbox is closed and empty, every question told to the actor is answered or dropped, every child has
//      ended.
#pragma once

#include <atomic>
#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/associated_cancellation_slot.hpp>
#include <boost/asio/cancellation_signal.hpp>
#include <boost/asio/error.hpp>
#include <boost/asio/post.hpp>
#include <boost/system/error_code.hpp>
#include <cassert>
#include <chrono>
#include <cstdint>
#include <exception>
#include <memory>
#include <mutex>
#include <optional>
#include <utility>
#include <vector>

#include "completion.h"
#include "household.h"
#include "lifeline.h"
#include "mailbox.h"
#include "options.h"
#include "pending.h"
#include "waiting_room.h"
#include "wakes.h"

namespace weir::detail {

template <class Msg>
class cell : public waker, public lifeline::member {
 public:
  using error_code = boost::system::error_code;
  using receive_signature = void(error_code, std::optional<Msg>);
  using waker::line;

  // What only the cell with the body knows how to do: start its coroutine, with an exit_guard as its
  // completion handler; decide about a restart, and wait for its moment; let go of the body, whose captures
  // may hold refs to this very actor. `ask_again` says yes by returning true.
  enum class body_action { launch, ask_again, rest, drop };
  using body_function = bool (*)(cell&, body_action);

  cell(boost::asio::any_io_executor ex, options o, body_function body)
      : waker(std::move(ex), [](waker& w) { static_cast<cell&>(w).on_wake(); }),
        member([](member& m) { static_cast<cell&>(m).let_go(); }),
        options_(std::move(o)),
        mail_(options_.mailbox, options_.watch != nullptr),
        body_(body) {}

  std::shared_ptr<cell> self() { return std::static_pointer_cast<cell>(shared_from_this()); }
  const options& opts() const noexcept { return options_; }
  std::size_t backlog() const noexcept { return mail_.size(); }

  // ---- any thread

  void start() {
    if (!line()->enlist(self())) return end({exit_reason::abandoned, nullptr});
    arm();
    signal();
  }

  // Moves from m only where it says ok.
  sent tell(Msg& m) {
    if (stopping()) return refused(sent::closed);
    if (!waiting_.empty() || !mail_.reserve()) return refused(sent::full);
    if (!mail_.push(m)) return refused(sent::closed);
    signal();
    return sent::ok;
  }

  void tell_when_room(Msg m, std::shared_ptr<pending<>> sender) {
    waiting_.enter(std::move(m), std::move(sender));
    if (waiting_.admit(mail_)) signal();
  }

  bool stopping() const noexcept { return control_.load() != 0; }

  void stop() {
    control_.fetch_or(stop_bit);
    waiting_.close();
    signal();
  }

  void kill() {
    control_.fetch_or(stop_bit | kill_bit);
    waiting_.close();
    line()->visit([this] { boost::asio::post(get_executor(), [c = self()] { c->on_kill(); }); });
  }

  void join(std::shared_ptr<pending<exit_status>> waiter) {
    {
      const std::lock_guard lock(joining_);
      if (!ended_) return joiners_.push_back(std::move(waiter));
    }
    waiter->complete({}, *ended_);
  }

  // ---- the actor's executor

  // The body's first moment; false where it was killed before.
  bool begin() noexcept {
    begun_ = true;
    return !killed();
  }

  std::optional<Msg> try_receive() { return killed() ? std::nullopt : take(); }

  template <class Handler>
  void receive(Handler&& handler) {
    assert(!receiver_ && "one async_receive at a time");
    note_worked();
    auto slot = boost::asio::get_associated_cancellation_slot(handler);
    receiver_ = completion<waits::for_own_mail, error_code, std::optional<Msg>>(
        std::forward<Handler>(handler), get_executor());
    ++receive_no_;
    if (slot.is_connected()) {
      slot.assign([weak = weak_from_this(), no = receive_no_](boost::asio::cancellation_type type) {
        auto w = type == boost::asio::cancellation_type::none ? nullptr : weak.lock();
        if (w) static_cast<cell&>(*w).cancel_receive(no);
      });
    }
    if (!delivering_) listen();
  }

  // The actor's own, from a timer: never refused while it lives.
  void remind(Msg m) {
    mail_.reserve_beyond();
    if (mail_.push(m)) signal();
  }

  household& house() {
    if (!house_) house_ = std::make_unique<household>();
    return *house_;
  }

  void child_joined(std::uint64_t no) {
    house_->joined(no);
    if (now_ == phase::ending && house_->childless()) settle();
  }

  bool failed() const noexcept { return last_exit_.reason == exit_reason::failed; }

  // The end of a rest.
  void awake() {
    if (now_ != phase::resting) return;
    now_ = phase::created;
    arm();
    signal();
  }

  class exit_guard;

 private:
  static constexpr unsigned stop_bit = 1, kill_bit = 2;
  static constexpr int burst = 16;  // messages read before other handlers of the executor have their turn

  // created -> running -> ending (children are being joined) -> over, or -> resting -> created again
  enum class phase { created, running, ending, resting, over };

  bool killed() const noexcept { return control_.load() & kill_bit; }

  sent refused(sent why) {
    if (options_.watch) options_.watch->dead_letters(options_.name, 1, why);
    return why;
  }

  void listen() {
    arm();
    if (!mail_.empty() || stopping()) signal();
  }

  void on_wake() {
    switch (now_) {
      case phase::created:
        if (stopping() && restarted_) return end(last_exit_);
        if (killed()) return end({exit_reason::killed, nullptr});
        body_(*this, body_action::launch);
        return;
      case phase::running:
        return deliver_some();
      case phase::resting:
        if (stopping()) return end(last_exit_);
        return doze();
      default:
        return;
    }
  }

  void deliver_some() {
    struct scope {  // a handler that throws leaves it too
      cell& c;
      explicit scope(cell& c) : c(c) { c.delivering_ = true; }
      ~scope() {
        c.delivering_ = false;
        if (c.receiver_) c.listen();
      }
    } const delivering(*this);
    for (int n = 0; n < burst && receiver_ && deliver(); ++n) {
    }
  }

  // Gives the waiting receive what there is for it; false where there is nothing. Its handler may well
  // receive again.
  bool deliver() {
    if (killed()) {
      receiver_.dispatch(boost::asio::error::operation_aborted, std::nullopt);
    } else if (auto m = take()) {
      receiver_.dispatch({}, std::move(m));
    } else if (stopping() && mail_.close_if_empty()) {
      receiver_.dispatch({}, std::nullopt);
    } else {
      return false;
    }
    return true;
  }

  std::optional<Msg> take() {
    note_worked();
    auto letter = mail_.pop();
    if (!letter) return std::nullopt;
    if (!waiting_.empty()) waiting_.admit(mail_);
    if (options_.watch) {
      const auto now = std::chrono::steady_clock::now();
      options_.watch->read(options_.name, now - letter->sent, mail_.size());
      read_at_ = now;
    }
    return std::optional<Msg>(std::move(letter->message));
  }

  void note_worked() {
    if (!options_.watch || read_at_ == time_point()) return;
    options_.watch->worked(options_.name,
                           std::chrono::steady_clock::now() - std::exchange(read_at_, time_point()));
  }

  void cancel_receive(std::uint64_t no) {
    if (receiver_ && no == receive_no_) receiver_.post(boost::asio::error::operation_aborted, std::nullopt);
  }

  // A coroutine cancelled before its body began would throw out of co_spawn itself.
  void on_kill() {
    if (now_ == phase::resting) return end({exit_reason::killed, nullptr});
    if (now_ == phase::ending) house_->end_children(true);
    if (now_ != phase::running || !begun_) return;
    life_.emit(boost::asio::cancellation_type::all);
    cancel_receive(receive_no_);
  }

  void body_ended(std::exception_ptr error) {
    note_worked();
    const auto why = killed()     ? exit_reason::killed
                     : error      ? exit_reason::failed
                     : stopping() ? exit_reason::stopped
                                  : exit_reason::finished;
    last_exit_ = {why, why == exit_reason::failed ? std::move(error) : nullptr};
    restarts_ = !stopping() && body_(*this, body_action::ask_again);
    if (!restarts_) close();
    now_ = phase::ending;
    if (house_) {
      house_->silence();
      house_->end_children(killed());
      if (!house_->childless()) return;
    }
    settle();
  }

  // The body has ended, and so has every child.
  void settle() {
    if (!restarts_ || stopping()) return end(last_exit_);
    if (options_.watch) options_.watch->ended(options_.name, last_exit_, true);
    restarted_ = true;
    begun_ = false;
    now_ = phase::resting;
    doze();
    body_(*this, body_action::rest);
  }

  void doze() {
    arm();
    if (stopping()) signal();
  }

  // The context is being destroyed: the coroutine, which waits for mail or elsewhere, will never go on.
  void let_go() {
    auto unrun = std::move(receiver_);
    end({exit_reason::abandoned, nullptr});
  }

  void close() {
    control_.fetch_or(stop_bit);
    const std::size_t unread = mail_.close();
    if (unread && options_.watch) options_.watch->dead_letters(options_.name, unread, sent::ok);
    waiting_.close();
  }

  void end(exit_status how) {
    const auto keep = self();
    close();
    if (now_ != phase::running) {
      now_ = phase::over;
      body_(*this, body_action::drop);
    }
    finish(std::move(how));
  }

  void finish(exit_status how) {
    std::vector<std::shared_ptr<pending<exit_status>>> waiting;
    {
      const std::lock_guard lock(joining_);
      if (ended_) return;
      ended_ = how;
      waiting.swap(joiners_);
    }
    line()->claim(*this);
    if (options_.watch) options_.watch->ended(options_.name, how, false);
    for (auto& w : waiting) w->complete({}, how);
  }

  using time_point = std::chrono::steady_clock::time_point;

  const options options_;
  mailbox<Msg> mail_;
  waiting_room<Msg> waiting_;
  std::atomic<unsigned> control_{0};

  // The actor's executor alone:
  const body_function body_;
  phase now_ = phase::created;
  bool begun_ = false, delivering_ = false, restarts_ = false, restarted_ = false;
  completion<waits::for_own_mail, error_code, std::optional<Msg>> receiver_;
  std::uint64_t receive_no_ = 0;
  boost::asio::cancellation_signal life_;
  std::unique_ptr<household> house_;
  exit_status last_exit_;
  time_point read_at_{};  // the message being worked on, where that is watched

  std::mutex joining_;  // guards these two
  std::vector<std::shared_ptr<pending<exit_status>>> joiners_;
  std::optional<exit_status> ended_;
};

// The coroutine's completion handler; destroyed without having run, it reports the death of the context. By
// the time either happens the body's frame is gone.
template <class Msg>
class cell<Msg>::exit_guard {
 public:
  explicit exit_guard(cell& c) : cell_(c.self()) { c.now_ = phase::running; }
  exit_guard(exit_guard&&) noexcept = default;
  ~exit_guard() {
    if (cell_) leave()->end({exit_reason::abandoned, nullptr});
  }

  void operator()(std::exception_ptr error) { leave()->body_ended(std::move(error)); }

  using cancellation_slot_type = boost::asio::cancellation_slot;
  cancellation_slot_type get_cancellation_slot() const noexcept { return cell_->life_.slot(); }

 private:
  std::shared_ptr<cell> leave() {
    cell_->now_ = phase::over;
    return std::move(cell_);
  }

  std::shared_ptr<cell> cell_;
};

}  // namespace weir::detail
