#include <deque>

#include "tests/bench/actors/caf/system.h"
#include "tests/bench/actors/programs.h"
#include "tests/bench/actors/work.h"

namespace bench {
namespace {

using produce = caf::atom_constant<caf::atom("produce")>;
using item = caf::atom_constant<caf::atom("item")>;
using available = caf::atom_constant<caf::atom("available")>;
using exhausted = caf::atom_constant<caf::atom("exhausted")>;
using leave = caf::atom_constant<caf::atom("leave")>;

struct producing {
  double value = 0;
  std::uint64_t items = 0;
};

caf::behavior producer(caf::stateful_actor<producing>* self, const caf::actor& manager, std::uint64_t items,
                       std::uint64_t cost) {
  self->state.items = items;
  return {[=](produce) {
    auto& s = self->state;
    if (s.items-- == 0) {
      self->send(manager, exhausted::value);
      return self->quit();
    }
    s.value = process_item(s.value, cost);
    self->send(manager, item::value, s.value, caf::actor_cast<caf::actor>(self));
  }};
}

struct consuming {
  double value = 0;
};

caf::behavior consumer(caf::stateful_actor<consuming>* self, const caf::actor& manager, std::uint64_t cost) {
  return {[=](item, double value) {
            self->state.value = process_item(self->state.value + value, cost);
            self->send(manager, available::value, caf::actor_cast<caf::actor>(self));
          },
          [=](leave) { self->quit(); }};
}

struct buffer {
  std::uint64_t room = 0, working = 0, consumers = 0;
  std::deque<double> pending;
  std::deque<caf::actor> free_consumers, waiting_producers;
};

using manager = caf::stateful_actor<buffer>;

void open(manager* self, std::uint64_t items, std::uint64_t producer_cost, std::uint64_t consumer_cost) {
  auto& s = self->state;
  const auto me = caf::actor_cast<caf::actor>(self);
  for (std::uint64_t i = 0; i < s.consumers; ++i) {
    s.free_consumers.push_back(self->spawn(consumer, me, consumer_cost));
  }
  for (std::uint64_t i = 0; i < s.working; ++i) {
    self->send(self->spawn(producer, me, items, producer_cost), produce::value);
  }
}

void take(manager* self, double value, const caf::actor& from) {
  auto& s = self->state;
  if (s.free_consumers.empty()) {
    s.pending.push_back(value);
  } else {
    self->send(s.free_consumers.front(), item::value, value);
    s.free_consumers.pop_front();
  }
  if (s.pending.size() >= s.room) {
    s.waiting_producers.push_back(from);
  } else {
    self->send(from, produce::value);
  }
}

void give(manager* self, const caf::actor& to) {
  auto& s = self->state;
  if (s.pending.empty()) return s.free_consumers.push_back(to);
  self->send(to, item::value, s.pending.front());
  s.pending.pop_front();
  if (s.waiting_producers.empty()) return;
  self->send(s.waiting_producers.front(), produce::value);
  s.waiting_producers.pop_front();
}

void leave_if_done(manager* self) {
  auto& s = self->state;
  if (s.working > 0 || s.free_consumers.size() < s.consumers) return;
  for (const auto& c : s.free_consumers) self->send(c, leave::value);
  self->quit();
}

caf::behavior manage(manager* self, std::uint64_t room, std::uint64_t producers, std::uint64_t consumers,
                     std::uint64_t items, std::uint64_t producer_cost, std::uint64_t consumer_cost) {
  self->state.room = room;
  self->state.working = producers;
  self->state.consumers = consumers;
  open(self, items, producer_cost, consumer_cost);
  return {[=](item, double value, const caf::actor& from) { take(self, value, from); },
          [=](available, const caf::actor& to) {
            give(self, to);
            leave_if_done(self);
          },
          [=](exhausted) {
            --self->state.working;
            leave_if_done(self);
          }};
}

}  // namespace

void bndbuffer(const task& t) {
  expect(t[0] > t[1], "BUFFER must be larger than PRODUCERS");
  system_config config(t.threads);
  caf::actor_system system(config);
  t.watch.start();
  system.spawn(manage, t[0] - t[1], t[1], t[2], t[3], t[4], t[5]);
  system.await_all_actors_done();
  t.watch.stop();
}

}  // namespace bench
