// ref.h — how everybody else sees an actor: a place to send to.
//
// Thread safety: every member from any thread; copies are cheap and may outlive the actor and its context.
// A ref does not keep the actor running. Handlers without an executor of their own run on the actor's; they
// are destroyed unrun where its context is gone.
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
  ref() = default;  // empty: may only be assigned to, compared and tested
  explicit ref(std::shared_ptr<detail::cell<Msg>> c) noexcept : cell_(std::move(c)) {}

  // Never blocks. Where it does not say ok the message is destroyed.
  sent tell(Msg m) const { return cell_->tell(m); }

  // Builds Q{args..., reply} inside the mailbox's side, and completes with void(error_code, Q::result): the
  // answer, or mailbox_full, mailbox_closed, no_reply, or whatever error the actor answered with.
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

  // Waits for room: completes with void(error_code) once m is in the mailbox (first come, first served), or
  // with mailbox_closed. Cancelling takes m back.
  template <class Token>
  auto async_tell(Msg m, Token&& token) const {
    auto initiate = [](auto handler, std::shared_ptr<detail::cell<Msg>> c, Msg m) {
      if (auto p = detail::pending<>::start(std::move(handler), c->where()))
        c->tell_when_room(std::move(m), std::move(p));
    };
    return boost::asio::async_initiate<Token, void(boost::system::error_code)>(std::move(initiate), token,
                                                                               cell_, std::move(m));
  }

  // Completes with void(error_code, exit_status) once the actor has ended; at once where it has already.
  template <class Token>
  auto async_join(Token&& token) const {
    auto initiate = [](auto handler, std::shared_ptr<detail::cell<Msg>> c) {
      if (auto p = detail::pending<exit_status>::start(std::move(handler), c->where())) c->join(std::move(p));
    };
    return boost::asio::async_initiate<Token, void(boost::system::error_code, exit_status)>(
        std::move(initiate), token, cell_);
  }

  // No more mail is taken; the actor reads what is there, then its async_receive gives nothing.
  void stop() const { cell_->stop(); }
  // Cancels whatever the body awaits; unread mail is dropped.
  void kill() const { cell_->kill(); }

  std::size_t backlog() const noexcept { return cell_->backlog(); }
  const std::string& name() const noexcept { return cell_->opts().name; }

  explicit operator bool() const noexcept { return cell_ != nullptr; }
  friend bool operator==(const ref& a, const ref& b) noexcept { return a.cell_ == b.cell_; }

 private:
  std::shared_ptr<detail::cell<Msg>> cell_;
};

}  // namespace weir
