// context.h — the argument of an actor's body: the actor's own interface to its mailbox, timers and children.
//
//   boost::asio::awaitable<void> counter(weir::context<message> self) {
//     while (auto m = co_await self.async_receive()) use(*m);
//   }
//
// Thread safety: used by the body only, on the actor's executor.
#pragma once

#include <boost/asio/basic_waitable_timer.hpp>
#include <boost/asio/bind_cancellation_slot.hpp>
#include <chrono>
#include <memory>
#include <optional>
#include <utility>

#include "cell.h"
#include "ref.h"
#include "unstarted.h"

namespace weir {

template <class Msg>
class context {
 public:
  using executor_type = boost::asio::any_io_executor;

  explicit context(std::shared_ptr<detail::cell<Msg>> c) noexcept : cell_(std::move(c)) {}

  executor_type get_executor() const noexcept { return cell_->get_executor(); }
  ref<Msg> self() const { return ref<Msg>(cell_); }

  // Completes with void(error_code, std::optional<Msg>): the next message, or an empty optional once the
  // actor was stopped and all messages from before the stop have been read. A cancellation completes it with
  // operation_aborted and loses no message. kill() completes it with operation_aborted too, and unread
  // messages are dropped. Only one receive may be pending.
  auto async_receive() { return unstarted<std::optional<Msg>, receive>(receive(cell_)); }
  template <class Token>
  auto async_receive(Token&& token) {
    return async_receive()(std::forward<Token>(token));
  }

  // The next message if there is one, without suspending. An owner reads its messages between two steps this
  // way.
  std::optional<Msg> try_receive() { return cell_->try_receive(); }

  // Puts m into this actor's own mailbox after `delay`, even if the mailbox is full. No effect if the body
  // has ended by then.
  template <class Clock = std::chrono::steady_clock, class Rep, class Period>
  void send_after(std::chrono::duration<Rep, Period> delay, Msg m) {
    using timer = boost::asio::basic_waitable_timer<Clock>;
    auto t =
        std::make_unique<timer>(get_executor(), std::chrono::duration_cast<typename timer::duration>(delay));
    auto& waits = *t;
    const auto alarm = cell_->owned().set_alarm();
    auto ring = [t = std::move(t), c = cell_, alarm, m = std::move(m)](boost::system::error_code ec) mutable {
      c->owned().unset(alarm);
      if (!ec) c->remind(std::move(m));
    };
    waits.async_wait(boost::asio::bind_cancellation_slot(alarm->slot(), std::move(ring)));
  }

  // Starts a child actor on this actor's executor. The child ends before this actor does. Defined in spawn.h.
  template <class M, class Body>
  ref<M> spawn(options o, Body body);

  // True once stop() or kill() was called, even if messages are still unread.
  bool stopping() const noexcept { return cell_->stopping(); }

 private:
  struct receive {
    explicit receive(std::shared_ptr<detail::cell<Msg>> c) noexcept : cell(std::move(c)) {}
    template <class Handler>
    void operator()(Handler handler) {
      cell->receive(std::move(handler));
    }
    std::shared_ptr<detail::cell<Msg>> cell;
  };

  std::shared_ptr<detail::cell<Msg>> cell_;
};

}  // namespace weir
