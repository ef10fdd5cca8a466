#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>

#include "tests/bench/actors/asio/channel.h"
#include "tests/bench/actors/contexts.h"
#include "tests/bench/actors/programs.h"

namespace bench {

// The receiver knows how many messages to expect: a channel of one type has no message for the last question.
void count(const task& t) {
  contexts where(t.threads);
  channel<> box(where.round_robin(1), mailbox);
  t.watch.start();
  boost::asio::co_spawn(where.round_robin(1), receive_empty(box, t[0]), boost::asio::detached);
  boost::asio::co_spawn(where.round_robin(0), send_empty(box, t[0]), boost::asio::detached);
  where.finish();
  t.watch.stop();
}

}  // namespace bench
