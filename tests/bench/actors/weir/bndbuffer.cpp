// A manager lends room in a buffer to producers and gives what is in it to consumers that are free.
#include <deque>
#include <variant>

#include "actors/runtime/actor.h"
#include "tests/bench/actors/contexts.h"
#include "tests/bench/actors/programs.h"
#include "tests/bench/actors/work.h"

namespace bench {
namespace {

struct produce {};
struct item {
  double value;
  weir::ref<produce> from;
};
struct available {
  weir::ref<item> consumer;
};
struct exhausted {};
using report = std::variant<item, available, exhausted>;

boost::asio::awaitable<void> producer(weir::context<produce> self, weir::ref<report> manager,
                                      std::uint64_t items, std::uint64_t cost) {
  double value = 0;
  while (auto m = co_await self.async_receive()) {
    if (items-- == 0) break;
    value = process_item(value, cost);
    manager.tell(item{value, self.self()});
  }
  manager.tell(exhausted());
}

boost::asio::awaitable<void> consumer(weir::context<item> self, weir::ref<report> manager,
                                      std::uint64_t cost) {
  double value = 0;
  while (auto m = co_await self.async_receive()) {
    value = process_item(value + m->value, cost);
    manager.tell(available{self.self()});
  }
}

struct buffer {
  contexts& where;
  std::uint64_t room, producers, consumers, items, producer_cost, consumer_cost;

  std::deque<item> pending{};
  std::deque<weir::ref<item>> free_consumers{};
  std::deque<weir::ref<produce>> waiting_producers{};

  boost::asio::awaitable<void> operator()(weir::context<report> self) {
    std::uint64_t working = producers;
    open(self.self());
    while (working > 0 || free_consumers.size() < consumers) {
      auto m = co_await self.async_receive();
      if (auto* i = std::get_if<item>(&*m)) {
        take(std::move(*i));
      } else if (auto* a = std::get_if<available>(&*m)) {
        give(std::move(a->consumer));
      } else {
        --working;
      }
    }
    for (const auto& c : free_consumers) c.stop();
  }

  void open(const weir::ref<report>& self) {
    for (std::uint64_t i = 0; i < consumers; ++i) {
      free_consumers.push_back(weir::spawn<item>(where.round_robin(i), {}, [=, this](weir::context<item> c) {
        return consumer(c, self, consumer_cost);
      }));
    }
    for (std::uint64_t i = 0; i < producers; ++i) {
      weir::spawn<produce>(where.round_robin(i), {}, [=, this](weir::context<produce> p) {
        return producer(p, self, items, producer_cost);
      }).tell(produce());
    }
  }

  void take(item i) {
    auto from = i.from;
    if (free_consumers.empty()) {
      pending.push_back(std::move(i));
    } else {
      free_consumers.front().tell(std::move(i));
      free_consumers.pop_front();
    }
    if (pending.size() >= room) {
      waiting_producers.push_back(std::move(from));
    } else {
      from.tell(produce());
    }
  }

  void give(weir::ref<item> to) {
    if (pending.empty()) return free_consumers.push_back(std::move(to));
    to.tell(std::move(pending.front()));
    pending.pop_front();
    if (waiting_producers.empty()) return;
    waiting_producers.front().tell(produce());
    waiting_producers.pop_front();
  }
};

}  // namespace

void bndbuffer(const task& t) {
  expect(t[0] > t[1], "BUFFER must be larger than PRODUCERS");
  contexts where(t.threads);
  t.watch.start();
  const auto manager =
      weir::spawn<report>(where.round_robin(0), {}, buffer{where, t[0] - t[1], t[1], t[2], t[3], t[4], t[5]});
  manager.async_join([&](auto&&...) { where.release(); });
  where.run();
  t.watch.stop();
}

}  // namespace bench
