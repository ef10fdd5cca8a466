// lasting_coroutine.h — a coroutine that goes on where memory is missing for what it waits for.
//
// Asio destroys a coroutine when memory is missing for the operation that it waits for: an accepted socket
// that cannot be registered, a timer for which the list of timers cannot grow. No exception is thrown in the
// coroutine, so the coroutine cannot go on by itself.
//
// Thread safety: any thread. The coroutine runs on its executor.
#pragma once

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/awaitable.hpp>
#include <functional>

namespace weir::net {

// Runs the coroutine that `body` returns. If it is destroyed or throws, `body` is called again 10 ms later.
// The thread sleeps in between, since a timer would need memory. `body` is destroyed once the coroutine has
// ended, or with the context of `ex`.
void spawn_lasting(const boost::asio::any_io_executor& ex,
                   std::function<boost::asio::awaitable<void>()> body);

}  // namespace weir::net
