#include <atomic>
#include <boost/asio/post.hpp>

#include "tests/bench/actors/contexts.h"
#include "tests/bench/actors/programs.h"
#include "tests/bench/actors/work.h"

namespace bench {
namespace {

struct talker {
  contexts& where;
  contexts::executor_type ex;
  std::vector<talker>& all;
  std::uint64_t pings;
  std::atomic<std::uint64_t>& talking;
  small_random random;

  void ping() {
    if (pings-- == 0) {
      if (--talking == 0) where.release();
      return;
    }
    talker& other = all[random.next() % all.size()];
    boost::asio::post(other.ex, [&other, this] { other.answer(*this); });
  }
  void answer(talker& to) {
    boost::asio::post(to.ex, [&to] { to.ping(); });
  }
};

}  // namespace

void big(const task& t) {
  contexts where(t.threads);
  std::vector<talker> all;
  std::atomic<std::uint64_t> talking = t[1];
  t.watch.start();
  for (std::uint64_t i = 0; i < t[1]; ++i) {
    all.push_back({where, where.round_robin(i), all, t[0], talking, small_random(i)});
  }
  for (talker& a : all) boost::asio::post(a.ex, [&a] { a.ping(); });
  where.run();
  t.watch.stop();
}

}  // namespace bench
