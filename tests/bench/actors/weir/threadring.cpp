// A ring of actors and one token, passed on until it has been passed often enough; then the exit follows it.
#include <variant>

#include "actors/runtime/actor.h"
#include "tests/bench/actors/contexts.h"
#include "tests/bench/actors/programs.h"

namespace bench {
namespace {

struct token {
  std::uint64_t left;
};
struct leave {
  std::uint64_t left;
};
struct neighbour;
using message = std::variant<token, leave, neighbour>;
struct neighbour {
  weir::ref<message> next;
};

boost::asio::awaitable<void> member(weir::context<message> self, std::uint64_t members) {
  weir::ref<message> next;
  while (auto m = co_await self.async_receive()) {
    if (auto* n = std::get_if<neighbour>(&*m)) {
      next = n->next;
    } else if (auto* t = std::get_if<token>(&*m)) {
      next.tell(t->left > 0 ? message(token{t->left - 1}) : message(leave{members - 1}));
    } else {
      const auto left = std::get<leave>(*m).left;
      if (left > 0) next.tell(leave{left - 1});
      break;
    }
  }
}

}  // namespace

void threadring(const task& t) {
  contexts where(t.threads);
  std::vector<weir::ref<message>> ring;
  t.watch.start();
  for (std::uint64_t i = 0; i < t[0]; ++i) {
    ring.push_back(weir::spawn<message>(where.by_block(i, t[0]), {.mailbox = 4},
                                        [n = t[0]](weir::context<message> self) { return member(self, n); }));
  }
  for (std::uint64_t i = 0; i < t[0]; ++i) ring[i].tell(neighbour{ring[(i + 1) % t[0]]});
  ring[0].tell(token{t[1]});
  where.finish();
  t.watch.stop();
}

}  // namespace bench
