#include <boost/asio/post.hpp>
#include <memory>

#include "tests/bench/actors/contexts.h"
#include "tests/bench/actors/programs.h"

namespace bench {
namespace {

// An object that lives until both children have told it how many they were.
struct node {
  contexts& where;
  contexts::executor_type ex;
  node* parent;
  std::uint64_t& total;
  std::uint64_t generation, index;
  std::uint64_t n = 1, waiting = 2;

  void spread(std::uint64_t depth) {
    if (depth == 1) return tell();
    const bool few = generation < where.size() && (std::size_t(1) << generation) < where.size();
    for (std::uint64_t i = 2 * index; i < 2 * index + 2; ++i) {
      auto* child = new node{where, few ? where.round_robin(i) : ex, this, total, generation + 1, i};
      boost::asio::post(child->ex, [=] { child->spread(depth - 1); });
    }
  }
  void add(std::uint64_t actors) {
    n += actors;
    if (--waiting == 0) tell();
  }
  void tell() {
    const std::unique_ptr<node> self(this);
    if (parent) return boost::asio::post(parent->ex, [to = parent, n = n] { to->add(n); });
    total = n;
    where.release();
  }
};

}  // namespace

void actor_creation(const task& t) {
  contexts where(t.threads);
  std::uint64_t total = 0;
  t.watch.start();
  auto* root = new node{where, where.round_robin(0), nullptr, total, 0, 0};
  boost::asio::post(root->ex, [&] { root->spread(t[0]); });
  where.run();
  t.watch.stop();
  expect(total == (std::uint64_t(1) << t[0]) - 1, "actors are missing");
}

}  // namespace bench
