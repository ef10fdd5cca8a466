// spawn.h — starts an actor on the caller's executor.
//
// The body is a callable: awaitable<void>(context<Msg>). Nothing of it runs inside spawn(). The actor is
// outstanding work on its executor until it ends; all of it runs there, so the executor must run one handler
// at a time (an io_context run by one thread, or a strand).
#pragma once

#include <boost/asio/awaitable.hpp>
#include <boost/asio/co_spawn.hpp>
#include <concepts>
#include <memory>
#include <optional>
#include <type_traits>
#include <utility>

#include "cell.h"
#include "context.h"
#include "ref.h"

namespace weir {

namespace detail {
// The body lives until its coroutine's frame is gone: a lambda's captures are safe to use in it.
template <class Msg, class Body>
class cell_of final : public cell<Msg> {
 public:
  using action = typename cell<Msg>::body_action;

  cell_of(boost::asio::any_io_executor ex, options o, Body body)
      : cell<Msg>(std::move(ex), std::move(o), &cell_of::perform), body_(std::move(body)) {}

 private:
  static void perform(cell<Msg>& c, action what) {
    auto& self = static_cast<cell_of&>(c);
    if (what == action::launch) return self.launch();
    self.body_.reset();
  }

  void launch() {
    auto start = [self = this->self(), this] {
      return this->begin() ? (*body_)(context<Msg>(self)) : nothing();
    };
    boost::asio::co_spawn(this->get_executor(), std::move(start), typename cell<Msg>::exit_guard(*this));
  }

  static boost::asio::awaitable<void> nothing() { co_return; }

  std::optional<Body> body_;
};
}  // namespace detail

template <class Msg, class Body>
requires std::same_as<std::invoke_result_t<Body&, context<Msg>>, boost::asio::awaitable<void>> ref<Msg> spawn(
    boost::asio::any_io_executor where, options o, Body body) {
  auto c = std::make_shared<detail::cell_of<Msg, Body>>(std::move(where), std::move(o), std::move(body));
  c->start();
  return ref<Msg>(std::move(c));
}

}  // namespace weir
