// channel.h — Asio's own bounded mailbox, as its documentation uses it.
#pragma once

#include <boost/asio/awaitable.hpp>
#include <boost/asio/experimental/concurrent_channel.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/system/error_code.hpp>
#include <cstdint>

namespace bench {

template <class... Message>
using channel = boost::asio::experimental::concurrent_channel<void(boost::system::error_code, Message...)>;

constexpr std::size_t mailbox = 1024;  // as weir's default

// Sends where there is room; waits for it where there is none.
inline boost::asio::awaitable<void> send_empty(channel<>& to, std::uint64_t n) {
  for (; n > 0; --n) {
    if (to.try_send(boost::system::error_code())) continue;
    co_await to.async_send(boost::system::error_code(), boost::asio::use_awaitable);
  }
}

inline boost::asio::awaitable<void> receive_empty(channel<>& from, std::uint64_t n) {
  for (; n > 0; --n) {
    if (from.try_receive([](boost::system::error_code) {})) continue;
    co_await from.async_receive(boost::asio::use_awaitable);
  }
}

}  // namespace bench
