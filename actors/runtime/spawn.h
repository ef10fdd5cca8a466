// spawn.h — starts an actor on an executor.
//
// The body of an actor is a function object with the signature awaitable<void>(context<Msg>). No part of it
// runs inside spawn(). The whole actor runs on the executor, which must run one handler at a time (an
// io_context run by one thread, or a strand). The actor is outstanding work there until it ends.
//
// Thread safety: spawn() from any thread.
#pragma once

#include <algorithm>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/basic_waitable_timer.hpp>
#include <boost/asio/co_spawn.hpp>
#include <chrono>
#include <concepts>
#include <deque>
#include <memory>
#include <optional>
#include <type_traits>
#include <utility>

#include "cell.h"
#include "context.h"
#include "ref.h"

namespace weir {

namespace detail {

// The cell with its body. The body is destroyed after the frame of its last coroutine, so the coroutine may
// use the captures of a lambda.
template <class Msg, class Clock, class Body>
class cell_of final : public cell<Msg> {
 public:
  using action = typename cell<Msg>::body_action;

  cell_of(boost::asio::any_io_executor ex, options o, Body body)
      : cell<Msg>(std::move(ex), std::move(o), &cell_of::perform), body_(std::move(body)) {}

 private:
  static bool perform(cell<Msg>& c, action what) {
    auto& self = static_cast<cell_of&>(c);
    switch (what) {
      case action::launch:
        self.launch();
        return true;
      case action::ask_again:
        return self.wants_again();
      case action::rest:
        self.rest();
        return true;
      case action::drop:
        self.rest_.reset();
        self.body_.reset();
        return true;
    }
    return false;
  }

  void launch() {
    auto start = [this] {  // the exit_guard keeps this object alive
      return this->begin() ? (*body_)(context<Msg>(this->self())) : nothing();
    };
    boost::asio::co_spawn(this->get_executor(), std::move(start), typename cell<Msg>::exit_guard(*this));
  }

  static boost::asio::awaitable<void> nothing() { co_return; }

  struct resting {
    explicit resting(const boost::asio::any_io_executor& ex) : timer(ex) {}
    boost::asio::basic_waitable_timer<Clock> timer;
    std::deque<typename Clock::time_point> restarts;  // those within restart_policy::within
  };

  bool wants_again() {
    const restart_policy& policy = this->opts().restart;
    if (policy.when == restart_when::never) return false;
    if (policy.when == restart_when::on_error && !this->failed()) return false;
    if (!rest_) rest_ = std::make_unique<resting>(this->get_executor());
    auto& past = rest_->restarts;
    while (!past.empty() && past.front() + policy.within <= Clock::now()) past.pop_front();
    if (past.size() >= static_cast<std::size_t>(policy.max)) return false;
    past.push_back(Clock::now());
    return true;
  }

  void rest() {
    const auto first = this->opts().restart.first_delay;
    if (first.count() == 0) return this->awake();
    rest_->timer.expires_after(first * (1 << std::min<std::size_t>(rest_->restarts.size() - 1, 20)));
    rest_->timer.async_wait([self = this->self()](boost::system::error_code ec) {
      if (!ec) self->awake();
    });
  }

  std::unique_ptr<resting> rest_;  // only for actors that restart
  std::optional<Body> body_;
};
}  // namespace detail

// Starts an actor. `Clock`: the clock for the delays of restarts.
template <class Msg, class Clock = std::chrono::steady_clock, class Body>
requires std::same_as<std::invoke_result_t<Body&, context<Msg>>, boost::asio::awaitable<void>> ref<Msg> spawn(
    boost::asio::any_io_executor where, options o, Body body) {
  auto c =
      std::make_shared<detail::cell_of<Msg, Clock, Body>>(std::move(where), std::move(o), std::move(body));
  c->start();
  return ref<Msg>(std::move(c));
}

// Starts a child. When the body of the parent ends, the child is stopped, or killed if the parent was killed.
// The parent ends or restarts after the child has ended.
template <class Msg>
template <class M, class Body>
ref<M> context<Msg>::spawn(options o, Body body) {
  auto child = weir::spawn<M>(get_executor(), std::move(o), std::move(body));
  const auto no = cell_->owned().adopt([child](bool kill) { kill ? child.kill() : child.stop(); });
  child.async_join(
      [parent = cell_, no](boost::system::error_code, exit_status) { parent->child_joined(no); });
  return child;
}

}  // namespace weir
