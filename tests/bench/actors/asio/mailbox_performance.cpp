#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>

#include "tests/bench/actors/asio/channel.h"
#include "tests/bench/actors/contexts.h"
#include "tests/bench/actors/programs.h"

namespace bench {

void mailbox_performance(const task& t) {
  contexts where(t.threads);
  channel<> box(where.round_robin(0), mailbox);
  t.watch.start();
  boost::asio::co_spawn(where.round_robin(0), receive_empty(box, t[0] * t[1]), boost::asio::detached);
  for (std::uint64_t i = 0; i < t[0]; ++i) {
    boost::asio::co_spawn(where.round_robin(i + 1), send_empty(box, t[1]), boost::asio::detached);
  }
  where.finish();
  t.watch.stop();
}

}  // namespace bench
