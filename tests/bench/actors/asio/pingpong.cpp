#include <boost/asio/post.hpp>

#include "tests/bench/actors/contexts.h"
#include "tests/bench/actors/programs.h"

namespace bench {
namespace {

struct table {
  contexts& where;
  contexts::executor_type ping, pong;
  std::uint64_t left;

  void again() {
    boost::asio::post(pong, [this] { boost::asio::post(ping, [this] { answered(); }); });
  }
  void answered() {
    if (--left > 0) return boost::asio::post(ping, [this] { again(); });
    where.release();
  }
};

}  // namespace

void pingpong(const task& t) {
  contexts where(t.threads);
  table game{where, where.round_robin(0), where.round_robin(1), t[0]};
  t.watch.start();
  boost::asio::post(game.ping, [&] { game.again(); });
  where.run();
  t.watch.stop();
}

}  // namespace bench
