// Everybody talks to everybody: each actor pings others at random, one at a time, and answers their pings.
#include <variant>

#include "actors/runtime/actor.h"
#include "tests/bench/actors/contexts.h"
#include "tests/bench/actors/programs.h"
#include "tests/bench/actors/work.h"

namespace bench {
namespace {

struct ping {
  std::uint64_t from;
};
struct pong {
  std::uint64_t from;
};
struct neighbours;
using message = std::variant<ping, pong, neighbours>;
struct neighbours {
  std::vector<weir::ref<message>> all;
};
struct done {};

boost::asio::awaitable<void> talk(weir::context<message> self, std::uint64_t id, std::uint64_t pings,
                                  weir::ref<done> sink) {
  small_random random(id);
  std::uint64_t asked = id;
  std::vector<weir::ref<message>> others;
  while (auto m = co_await self.async_receive()) {
    if (auto* question = std::get_if<ping>(&*m)) {
      others[question->from].tell(pong{id});
    } else if (auto* answer = std::get_if<pong>(&*m)) {
      expect(answer->from == asked, "an answer from somebody else");
      if (pings-- == 0) {
        sink.tell(done());
      } else {
        asked = random.next() % others.size();
        others[asked].tell(ping{id});
      }
    } else {
      others = std::move(std::get<neighbours>(*m).all);
    }
  }
}

boost::asio::awaitable<void> wait_for_all(weir::context<done> self, std::vector<weir::ref<message>>& all,
                                          std::uint64_t n) {
  for (; n > 0; --n) co_await self.async_receive();
  for (const auto& a : all) a.stop();
}

}  // namespace

void big(const task& t) {
  contexts where(t.threads);
  const std::uint64_t actors = t[1];
  std::vector<weir::ref<message>> all;
  t.watch.start();
  const auto sink =
      weir::spawn<done>(where.round_robin(0), {.mailbox = actors},
                        [&](weir::context<done> self) { return wait_for_all(self, all, actors); });
  for (std::uint64_t i = 0; i < actors; ++i) {
    const auto body = [=, pings = t[0]](weir::context<message> self) { return talk(self, i, pings, sink); };
    all.push_back(weir::spawn<message>(where.round_robin(i), {.mailbox = 2 * actors + 2}, body));
  }
  for (const auto& a : all) a.tell(neighbours{all});
  for (std::uint64_t i = 0; i < actors; ++i) all[i].tell(pong{i});
  where.finish();
  t.watch.stop();
}

}  // namespace bench
