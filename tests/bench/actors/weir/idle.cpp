// Actors that wait for mail which never comes: what one of them weighs.
#include <atomic>

#include "actors/runtime/actor.h"
#include "tests/bench/actors/contexts.h"
#include "tests/bench/actors/programs.h"

namespace bench {
namespace {

struct message {};

boost::asio::awaitable<void> wait(weir::context<message> self) { co_await self.async_receive(); }

}  // namespace

void idle(const task& t) {
  contexts where(t.threads);
  std::vector<weir::ref<message>> all;
  all.reserve(t[0]);
  t.watch.start();
  for (std::uint64_t i = 0; i < t[0]; ++i) {
    all.push_back(weir::spawn<message>(where.round_robin(i), {}, wait));
  }
  std::atomic<unsigned> busy = t.threads;
  for (std::uint64_t i = 0; i < t.threads; ++i) {
    boost::asio::post(where.round_robin(i), [&] {  // after the last actor of this context has begun to wait
      if (--busy > 0) return;
      t.weigh();
      for (const auto& a : all) a.stop();
    });
  }
  where.finish();
  t.watch.stop();
}

}  // namespace bench
