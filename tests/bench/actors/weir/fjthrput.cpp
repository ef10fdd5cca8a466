// One actor gives work to many others, round-robin, one message at a time; nobody answers.
#include "actors/runtime/actor.h"
#include "tests/bench/actors/contexts.h"
#include "tests/bench/actors/programs.h"
#include "tests/bench/actors/work.h"

namespace bench {
namespace {

struct message {};
struct nothing {};

boost::asio::awaitable<void> work(weir::context<message> self, std::uint64_t expected) {
  for (; expected > 0; --expected) {
    const auto m = co_await self.async_receive();
    expect(m && compute(37.2) > 0, "a message is missing");
  }
}

boost::asio::awaitable<void> give(std::vector<weir::ref<message>> to, std::uint64_t messages) {
  for (; messages > 0; --messages) {
    for (const auto& a : to) {
      if (a.tell(message()) == weir::sent::ok) continue;
      co_await a.async_tell(message(), boost::asio::use_awaitable);
    }
  }
}

}  // namespace

void fjthrput(const task& t) {
  contexts where(t.threads);
  std::vector<weir::ref<message>> to;
  t.watch.start();
  for (std::uint64_t i = 0; i < t[1]; ++i) {
    to.push_back(weir::spawn<message>(where.round_robin(i), {},
                                      [n = t[0]](weir::context<message> self) { return work(self, n); }));
  }
  weir::spawn<nothing>(where.round_robin(t[1]), {},
                       [=, n = t[0]](weir::context<nothing>) { return give(to, n); });
  where.finish();
  t.watch.stop();
}

}  // namespace bench
