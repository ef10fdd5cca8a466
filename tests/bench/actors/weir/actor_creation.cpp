// A binary tree of actors: each tells its children to spread, adds up what they say and tells its parent.
#include <variant>

#include "actors/runtime/actor.h"
#include "tests/bench/actors/programs.h"
#include "tests/bench/actors/weir/places.h"

namespace bench {
namespace {

struct spread {
  std::uint64_t depth;
};
struct actors {
  std::uint64_t n;
};
using message = std::variant<spread, actors>;

// While a generation has fewer nodes than there are contexts, its children are spread over the contexts. All
// later nodes stay on the context of their parent.
struct node {
  places& where;
  std::uint64_t index;  // in its generation
  std::uint64_t generation;
  weir::ref<message> parent;
  std::uint64_t& total;

  boost::asio::awaitable<void> operator()(weir::context<message> self) {
    const auto order = co_await self.async_receive();
    const auto depth = std::get<spread>(*order).depth;
    std::uint64_t n = 1;
    if (depth > 1) {
      child(self, 2 * index).tell(spread{depth - 1});
      child(self, 2 * index + 1).tell(spread{depth - 1});
      for (int i = 0; i < 2; ++i) {
        const auto m = co_await self.async_receive();
        n += std::get<actors>(*m).n;
      }
    }
    if (parent) {
      parent.tell(actors{n});
    } else {
      total = n;
    }
  }

  weir::ref<message> child(weir::context<message>& self, std::uint64_t i) {
    const bool few = generation < where.size() && (std::size_t(1) << generation) < where.size();
    boost::asio::any_io_executor here = self.get_executor();
    if (few) here = where.round_robin(i);
    return weir::spawn<message>(here, {.mailbox = 4}, node{where, i, generation + 1, self.self(), total});
  }
};

}  // namespace

void actor_creation(const task& t) {
  places where(t);
  std::uint64_t total = 0;
  t.watch.start();
  const auto root = weir::spawn<message>(where.round_robin(0), {.mailbox = 4}, node{where, 0, 0, {}, total});
  root.tell(spread{t[0]});
  root.async_join([&](auto&&...) { where.release(); });
  where.run();
  t.watch.stop();
  expect(total == (std::uint64_t(1) << t[0]) - 1, "actors are missing");
}

}  // namespace bench
