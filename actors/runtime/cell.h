// cell.h — what an actor is made of: its mailbox, its control bits, its coroutine, and who waits for its end.
//
// A ref is a pointer to a cell, a context is the body's view of it. The coroutine is the body's; the cell
// hands it mail, tells it to stop, cancels it, and says how it ended.
//
// Thread safety: tell, stop, kill, join from any thread; the rest on the actor's executor.
//
// Invariants:
//   1. Control is bits, not mail: it is never refused, and looked at before mail.
//   2. Mail is taken from the mailbox when the receiving handler runs, not before: cancelling a receive loses
//   none.
//   3. finish() happens once, whatever ends the actor: the body, a kill, or the death of its context. It
//   leaves the
//      mailbox closed and empty, so that every question told to the actor is answered or dropped.
#pragma once

#include <atomic>
#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/associated_cancellation_slot.hpp>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/cancellation_signal.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/error.hpp>
#include <boost/asio/post.hpp>
#include <boost/system/error_code.hpp>
#include <cassert>
#include <cstdint>
#include <exception>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "completion.h"
#include "lifeline.h"
#include "mailbox.h"
#include "pending.h"
#include "wakes.h"

namespace weir {

struct options {
  std::string name = "actor";
  std::size_t mailbox = 1024;  // unread messages; more are refused. Control is not counted
};

enum class exit_reason {
  finished,   // the body returned
  stopped,    // the body returned after stop()
  killed,     // kill()
  failed,     // the body threw: see error
  abandoned,  // its execution context was destroyed
};

struct exit_status {
  exit_reason reason = exit_reason::finished;
  std::exception_ptr error;
};

namespace detail {

template <class Msg>
class cell : public waker, public lifeline::member {
 public:
  using error_code = boost::system::error_code;
  using receive_signature = void(error_code, std::optional<Msg>);

  // What only the cell with the body knows how to do: start its coroutine, with an exit_guard as its
  // completion handler; and let go of the body, whose captures may well hold refs to this very actor.
  enum class body_action { launch, drop };

  cell(boost::asio::any_io_executor ex, options o, void (*body)(cell&, body_action))
      : waker(std::move(ex), [](waker& w) { static_cast<cell&>(w).on_wake(); }),
        member([](member& m) { static_cast<cell&>(m).let_go(); }),
        line_(lifeline::of(get_executor())),
        options_(std::move(o)),
        mail_(options_.mailbox),
        body_(body) {}

  std::shared_ptr<cell> self() { return std::static_pointer_cast<cell>(shared_from_this()); }
  const options& opts() const noexcept { return options_; }
  std::size_t backlog() const noexcept { return mail_.size(); }

  // ---- any thread

  void start() {
    if (!line_->enlist(self())) return finish({exit_reason::abandoned, nullptr});
    arm();
    signal();
  }

  sent tell(Msg& m) {
    if (stopping()) return sent::closed;
    const sent how = mail_.push(m);
    if (how == sent::ok) signal();
    return how;
  }

  bool stopping() const noexcept { return control_.load() != 0; }

  void stop() {
    control_.fetch_or(stop_bit);
    signal();
  }

