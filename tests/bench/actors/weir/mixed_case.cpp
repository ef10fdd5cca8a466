// Rings that pass a token round, are thrown away and made again, while every ring's master keeps a thread
// busy with a factorisation: actor creation, messages and computation at once.
#include <memory>
#include <variant>

#include "actors/runtime/actor.h"
#include "tests/bench/actors/programs.h"
#include "tests/bench/actors/weir/places.h"
#include "tests/bench/actors/work.h"

namespace bench {
namespace {

struct token {
  std::uint64_t value;
};
struct factors {
  std::vector<std::uint64_t> found;
};
struct done {};
using report = std::variant<factors, done>;
struct problem {
  std::uint64_t n;
};

boost::asio::awaitable<void> link(weir::context<token> self, weir::ref<token> next) {
  while (auto m = co_await self.async_receive()) {
    next.tell(*m);
    if (m->value == 0) break;
  }
}

boost::asio::awaitable<void> factoriser(weir::context<problem> self, weir::ref<report> to) {
  while (auto m = co_await self.async_receive()) to.tell(factors{factorise(m->n)});
}

struct master {
  std::uint64_t ring_size, first_value, repetitions;
  weir::ref<problem> worker;
  weir::ref<report> supervisor;

  boost::asio::awaitable<void> operator()(weir::context<token> self) {
    for (std::uint64_t i = 0; i < repetitions; ++i) {
      if (worker) worker.tell(problem{factor_1 * factor_2});
      const auto next = ring(self);
      next.tell(token{first_value});
      while (auto m = co_await self.async_receive()) {
        if (m->value == 0) break;
        next.tell(token{m->value - 1});
      }
    }
    if (worker) worker.stop();
    supervisor.tell(done());
  }

  weir::ref<token> ring(weir::context<token>& self) const {
    auto next = self.self();
    for (std::uint64_t i = 1; i < ring_size; ++i) {
      next = weir::spawn<token>(self.get_executor(), {.mailbox = 4},
                                [next](weir::context<token> self) { return link(self, next); });
    }
    return next;
  }
};

boost::asio::awaitable<void> supervise(weir::context<report> self, std::uint64_t reports) {
  for (; reports > 0; --reports) {
    const auto m = co_await self.async_receive();
    const auto* f = std::get_if<factors>(&*m);
    expect(!f || f->found == std::vector{factor_1, factor_2}, "wrong factors");
  }
}

}  // namespace

void mixed_case(const task& t) {
  const bool factorising = t[4] != 0;
  places where(t);
  std::vector<std::unique_ptr<weir::exclusive_thread>> workers;
  t.watch.start();
  const auto reports = t[0] + (factorising ? t[0] * t[3] : 0);
  const auto supervisor =
      weir::spawn<report>(where.round_robin(0), {.mailbox = reports},
                          [reports](weir::context<report> self) { return supervise(self, reports); });
  for (std::uint64_t i = 0; i < t[0]; ++i) {
    weir::ref<problem> worker;
    if (factorising) {
      workers.push_back(std::make_unique<weir::exclusive_thread>("factoriser"));
      worker = weir::spawn<problem>(workers.back()->get_executor(), {}, [=](weir::context<problem> self) {
        return factoriser(self, supervisor);
      });
    }
    weir::spawn<token>(where.round_robin(i), {}, master{t[1], t[2], t[3], worker, supervisor});
  }
  supervisor.async_join([&](auto&&...) { where.release(); });
  where.run();
  workers.clear();
  t.watch.stop();
}

}  // namespace bench
