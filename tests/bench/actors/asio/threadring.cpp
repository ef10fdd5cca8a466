#include <boost/asio/post.hpp>

#include "tests/bench/actors/contexts.h"
#include "tests/bench/actors/programs.h"

namespace bench {
namespace {

struct member {
  contexts& where;
  contexts::executor_type ex;
  member* next;

  void pass(std::uint64_t left) {
    boost::asio::post(next->ex, [to = next, left] {
      if (left == 0) return to->where.release();
      to->pass(left - 1);
    });
  }
};

}  // namespace

void threadring(const task& t) {
  contexts where(t.threads);
  std::vector<member> ring;
  t.watch.start();
  for (std::uint64_t i = 0; i < t[0]; ++i) ring.push_back({where, where.by_block(i, t[0]), nullptr});
  for (std::uint64_t i = 0; i < t[0]; ++i) ring[i].next = &ring[(i + 1) % t[0]];
  ring.back().pass(t[1]);
  where.run();
  t.watch.stop();
}

}  // namespace bench
