// One actor counts what another sends; the last message asks how many there were.
#include <variant>

#include "actors/runtime/actor.h"
#include "tests/bench/actors/contexts.h"
#include "tests/bench/actors/programs.h"

namespace bench {
namespace {

struct increment {};
struct retrieve {
  using result = std::uint64_t;
  explicit retrieve(weir::reply<result> r) : done(std::move(r)) {}
  weir::reply<result> done;
};
using message = std::variant<increment, retrieve>;

boost::asio::awaitable<void> counter(weir::context<message> self) {
  std::uint64_t n = 0;
  while (auto m = co_await self.async_receive()) {
    do {
      if (auto* r = std::get_if<retrieve>(&*m)) {
        r->done(n);
      } else {
        ++n;
      }
    } while ((m = self.try_receive()));
  }
}

struct nothing {};

boost::asio::awaitable<void> produce(weir::ref<message> to, std::uint64_t n) {
  for (std::uint64_t i = 0; i < n; ++i) {
    if (to.tell(increment()) == weir::sent::ok) continue;
    co_await to.async_tell(increment(), boost::asio::use_awaitable);
  }
  const auto counted = co_await to.ask<retrieve>(boost::asio::use_awaitable);
  expect(counted == n, "messages are missing");
  to.stop();
}

}  // namespace

void count(const task& t) {
  contexts where(t.threads);
  t.watch.start();
  const auto to = weir::spawn<message>(where.round_robin(1), {}, counter);
  weir::spawn<nothing>(where.round_robin(0), {},
                       [=, n = t[0]](weir::context<nothing>) { return produce(to, n); });
  where.finish();
  t.watch.stop();
}

}  // namespace bench
