#include <atomic>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/post.hpp>
#include <memory>

#include "tests/bench/actors/asio/channel.h"
#include "tests/bench/actors/contexts.h"
#include "tests/bench/actors/programs.h"

namespace bench {

// The nearest thing to an idle actor in Asio alone: a coroutine that waits at a channel of its own.
void idle(const task& t) {
  contexts where(t.threads);
  std::vector<std::unique_ptr<channel<>>> all;
  all.reserve(t[0]);
  t.watch.start();
  for (std::uint64_t i = 0; i < t[0]; ++i) {
    all.push_back(std::make_unique<channel<>>(where.round_robin(i), mailbox));
    boost::asio::co_spawn(where.round_robin(i), receive_empty(*all.back(), 1), boost::asio::detached);
  }
  std::atomic<unsigned> busy = t.threads;
  for (std::uint64_t i = 0; i < t.threads; ++i) {
    boost::asio::post(where.round_robin(i), [&] {
      if (--busy > 0) return;
      t.weigh();
      for (const auto& box : all) box->try_send(boost::system::error_code());
    });
  }
  where.finish();
  t.watch.stop();
}

}  // namespace bench
