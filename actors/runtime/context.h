// context.h — what an actor's body is handed: its own end of the mailbox.
//
//   boost::asio::awaitable<void> counter(weir::context<message> self) {
//     while (auto m = co_await self.async_receive()) use(*m);
//   }
//
// Thread safety: the body's alone, on the actor's executor.
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

  // Completes with void(error_code, std::optional<Msg>): the next message, or nothing once the actor was
  // stopped and all mail in front of the stop has been read. Cancelling (or kill) completes with
  // operation_aborted and loses no mail. One at a time.
  auto async_receive() { return unstarted<std::optional<Msg>, receive>(receive(cell_)); }
  template <class Token>
  auto async_receive(Token&& token) {
    return async_receive()(std::forward<Token>(token));
  }

  // What is there now, without suspending: how an owner drains its mail between two steps.
  std::optional<Msg> try_receive() { return cell_->try_receive(); }

  // Puts m into this actor's own mailbox after a while, full or not, unless the body has ended by then.
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

  // Defined in spawn.h: a child, on this actor's executor, which the actor outlives.
  template <class M, class Body>
  ref<M> spawn(options o, Body body);

  // True from the moment of stop() or kill(), whatever mail is still unread.
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
