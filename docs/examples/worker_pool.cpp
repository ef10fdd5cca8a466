// worker_pool.cpp — workers on a thread pool, a producer that is faster than the workers, and queues that do
// not grow.
//
// Every mailbox is bounded, and whoever sends waits for room: the producer for the workers, the workers for
// the tally. However long the list of tasks, the workers have at most workers * (mailbox + 1) of them.
#include <algorithm>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/strand.hpp>
#include <boost/asio/thread_pool.hpp>
#include <iostream>
#include <weir/actors.hpp>

namespace asio = boost::asio;

using task = int;  // how many primes are there below it?
using result = int;

int primes_below(int n) {
  int count = 0;
  for (int i = 2; i < n; ++i) {
    bool prime = true;
    for (int d = 2; d * d <= i && prime; ++d) prime = i % d != 0;
    count += prime;
  }
  return count;
}

asio::awaitable<void> work(weir::context<task> self, weir::ref<result> out) {
  while (auto t = co_await self.async_receive()) {
    const result r = primes_below(*t);
    co_await out.async_tell(r, asio::use_awaitable);
  }
}

asio::awaitable<void> produce(std::vector<weir::ref<task>> workers, std::size_t& most_waiting) {
  for (task t = 0; t < 2000; ++t) {
    const auto& idlest = *std::ranges::min_element(workers, {}, [](const auto& w) { return w.backlog(); });
    co_await idlest.async_tell(t, asio::use_awaitable);
    for (const auto& w : workers) most_waiting = std::max(most_waiting, w.backlog());
  }
  for (auto& w : workers) w.stop();  // they finish what they have
  for (auto& w : workers) co_await w.async_join(asio::use_awaitable);
}

int main() {
  asio::thread_pool threads(2);
  asio::io_context io(1);

  long sum = 0;
  auto tally = weir::spawn<result>(io.get_executor(), {.name = "tally", .mailbox = 16},
                                   [&sum](weir::context<result> self) -> asio::awaitable<void> {
                                     while (auto r = co_await self.async_receive()) sum += *r;
                                   });
  std::vector<weir::ref<task>> workers;
  for (int i = 0; i < 4;
       ++i)  // an actor needs an executor that runs one handler at a time: here a strand of its own
    workers.push_back(weir::spawn<task>(asio::make_strand(threads.get_executor()),
                                        {.name = "worker", .mailbox = 8},
                                        [tally](weir::context<task> self) { return work(self, tally); }));

  std::size_t most_waiting = 0;
  asio::co_spawn(io, produce(workers, most_waiting), [tally](std::exception_ptr) { tally.stop(); });
  io.run();
  threads.join();
  std::cout << "2000 tasks, sum " << sum << ", never more than " << most_waiting << " waiting for a worker\n";
}
