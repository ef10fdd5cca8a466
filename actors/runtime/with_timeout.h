// with_timeout.h — an operation with a time limit, for coroutines.
//
//   int n = co_await weir::with_timeout(5s, counter.ask<get>(boost::asio::deferred));
//
// Returns the result of the operation, or throws its error, or timed_out. At the time limit the operation is
// cancelled, and its end is awaited, so that nothing of it continues to run. Asio has this as cancel_after
// from Boost 1.86 on.
//
// Thread safety: called in a coroutine.
#pragma once

#include <boost/asio/awaitable.hpp>
#include <boost/asio/basic_waitable_timer.hpp>
#include <boost/asio/deferred.hpp>
#include <boost/asio/experimental/parallel_group.hpp>
#include <boost/asio/this_coro.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/system/error_code.hpp>
#include <boost/system/system_error.hpp>
#include <chrono>
#include <tuple>
#include <type_traits>
#include <utility>

#include "actor_error.h"

namespace weir {

namespace detail {

// (order, operation's error, its values..., timer's error) -> the values
template <class Order, class... Rest>
auto in_time(std::tuple<Order, boost::system::error_code, Rest...> all) {
  constexpr std::size_t values = sizeof...(Rest) - 1;
  const auto error = std::get<1>(all);
  if (error) {
    const bool late = std::get<0>(all)[0] == 1;
    throw boost::system::system_error(late ? make_error_code(actor_error::timed_out) : error);
  }
  if constexpr (values == 0) {
    return;
  } else if constexpr (values == 1) {
    return std::get<2>(std::move(all));
  } else {
    return [&]<std::size_t... I>(std::index_sequence<I...>) {
      return std::make_tuple(std::get<2 + I>(std::move(all))...);
    }
    (std::make_index_sequence<values>());
  }
}

template <class Clock, class Op>
auto race(boost::asio::basic_waitable_timer<Clock>& timer, Op op) {
  return boost::asio::experimental::make_parallel_group(std::move(op),
                                                        timer.async_wait(boost::asio::deferred))
      .async_wait(boost::asio::experimental::wait_for_one(), boost::asio::use_awaitable);
}

template <class Race>
struct race_result;
template <class T>
struct race_result<boost::asio::awaitable<T>> {
  using type = decltype(in_time(std::declval<T>()));
};

}  // namespace detail

// op: an operation with the completion token boost::asio::deferred and a signature void(error_code, ...).
template <class Clock = std::chrono::steady_clock, class Rep, class Period, class Op>
auto with_timeout(std::chrono::duration<Rep, Period> limit, Op op)
    -> boost::asio::awaitable<typename detail::race_result<decltype(detail::race(
        std::declval<boost::asio::basic_waitable_timer<Clock>&>(), std::declval<Op>()))>::type> {
  using timer_type = boost::asio::basic_waitable_timer<Clock>;
  const auto ex = co_await boost::asio::this_coro::executor;
  timer_type timer(ex, std::chrono::duration_cast<typename timer_type::duration>(limit));
  auto all = co_await detail::race(timer, std::move(op));
  co_return detail::in_time(std::move(all));
}

}  // namespace weir
