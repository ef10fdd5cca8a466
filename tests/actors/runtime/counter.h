// counter.h — the actor that the tests talk to: adds, answers, and drops questions when told to.
#pragma once

#include <boost/asio/awaitable.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <exception>
#include <utility>
#include <variant>

#include "actors/runtime/actor.h"

namespace weir::tests {

namespace net = boost::asio;
using error_code = boost::system::error_code;

struct add {
  int n;
};
struct get {
  using result = int;
  explicit get(reply<int> r) : done(std::move(r)) {}
  reply<int> done;
};
struct scale {  // a question with an argument and an error of its own
  using result = int;
  scale(int by, reply<int> r) : by(by), done(std::move(r)) {}
  int by;
  reply<int> done;
};
struct lose {
  using result = void;
  explicit lose(reply<> r) : done(std::move(r)) {}
  reply<> done;
};
struct fail {};
using message = std::variant<add, get, scale, lose, fail>;

inline net::awaitable<void> count(context<message> self) {
  int sum = 0;
  while (auto m = co_await self.async_receive()) {
    if (auto* a = std::get_if<add>(&*m)) sum += a->n;
    if (auto* g = std::get_if<get>(&*m)) g->done(sum);
    if (auto* s = std::get_if<scale>(&*m)) {
      if (s->by == 0) {
        s->done.fail(net::error::invalid_argument);
      } else {
        s->done(sum * s->by);
      }
    }
    if (std::holds_alternative<fail>(*m)) throw std::runtime_error("told to");
  }
}

// Runs a coroutine on ex; what it throws fails the test.
template <class Executor, class F>
void go(Executor ex, F body) {
  net::co_spawn(ex, std::move(body), [](std::exception_ptr e) {
    if (e) std::rethrow_exception(e);
  });
}

}  // namespace weir::tests
