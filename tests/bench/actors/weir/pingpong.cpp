// Two actors and one message between them, plus the one that ping sends itself before each ping.
#include "actors/runtime/actor.h"
#include "tests/bench/actors/contexts.h"
#include "tests/bench/actors/programs.h"

namespace bench {
namespace {

struct to_pong;
struct to_ping {
  bool again;  // true: ping's message to itself; false: pong's answer
  weir::ref<to_pong> from;
};
struct to_pong {
  weir::ref<to_ping> from;
};

boost::asio::awaitable<void> ping(weir::context<to_ping> self, weir::ref<to_pong> pong, std::uint64_t pings) {
  while (auto m = co_await self.async_receive()) {
    if (m->again) {
      pong.tell(to_pong{self.self()});
    } else if (--pings > 0) {
      self.self().tell(to_ping{true, {}});
    } else {
      break;
    }
  }
  pong.stop();
}

boost::asio::awaitable<void> pong(weir::context<to_pong> self) {
  while (auto m = co_await self.async_receive()) m->from.tell(to_ping{false, self.self()});
}

}  // namespace

void pingpong(const task& t) {
  contexts where(t.threads);
  t.watch.start();
  const auto other = weir::spawn<to_pong>(where.round_robin(1), {}, pong);
  const auto first = weir::spawn<to_ping>(
      where.round_robin(0), {}, [=, n = t[0]](weir::context<to_ping> self) { return ping(self, other, n); });
  first.tell(to_ping{true, {}});
  where.finish();
  t.watch.stop();
}

}  // namespace bench
