// cell.h — what an actor is made of: its mail, its coroutine, its children, and who waits for its end.
//
// A ref is a pointer to a cell, a context is the body's view of it. The coroutine is the body's; the cell
// hands it mail, tells it to stop, cancels it, calls it again where the options say so, and says how it
// ended.
//
// Thread safety: stop, kill, join from any thread; the rest on the actor's executor.
//
// Invariant: the end is said once, whatever ends the actor: the body, a kill, or the death of its context.
// By then the mailbox is closed and empty, and every child has ended.
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
  // What only the cell with the body knows how to do: start its coroutine, with an exit_guard as its
  // completion handler; decide about a restart, and wait for its moment; let go of the body, whose captures
  // may hold refs to this very actor. `ask_again` says yes by returning true.
  enum class body_action { launch, ask_again, rest, drop };
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

  // The body's first moment; false where it was killed before.
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

  // The end of a rest.
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

  // A coroutine cancelled before its body began would throw out of co_spawn itself.
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

  // The context is being destroyed: the coroutine, which waits for mail or elsewhere, will never go on.
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

  std::shared_ptr<cell> self_;  // while it is a member of its context's lifeline
  lifeline::ticket ticket_;
  exit_signal exit_;

  // The actor's executor alone:
  const body_function body_;
  phase now_ = phase::created;
  bool begun_ = false, restarts_ = false, restarted_ = false;
  boost::asio::cancellation_signal life_;
  std::unique_ptr<dependents> dependents_;
  exit_status last_exit_;
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
