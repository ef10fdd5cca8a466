// unstarted.h — an operation without its completion token yet: the result of async_receive and
// async_read_some that are called without a token.
//
// A coroutine can await it directly, without the frame of another coroutine, so `co_await
// self.async_receive()` is the cheapest form. It can be called with a token, like the result of
// boost::asio::deferred. Or it can race an awaitable, on one executor:
//
//   auto first = co_await (self.async_receive() || timer.async_wait(boost::asio::use_awaitable));
//
// Asio's own || spawns both sides. If the other side ends first, a message that async_receive has taken
// already is lost. This operator || loses no message: if one was taken, it is the result.
#pragma once

#include <boost/asio/async_result.hpp>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/deferred.hpp>
#include <boost/asio/experimental/parallel_group.hpp>
#include <boost/asio/this_coro.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/system/error_code.hpp>
#include <boost/system/system_error.hpp>
#include <exception>
#include <type_traits>
#include <utility>
#include <variant>

namespace weir {

// Value: the type of the result beside the error code. Start: starts the operation when called with the
// handler.
template <class Value, class Start>
class unstarted {
 public:
  explicit unstarted(Start s) noexcept : start_(std::move(s)) {}

  using signature = void(boost::system::error_code, Value);

  // The return type is written out because Asio tests with it whether a type is a completion token.
  template <class Token>
  auto operator()(Token&& token) && -> decltype(boost::asio::async_initiate<Token, signature>(
      std::declval<Start>(), token)) {
    return boost::asio::async_initiate<Token, signature>(std::move(start_), token);
  }

 private:
  Start start_;
};

template <class Value, class Start, class Executor>
boost::asio::awaitable<std::variant<Value, std::monostate>, Executor> operator||(
    unstarted<Value, Start> mine, boost::asio::awaitable<void, Executor> other) {
  const auto ex = co_await boost::asio::this_coro::executor;
  auto both = boost::asio::experimental::make_parallel_group(
      std::move(mine), boost::asio::co_spawn(ex, std::move(other), boost::asio::deferred));
  auto [order, error, value, other_error] = co_await std::move(both).async_wait(
      boost::asio::experimental::wait_for_one_success(), boost::asio::use_awaitable_t<Executor>());
  if (!error) co_return std::variant<Value, std::monostate>(std::in_place_index<0>, std::move(value));
  if (!other_error) co_return std::variant<Value, std::monostate>(std::in_place_index<1>);
  if (order[0] == 1) std::rethrow_exception(other_error);
  throw boost::system::system_error(error);
}

}  // namespace weir
