// micro.cpp — what the runtime's single operations cost, beside bare Asio in the same run.
//
//   build/release/tests/bench/runtime/bench_runtime_micro [--json FILE] [--only TEXT]...
//
// Plain medians rather than Google Benchmark: most of these cross threads, one is memory, and ours and Asio's
// samples alternate, so that a drifting machine moves both. Each sample is many operations; the table
// gives the median sample and the middle half of them, per operation.
#include <malloc.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/deferred.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/experimental/channel.hpp>
#include <boost/asio/experimental/concurrent_channel.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/asio/use_future.hpp>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <future>
#include <memory>
#include <string>
#include <thread>
#include <variant>
#include <vector>

#include "actors/runtime/actor.h"
#include "tests/bench/runtime/figures.h"
#include "tests/bench/runtime/tokens.h"

namespace {

namespace net = boost::asio;
using namespace weir;
using namespace weir::bench;
using boost::system::error_code;

struct add {
  int n;
};
struct get {
  using result = int;
  explicit get(reply<int> r) : done(std::move(r)) {}
  reply<int> done;
};
using message = std::variant<add, get>;

net::awaitable<void> count(context<message> self) {
  int sum = 0;
  while (auto m = co_await self.async_receive()) {
    if (auto* a = std::get_if<add>(&*m)) sum += a->n;
    if (auto* g = std::get_if<get>(&*m)) g->done(sum);
  }
}

// ---- tell: bursts of a thousand from one thread to another. What the sender pays, while the reader reads
// and while it is busy elsewhere, and the time until the last of a burst is read.

constexpr int bursts = 100, burst = 1000;

struct sending {
  double ns_to_reading = 0, ns_to_busy = 0, ns_until_read = 0;
};

// send() sends one; read() says how many were read, on the thread of `home`.
template <class Send, class Read>
sending in_bursts(exclusive_thread& home, Send send, Read read) {
  sending sum;
  for (int b = 1; b <= bursts; ++b) {
    std::atomic<int> busy{0};  // 1: the reader is busy, 2: no longer
    const bool keep_busy = b % 2 == 0;
    if (keep_busy) {
      net::post(home.get_executor(), [&busy] {
        busy = 1;
        while (busy != 2) {
        }
      });
      while (busy != 1) {
      }
    }
    const auto start = clock_type::now();
    for (int i = 0; i < burst; ++i) send();
    (keep_busy ? sum.ns_to_busy : sum.ns_to_reading) += ns_since(start, burst) / (bursts / 2);
    busy = 2;
    while (read() != b * burst) {
    }
    if (!keep_busy) sum.ns_until_read += ns_since(start, burst) / (bursts / 2);
    net::post(home.get_executor(), net::use_future).get();  // busy is no longer looked at
  }
  return sum;
}

using counter = std::atomic<int>;
void more(counter& n) { n.store(n.load(std::memory_order_relaxed) + 1, std::memory_order_release); }

sending tell_across_threads() {
  counter n{0};
  exclusive_thread home("reader");
  auto a = spawn<message>(home.get_executor(), {.mailbox = burst},
                          [&](context<message> self) -> net::awaitable<void> {
                            while (auto m = co_await self.async_receive()) more(n);
                          });
  net::post(home.get_executor(), net::use_future).get();
  return in_bursts(
      home,
      [&] {
        if (a.tell(add{1}) != sent::ok) std::abort();
      },
      [&] { return n.load(); });
}

sending post_across_threads() {
  counter n{0};
  exclusive_thread home("reader");
  net::post(home.get_executor(), net::use_future).get();
  return in_bursts(
      home, [&] { net::post(home.get_executor(), [&n] { more(n); }); }, [&] { return n.load(); });
}

sending channel_across_threads() {
  counter n{0};
  exclusive_thread home("reader");
  net::experimental::concurrent_channel<void(error_code, message)> channel(home.get_executor(), burst);
  net::co_spawn(
      home.get_executor(),
      [&]() -> net::awaitable<void> {
        while (n.load() < bursts * burst) {
          co_await channel.async_receive(net::use_awaitable);
          more(n);
        }
      },
      net::detached);
  net::post(home.get_executor(), net::use_future).get();
  return in_bursts(
      home,
      [&] {
        if (!channel.try_send(error_code(), add{1})) std::abort();
      },
      [&] { return n.load(); });
}

// ---- ask: a coroutine asks, and asks again once it has the answer.

constexpr int asks = 20'000;

template <class Executor, class Body>
double timed_in(Executor ex, Body body) {
  return net::co_spawn(
             ex,
             [&]() -> net::awaitable<double> {
               co_await body();  // warm
               const auto start = clock_type::now();
               for (int i = 1; i < asks; ++i) co_await body();
               co_return ns_since(start, asks - 1);
             },
             net::use_future)
      .get();
}

double ask_on_one_context() {
  exclusive_thread home("both");
  auto a = spawn<message>(home.get_executor(), {}, count);
  const double t = timed_in(home.get_executor(), [&] { return a.ask<get>(net::use_awaitable); });
  a.stop();
  a.async_join(net::use_future).get();
  return t;
}

// A thread that never sleeps: what is left of a figure without the operating system's wake.
class spinning_thread {
 public:
  explicit spinning_thread(const char*)
      : thread_([this] {
          while (!leave_.load(std::memory_order_relaxed)) io_.poll();
        }) {}
  ~spinning_thread() {
    leave_ = true;
    thread_.join();
  }
  net::io_context::executor_type get_executor() { return io_.get_executor(); }

