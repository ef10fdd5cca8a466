// Many senders, one receiver, whose mailbox is bounded: a sender that finds it full waits for room.
#include "actors/runtime/actor.h"
#include "tests/bench/actors/contexts.h"
#include "tests/bench/actors/programs.h"

namespace bench {
namespace {

struct message {};

boost::asio::awaitable<void> receive(weir::context<message> self, std::uint64_t expected) {
  while (expected > 0) {
    const auto m = co_await self.async_receive();
    if (!m) break;
    for (--expected; expected > 0 && self.try_receive(); --expected) {
    }
  }
}

boost::asio::awaitable<void> send(weir::ref<message> to, std::uint64_t n) {
  for (; n > 0; --n) {
    if (to.tell(message()) == weir::sent::ok) continue;
    co_await to.async_tell(message(), boost::asio::use_awaitable);
  }
}

struct nothing {};

}  // namespace

void mailbox_performance(const task& t) {
  contexts where(t.threads);
  t.watch.start();
  const auto receiver = weir::spawn<message>(
      where.round_robin(0), {}, [n = t[0] * t[1]](weir::context<message> self) { return receive(self, n); });
  for (std::uint64_t i = 0; i < t[0]; ++i) {
    weir::spawn<nothing>(where.round_robin(i + 1), {},
                         [=, n = t[1]](weir::context<nothing>) { return send(receiver, n); });
  }
  where.finish();
  t.watch.stop();
  expect(receiver.backlog() == 0, "messages are left");
}

}  // namespace bench
