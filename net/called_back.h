// called_back.h — waits, in a coroutine, for a call that takes a callback.
//
// Thread safety: the coroutine goes on where the callback is called: on its shard, where calls of the service
// are given the shard's executor.
#pragma once

#include <boost/asio/async_result.hpp>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <memory>
#include <utility>

namespace weir::net {

// Calls begin(callback) and waits until callback(T) is called.
template <class T, class Begin>
boost::asio::awaitable<T> called_back(Begin& begin) {
  auto initiate = [&begin](auto handler) {
    auto shared =
        std::make_shared<decltype(handler)>(std::move(handler));  // a std::function has to be copyable
    begin([shared](T value) { std::move (*shared)(std::move(value)); });
  };
  co_return co_await boost::asio::async_initiate<const boost::asio::use_awaitable_t<>, void(T)>(
      initiate, boost::asio::use_awaitable);
}

}  // namespace weir::net
