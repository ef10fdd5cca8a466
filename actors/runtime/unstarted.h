// unstarted.h — an operation that still lacks its completion token: what async_receive and async_read_some
// give where none is named.
//
// A coroutine awaits it without a frame in between, so `co_await self.async_receive()` costs least. Or it is
// given a token, as boost::asio::deferred's result is; or it races an awaitable:
//
//   auto first = co_await (self.async_receive() || timer.async_wait(boost::asio::use_awaitable));
//
// Asio's own || spawns both sides, and a message that one side has already taken is lost where the other
// side's end is heard first. Here it is not: what was taken wins. (Both sides run on one executor.)
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

// Value: what comes with the error code. Start: called with the handler, once.
template <class Value, class Start>
class unstarted {
 public:
  explicit unstarted(Start s) noexcept : start_(std::move(s)) {}

  using signature = void(boost::system::error_code, Value);

  // The return type is spelled out so that Asio can ask whether something is a token.
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
