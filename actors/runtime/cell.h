// cell.h — the state of an actor: its mailbox, its coroutine, its children, and the waiters for its end.
//
// A ref is a pointer to a cell, and a context is the body's interface to it. The body runs as a coroutine.
// The cell gives it messages, tells it to stop, cancels it, starts it again if the options say so, and
// reports how it ended.
//
// Thread safety: start, stop, kill and join from any thread; all other members on the actor's executor.
//
// Invariant: the end is reported once, whether the body returned or threw, the actor was killed, or its
// context was destroyed. By then the mailbox is closed and empty, and every child has ended.
#pragma once

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/cancellation_signal.hpp>
#include <boost/asio/cancellation_type.hpp>
#include <boost/asio/post.hpp>
#include <cstdint>
#include <exception>
#include <memory>
#include <utility>

#include "dependents.h"
#include "exit_signal.h"
#include "inbox.h"
#include "lifeline.h"
#include "options.h"

namespace weir::detail {

template <class Msg>
class cell : public inbox<Msg>, public lifeline::member {
 public:
  // The operations of the derived class, which knows the type of the body.
  enum class body_action {
    launch,     // starts the coroutine, with an exit_guard as its completion handler
    ask_again,  // returns whether the body is to be restarted
    rest,       // waits for the time of the restart, and then calls awake()
    drop        // destroys the body, whose captures may hold refs to this actor
  };
  using body_function = bool (*)(cell&, body_action);

  cell(boost::asio::any_io_executor ex, options o, body_function body)
      : inbox<Msg>(std::move(ex), std::move(o), [](waker& w) { static_cast<cell&>(w).on_wake(); }),
        member([](member& m) { static_cast<cell&>(m).let_go(); }),
        body_(body) {}

  std::shared_ptr<cell> self() { return std::static_pointer_cast<cell>(this->shared_from_this()); }

  // ---- any thread

  void start() {
    const lifeline::visit open(*this->where().line());
    if (!open) return end({exit_reason::abandoned, nullptr});
    self_ = self();
    ticket_ = this->where().line()->enroll(*this);
    this->arm();
    this->signal();
  }

  void stop() {
    this->order_stop();
    this->signal_published();
  }

  void kill() {
    this->order_kill();
    const lifeline::visit open(*this->where().line());
    if (open) boost::asio::post(this->get_executor(), [c = self()] { c->on_kill(); });
  }

  void join(pending<exit_status> waiter) { exit_.wait(std::move(waiter)); }

  // ---- the actor's executor

  // The body begins. Returns false if the actor was killed before.
  bool begin() noexcept {
    begun_ = true;
    return !this->killed();
  }

  dependents& owned() {
    if (!dependents_) dependents_ = std::make_unique<dependents>();
    return *dependents_;
  }

  void child_joined(std::uint64_t no) {
    dependents_->joined(no);
    if (now_ == phase::ending && dependents_->childless()) settle();
  }

  bool failed() const noexcept { return last_exit_.reason == exit_reason::failed; }

  // The time of the restart has come.
  void awake() {
    if (now_ != phase::resting) return;
    now_ = phase::created;
    this->arm();
    this->signal();
  }

  class exit_guard;

 private:
  // created -> running -> ending (children are being joined) -> over, or -> resting -> created again
  enum class phase : unsigned char { created, running, ending, resting, over };

  void on_wake() {
    switch (now_) {
      case phase::created:
        if (this->stopping() && restarted_) return end(last_exit_);
        if (this->killed()) return end({exit_reason::killed, nullptr});
        body_(*this, body_action::launch);
        return;
      case phase::running:
        return this->deliver_some();
      case phase::resting:
        if (this->stopping()) return end(last_exit_);
        return doze();
      default:
        return;
    }
  }

  // Does not cancel a coroutine whose body has not begun, since then co_spawn itself would throw. Such a body
  // does not run, because begin() returns false.
  void on_kill() {
    if (now_ == phase::resting) return end({exit_reason::killed, nullptr});
    if (now_ == phase::ending) dependents_->end_children(true);
    if (now_ != phase::running || !begun_) return;
    life_.emit(boost::asio::cancellation_type::all);
    this->cancel_receive();
  }

  void body_ended(std::exception_ptr error) {
    this->note_worked();
    const auto why = this->killed()     ? exit_reason::killed
                     : error            ? exit_reason::failed
                     : this->stopping() ? exit_reason::stopped
                                        : exit_reason::finished;
    last_exit_ = {why, why == exit_reason::failed ? std::move(error) : nullptr};
    restarts_ = !this->stopping() && body_(*this, body_action::ask_again);
    if (!restarts_) this->close();
    now_ = phase::ending;
    if (dependents_) {
      dependents_->silence();
      dependents_->end_children(this->killed());
      if (!dependents_->childless()) return;
    }
    settle();
  }

  // The body has ended, and so has every child.
  void settle() {
    if (!restarts_ || this->stopping()) return end(last_exit_);
    if (auto* watch = this->opts().watch) watch->ended(this->opts().name, last_exit_, true);
    restarted_ = true;
    begun_ = false;
    now_ = phase::resting;
    doze();
    body_(*this, body_action::rest);
  }

  void doze() {
    this->arm();
    if (this->stopping()) this->signal();
  }

  // The context is being destroyed: the coroutine, whatever it waits for, is never resumed.
  void let_go() {
    const auto keep = std::move(self_);
    this->drop_receiver();
    end({exit_reason::abandoned, nullptr});
  }

  void end(exit_status how) {
    const auto keep = self();
    this->close();
    if (now_ != phase::running) {
      now_ = phase::over;
      body_(*this, body_action::drop);
    }
    if (exit_.said()) return;
    if (this->where().line()->withdraw(ticket_)) self_.reset();
    if (auto* watch = this->opts().watch) watch->ended(this->opts().name, how, false);
    exit_.say(std::move(how));
  }

  std::shared_ptr<cell> self_;  // this object while it is a member of its context's lifeline; else null
  lifeline::ticket ticket_;
  exit_signal exit_;

  // Used on the actor's executor only:
  const body_function body_;
  phase now_ = phase::created;
  // begun_: the body has begun, since the latest start. restarts_: the body has ended, and is to be
  // restarted. restarted_: the body was restarted at least once.
  bool begun_ = false, restarts_ = false, restarted_ = false;
  boost::asio::cancellation_signal life_;
  std::unique_ptr<dependents> dependents_;
  exit_status last_exit_;
};

// The completion handler of the coroutine. If it is destroyed without having been called, the execution
// context is gone, and the destructor ends the actor as abandoned. In both cases the body's frame has been
// destroyed before.
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
