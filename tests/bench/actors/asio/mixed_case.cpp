#include <atomic>
#include <boost/asio/post.hpp>
#include <boost/asio/thread_pool.hpp>
#include <deque>
#include <memory>

#include "tests/bench/actors/contexts.h"
#include "tests/bench/actors/programs.h"
#include "tests/bench/actors/work.h"

namespace bench {
namespace {

struct master;

// A ring lives on one context: its links are objects that pass the token on.
struct link {
  master& ring;
  link* next;
  void pass(std::uint64_t value);
};

struct master {
  contexts& where;
  contexts::executor_type ex;
  boost::asio::thread_pool* factorisers;
  std::uint64_t ring_size, first_value, repetitions;
  std::atomic<std::uint64_t>& rings;
  std::deque<std::unique_ptr<link>> links{};

  void begin() {
    if (factorisers) {
      boost::asio::post(*factorisers, [] {
        expect(factorise(factor_1 * factor_2) == std::vector{factor_1, factor_2}, "wrong factors");
      });
    }
    links.clear();
    for (std::uint64_t i = 1; i < ring_size; ++i) {
      links.push_back(std::make_unique<link>(*this, i > 1 ? links.back().get() : nullptr));
    }
    start(first_value);
  }
  void start(std::uint64_t value) {
    boost::asio::post(ex, [to = links.back().get(), value] { to->pass(value); });
  }
  void receive(std::uint64_t value) {
    if (value > 0) return start(value - 1);
    if (--repetitions > 0) return begin();
    if (--rings == 0) where.release();
  }
};

void link::pass(std::uint64_t value) {
  boost::asio::post(ring.ex, [this, value] { next ? next->pass(value) : ring.receive(value); });
}

}  // namespace

void mixed_case(const task& t) {
  contexts where(t.threads);
  std::unique_ptr<boost::asio::thread_pool> factorisers;
  std::atomic<std::uint64_t> rings = t[0];
  std::deque<master> masters;
  t.watch.start();
  if (t[4]) factorisers = std::make_unique<boost::asio::thread_pool>(t[0]);
  for (std::uint64_t i = 0; i < t[0]; ++i) {
    masters.push_back({where, where.round_robin(i), factorisers.get(), t[1], t[2], t[3], rings});
    boost::asio::post(masters.back().ex, [to = &masters.back()] { to->begin(); });
  }
  where.run();
  if (factorisers) factorisers->join();
  t.watch.stop();
}

}  // namespace bench
