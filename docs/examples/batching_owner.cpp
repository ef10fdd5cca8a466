// batching_owner.cpp — one actor owns a device, and serves all jobs together: it drains its mailbox, runs one
// batched step for all the jobs it has, streams a token to each, and reads its mailbox again.
//
// The device has a thread of its own, as a GPU's context requires. Tokens go through lock-free streams
// to readers on other threads; a step wakes each of those threads once, however many streams it wrote to.
#include <array>
#include <boost/asio/as_tuple.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/use_future.hpp>
#include <iostream>
#include <list>
#include <weir/actors.hpp>

namespace asio = boost::asio;

struct job {
  int prompt, tokens;
  weir::stream_writer<int> out;
  job(int p, int n, weir::stream_writer<int> o) : prompt(p), tokens(n), out(std::move(o)) {}
};

// Stands for the device: one call makes the next token of every job in the batch.
struct device {
  void step(std::list<job>& batch) {
    for (job& j : batch) ++j.prompt;
    largest_batch = std::max(largest_batch, batch.size());
  }
  std::size_t largest_batch = 0;
};

asio::awaitable<void> own(weir::context<job> self, device& gpu) {
  std::list<job> running;
  weir::wakes wakes;
  while (true) {
    while (auto j = self.try_receive()) running.push_back(std::move(*j));
    if (running.empty()) {
      auto j = co_await self.async_receive();
      if (!j) co_return;  // stopped, and nothing is left to do
      running.push_back(std::move(*j));
      continue;
    }
    gpu.step(running);
    for (auto j = running.begin(); j != running.end();) {
      const bool written = j->out.try_write(std::span(&j->prompt, 1), wakes) == 1;
      if (!written) --j->prompt;  // its reader is slow: this job makes no progress, the others do
      if (written && --j->tokens == 0) j->out.close(asio::error::eof, wakes);
      j = j->tokens == 0 || j->out.abandoned() ? running.erase(j) : std::next(j);
    }
    wakes.flush();
    co_await asio::post(self.get_executor(), asio::use_awaitable);  // lets kill() and other handlers run
  }
}

asio::awaitable<void> ask(weir::ref<job> owner, int prompt, int& in_order) {
  auto [writer, reader] = weir::make_stream<int>(co_await asio::this_coro::executor, 63);
  job j(prompt, 1000, std::move(writer));
  co_await owner.async_tell(std::move(j), asio::use_awaitable);
  std::array<int, 16> tokens;
  for (int expected = prompt + 1;;) {
    auto [end, n] = co_await reader.async_read_some(tokens, asio::as_tuple(asio::use_awaitable));
    if (end) co_return;
    for (std::size_t i = 0; i < n; ++i) in_order += tokens[i] == expected++;
  }
}

int main() {
  device gpu;
  weir::exclusive_thread thread("gpu");
  auto owner = weir::spawn<job>(thread.get_executor(), {.name = "gpu", .mailbox = 4},
                                [&gpu](weir::context<job> self) { return own(self, gpu); });
  asio::io_context io(1);
  int in_order = 0;
  for (int i = 0; i < 8; ++i) asio::co_spawn(io, ask(owner, 10000 * i, in_order), asio::detached);
  io.run();

  owner.stop();
  owner.async_join(asio::use_future).get();
  std::cout << "8 jobs, " << in_order << " tokens in order, up to " << gpu.largest_batch << " in a step\n";
}