  void kill() {
    control_.fetch_or(stop_bit | kill_bit);
    line_->visit([this] { boost::asio::post(get_executor(), [c = self()] { c->on_kill(); }); });
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

  std::optional<Msg> try_receive() { return killed() ? std::nullopt : mail_.pop(); }

  template <class Handler>
  void receive(Handler&& handler) {
    assert(!receiver_ && "one async_receive at a time");
    auto slot = boost::asio::get_associated_cancellation_slot(handler);
    receiver_ = completion<error_code, std::optional<Msg>>(std::forward<Handler>(handler), get_executor());
    ++receive_no_;
    if (slot.is_connected()) {
      slot.assign([weak = weak_from_this(), no = receive_no_](boost::asio::cancellation_type type) {
        auto w = type == boost::asio::cancellation_type::none ? nullptr : weak.lock();
        if (w) static_cast<cell&>(*w).cancel_receive(no);
      });
    }
    listen();
  }

  class exit_guard;

 private:
  static constexpr unsigned stop_bit = 1, kill_bit = 2;

  bool killed() const noexcept { return control_.load() & kill_bit; }

  void listen() {
    arm();
    if (!mail_.empty() || stopping()) signal();
  }

  void on_wake() {
    if (!started_) {
      started_ = true;
      if (killed()) return finish({exit_reason::killed, nullptr});
      return body_(*this, body_action::launch);
    }
    if (!receiver_) return;
    if (killed()) return receiver_.dispatch(boost::asio::error::operation_aborted, std::nullopt);
    if (auto m = mail_.pop()) return receiver_.dispatch({}, std::move(m));
    if (stopping() && mail_.close_if_empty()) return receiver_.dispatch({}, std::nullopt);
    listen();
  }

  void cancel_receive(std::uint64_t no) {
    if (receiver_ && no == receive_no_) receiver_.post(boost::asio::error::operation_aborted, std::nullopt);
  }

  // A coroutine cancelled before its body began would throw out of co_spawn itself.
  void on_kill() {
    if (!running_ || !begun_) return;
    life_.emit(boost::asio::cancellation_type::all);
    cancel_receive(receive_no_);
  }

  void body_ended(std::exception_ptr error) {
    if (killed()) return finish({exit_reason::killed, nullptr});
    if (error) return finish({exit_reason::failed, std::move(error)});
    finish({stopping() ? exit_reason::stopped : exit_reason::finished, nullptr});
  }

  // The context is being destroyed: the coroutine, which waits for mail or elsewhere, will never go on.
  void let_go() {
    auto unrun = std::move(receiver_);
    finish({exit_reason::abandoned, nullptr});
  }

  void finish(exit_status how) {
    const auto keep = self();
    std::vector<std::shared_ptr<pending<exit_status>>> waiting;
    {
      const std::lock_guard lock(joining_);
      if (ended_) return;
      ended_ = how;
      waiting.swap(joiners_);
    }
    control_.fetch_or(stop_bit);
    mail_.close();
    if (!running_) body_(*this, body_action::drop);
    line_->claim(*this);
    for (auto& w : waiting) w->complete({}, how);
  }

  const std::shared_ptr<lifeline> line_;
  const options options_;
  mailbox<Msg> mail_;
  std::atomic<unsigned> control_{0};

  // The actor's executor alone:
  void (*const body_)(cell&, body_action);
  bool started_ = false, running_ = false, begun_ = false;
  completion<error_code, std::optional<Msg>> receiver_;
  std::uint64_t receive_no_ = 0;
  boost::asio::cancellation_signal life_;

  std::mutex joining_;  // guards these two
  std::vector<std::shared_ptr<pending<exit_status>>> joiners_;
  std::optional<exit_status> ended_;
};

// The coroutine's completion handler; destroyed without having run, it reports the death of the context. By
// the time either happens the body's frame is gone.
template <class Msg>
class cell<Msg>::exit_guard {
 public:
  explicit exit_guard(cell& c) : cell_(c.self()) { c.running_ = true; }
  exit_guard(exit_guard&&) noexcept = default;
  ~exit_guard() {
    if (cell_) leave()->finish({exit_reason::abandoned, nullptr});
  }

  void operator()(std::exception_ptr error) { leave()->body_ended(std::move(error)); }

  using cancellation_slot_type = boost::asio::cancellation_slot;
  cancellation_slot_type get_cancellation_slot() const noexcept { return cell_->life_.slot(); }

 private:
  std::shared_ptr<cell> leave() {
    auto c = std::move(cell_);
    c->running_ = false;
    if (c->ended_) c->body_(*c, body_action::drop);  // let go of before its frame was
    return c;
  }

  std::shared_ptr<cell> cell_;
};

}  // namespace detail
}  // namespace weir