 private:
  net::io_context io_{1};
  net::executor_work_guard<net::io_context::executor_type> work_ = net::make_work_guard(io_);
  std::atomic<bool> leave_{false};
  std::thread thread_;
};

template <class Thread>
double ask_across_threads() {
  Thread home("actor"), asker("asker");
  ref<message> a = spawn<message>(home.get_executor(), {}, count);
  const double t = timed_in(asker.get_executor(), [&] { return a.ask<get>(net::use_awaitable); });
  a.stop();
  a.async_join(net::use_future).get();
  return t;
}

// What a question is at least: a post there, and a post back.
template <class Thread>
double post_there_and_back(Thread& there, Thread& here) {
  const auto back_and_forth = [](auto there, auto here) {
    return net::async_initiate<const net::use_awaitable_t<>&, void()>(
        [](auto handler, auto there, auto here) {
          net::post(there, [h = std::move(handler), here]() mutable { net::post(here, std::move(h)); });
        },
        net::use_awaitable, there, here);
  };
  return timed_in(here.get_executor(),
                  [&] { return back_and_forth(there.get_executor(), here.get_executor()); });
}
double post_on_one_context() {
  exclusive_thread home("both");
  return post_there_and_back(home, home);
}
template <class Thread>
double post_across_threads_and_back() {
  Thread there("there"), here("here");
  return post_there_and_back(there, here);
}

template <class Channel>
double channels(exclusive_thread& there, exclusive_thread& here) {
  Channel to(there.get_executor(), 1), from(here.get_executor(), 1);
  net::co_spawn(
      there.get_executor(),
      [&]() -> net::awaitable<void> {
        for (int i = 0; i < asks; ++i) {
          const int n = co_await to.async_receive(net::use_awaitable);
          co_await from.async_send(error_code(), n, net::use_awaitable);
        }
      },
      net::detached);
  return timed_in(here.get_executor(), [&]() -> net::awaitable<void> {
    co_await to.async_send(error_code(), 1, net::use_awaitable);
    co_await from.async_receive(net::use_awaitable);
  });
}
double channels_on_one_context() {
  exclusive_thread home("both");
  return channels<net::experimental::channel<void(error_code, int)>>(home, home);
}
double channels_across_threads() {
  exclusive_thread there("there"), here("here");
  return channels<net::experimental::concurrent_channel<void(error_code, int)>>(there, here);
}

// ---- spawn: until the actor waits for its first message; and its bytes while it waits.

constexpr int many = 10'000;

struct crowd {
  double ns_each, bytes_each, ns_each_end;
};
std::size_t in_use() { return mallinfo2().uordblks + mallinfo2().hblkhd; }

crowd spawn_crowd() {
  net::io_context io(1);
  std::vector<ref<message>> all;
  all.reserve(many);
  spawn<message>(io.get_executor(), {}, count).stop();
  io.run();
  io.restart();
  const auto before = in_use();
  const auto start = clock_type::now();
  for (int i = 0; i < many; ++i) all.push_back(spawn<message>(io.get_executor(), {}, count));
  io.poll();
  const double each = ns_since(start, many);
  const double bytes = static_cast<double>(in_use() - before) / many;
  const auto end = clock_type::now();
  for (auto& a : all) a.stop();
  io.run();
  return {each, bytes, ns_since(end, many)};
}

crowd co_spawn_crowd() {
  using channel = net::experimental::channel<void(error_code, message)>;
  net::io_context io(1);
  std::vector<std::unique_ptr<channel>> all;
  all.reserve(many);
  net::co_spawn(
      io, []() -> net::awaitable<void> { co_return; }, net::detached);
  io.run();
  io.restart();
  const auto loop = [](channel& c) -> net::awaitable<void> {
    for (;;) {
      auto m = co_await c.async_receive(net::use_awaitable);
      if (std::holds_alternative<get>(m)) co_return;
    }
  };
  const auto before = in_use();
  const auto start = clock_type::now();
  for (int i = 0; i < many; ++i) {
    all.push_back(std::make_unique<channel>(io, 1024));
    net::co_spawn(io, loop(*all.back()), net::detached);
  }
  io.poll();
  const double each = ns_since(start, many);
  const double bytes = static_cast<double>(in_use() - before) / many;
  const auto end = clock_type::now();
  for (auto& c : all) c->cancel();
  io.run();
  return {each, bytes, ns_since(end, many)};
}

program one(const char* name, double (*run)()) {
  return {{{name}}, [run] { return std::vector<double>{run()}; }};
}
program bursts_of(const char* to_busy, const char* to_reading, const char* until_read, sending (*run)()) {
  return {{{to_busy}, {to_reading}, {until_read}}, [run] {
            const sending s = run();
            return std::vector<double>{s.ns_to_busy, s.ns_to_reading, s.ns_until_read};
          }};
}
program crowd_of(const char* begin, const char* end, const char* idle, crowd (*run)()) {
  return {{{begin}, {end}, {idle, "bytes"}}, [run] {
            const crowd c = run();
            return std::vector<double>{c.ns_each, c.ns_each_end, c.bytes_each};
          }};
}

std::vector<program> all_programs() {
  return {
      bursts_of("tell to a busy thread", "tell to a reading thread", "tell until read", tell_across_threads),
      bursts_of("  Asio: post to a busy thread", "  Asio: post to a running thread", "  Asio: post until run",
                post_across_threads),
      bursts_of("  Asio: concurrent_channel to a busy thread", "  Asio: concurrent_channel to a reading",
                "  Asio: concurrent_channel until read", channel_across_threads),
      one("ask on one context", ask_on_one_context),
      one("  Asio: post there and back", post_on_one_context),
      one("  Asio: two channels", channels_on_one_context),
      one("ask across two threads", ask_across_threads<exclusive_thread>),
      one("  Asio: post there and back, two threads", post_across_threads_and_back<exclusive_thread>),
      one("  Asio: two concurrent_channels", channels_across_threads),
      one("ask across two threads that spin", ask_across_threads<spinning_thread>),
      one("  Asio: post there and back, spinning", post_across_threads_and_back<spinning_thread>),
      crowd_of("spawn", "stop until the end", "idle actor", spawn_crowd),
      crowd_of("  Asio: co_spawn and channel", "  Asio: cancel until the end", "  Asio: idle",
               co_spawn_crowd),
      one("token push with wakes, 64 streams", push_tokens<64>),
      one("  Asio: concurrent_channel, 64", push_tokens_by_channel<64>),
      one("token push with wakes, 512 streams", push_tokens<512>),
      one("  Asio: concurrent_channel, 512", push_tokens_by_channel<512>),
      one("  512 queues alone, without wakes", push_tokens_without_wakes),
      one("  Asio: post to a sleeping context", wake_a_sleeper),
  };
}

}  // namespace

int main(int argc, char** argv) {
  constexpr int rounds = 11;
  const char* json = nullptr;
  std::vector<std::string> only;
  for (int i = 1; i < argc; ++i) {
    const bool has_value = i + 1 < argc;
    if (has_value && std::strcmp(argv[i], "--json") == 0) {
      json = argv[++i];
    } else if (has_value && std::strcmp(argv[i], "--only") == 0) {
      only.emplace_back(argv[++i]);
    } else {
      return std::fprintf(stderr, "usage: %s [--json FILE] [--only TEXT]...\n", argv[0]), 2;
    }
  }
  auto programs = all_programs();
  const auto wanted = [&](const figure& f) {
    return std::any_of(only.begin(), only.end(),
                       [&](const auto& text) { return std::strstr(f.name, text.c_str()); });
  };
  std::erase_if(programs, [&](const program& p) {
    return !only.empty() && std::none_of(p.figures.begin(), p.figures.end(), wanted);
  });
  for (int round = 0; round < rounds; ++round) {
    for (auto& p : programs) p.sample();
  }
  print(programs);
  if (json) write_json(json, programs);
}
