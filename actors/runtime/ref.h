// ref.h — a handle to an actor, for sending messages to it.
//
// A ref does not keep the actor running, and may outlive the actor and its context. Copies are cheap. A
// handler without an associated executor runs on the actor's executor; it is destroyed without being called
// if the actor's context is destroyed.
//
// Thread safety: every member from any thread.
#pragma once

#include <boost/asio/async_result.hpp>
#include <memory>
#include <string>
#include <utility>

#include "actor_error.h"
#include "cell.h"
#include "reply.h"

namespace weir {

template <class Msg>
class ref {
 public:
  ref() = default;  // empty: may only be assigned to, compared and converted to bool
  explicit ref(std::shared_ptr<detail::cell<Msg>> c) noexcept : cell_(std::move(c)) {}

  // Sends a message. Never blocks. If the result is not ok, the message is destroyed.
  sent tell(Msg m) const { return cell_->tell(m); }

  // Sends the question Q{args..., reply}, and completes with void(error_code, Q::result): with the answer, or
  // with mailbox_full, mailbox_closed, no_reply or the error that the actor answered with.
  template <class Q, class Token, class... Args>
  auto ask(Token&& token, Args&&... args) const {
    using wait = typename reply<typename Q::result>::wait;
    using signature = typename detail::question<typename Q::result>::signature;
    auto initiate = [](auto handler, std::shared_ptr<detail::cell<Msg>> c, auto... a) {
      auto asker = wait::start(std::move(handler), c->where());
      if (!asker) return;
      const typename wait::alias same(asker);
      Msg m(Q{std::move(a)..., reply<typename Q::result>(std::move(asker))});
      const sent how = c->tell(m);
      if (how != sent::ok) {
        same.fail(how == sent::full ? actor_error::mailbox_full : actor_error::mailbox_closed);
      }
    };
    return boost::asio::async_initiate<Token, signature>(std::move(initiate), token, cell_,
                                                         std::forward<Args>(args)...);
  }

  // Sends a message, and waits while the mailbox is full, first come, first served. Completes with
  // void(error_code): success once m is in the mailbox, or mailbox_closed. After a cancellation, m is not
  // sent.
  template <class Token>
  auto async_tell(Msg m, Token&& token) const {
    auto initiate = [](auto handler, std::shared_ptr<detail::cell<Msg>> c, Msg m) {
      if (auto p = detail::pending<>::start(std::move(handler), c->where()))
        c->tell_when_room(std::move(m), std::move(p));
    };
    return boost::asio::async_initiate<Token, void(boost::system::error_code)>(std::move(initiate), token,
                                                                               cell_, std::move(m));
  }

  // Completes with void(error_code, exit_status) once the actor has ended; at once if it has ended already.
  template <class Token>
  auto async_join(Token&& token) const {
    auto initiate = [](auto handler, std::shared_ptr<detail::cell<Msg>> c) {
      if (auto p = detail::pending<exit_status>::start(std::move(handler), c->where())) c->join(std::move(p));
    };
    return boost::asio::async_initiate<Token, void(boost::system::error_code, exit_status)>(
        std::move(initiate), token, cell_);
  }

  // From now on messages are refused. The actor reads the messages that are there; then its async_receive
  // gives an empty optional.
  void stop() const { cell_->stop(); }
  // Cancels the operation that the body awaits, and drops unread messages.
  void kill() const { cell_->kill(); }

  std::size_t backlog() const noexcept { return cell_->backlog(); }  // unread messages
  const std::string& name() const noexcept { return cell_->opts().name; }

  explicit operator bool() const noexcept { return cell_ != nullptr; }
  friend bool operator==(const ref& a, const ref& b) noexcept { return a.cell_ == b.cell_; }

 private:
  std::shared_ptr<detail::cell<Msg>> cell_;
};

}  // namespace weir
