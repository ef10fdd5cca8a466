// Where what clients send is parsed, and what parsing takes.
#include "net/sent_text.h"

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/json/memory_resource.hpp>
#include <thread>

#include "net/protocol/request_fields.h"
#include "tests/support/server_fixture.h"

namespace weir::tests::sent_text_test {

namespace json = boost::json;
using net::read_sent;

namespace {

struct parsed {
  std::thread::id where;
  std::uint64_t held = 0;  // of the account, while it was parsed
};

// A service, and what read_sent() makes of a text for a client of its only thread.
struct reader {
  std::shared_ptr<net::sent_text<parsed>> read(std::string text, net::text_sender from = {}) {
    const auto parse = [account = f.service->memory()](std::string_view) {
      return core::result<parsed>(parsed{std::this_thread::get_id(), account->used()});
    };
    std::shared_ptr<net::sent_text<parsed>> out;
    const auto run = [&]() -> boost::asio::awaitable<void> {
      out = co_await read_sent<parsed>(*f.service, from, io.get_executor(), std::move(text), parse);
    };
    boost::asio::co_spawn(io, run, boost::asio::detached);
    while (!out) io.run_one();
    return out;
  }

  boost::asio::io_context io;  // outlives the threads that post to it
  boost::asio::executor_work_guard<boost::asio::io_context::executor_type> work{io.get_executor()};
  server_fixture f;
};

constexpr std::size_t longest = actors::longest_text_here;

// The most that is allocated at a time.
class peak final : public json::memory_resource {
 public:
  std::size_t most = 0;

 private:
  void* do_allocate(std::size_t n, std::size_t) override {
    most = std::max(most, bytes_ += n);
    return ::operator new(n);
  }
  void do_deallocate(void* p, std::size_t n, std::size_t) override {
    bytes_ -= n;
    ::operator delete(p);
  }
  bool do_is_equal(const json::memory_resource& other) const noexcept override { return this == &other; }
  std::size_t bytes_ = 0;
};

}  // namespace

TEST_CASE("sent text: a short one is parsed on its shard, a long one in the text pool, within the account") {
  reader r;
  const auto here = r.read(std::string(longest, '['));
  CHECK(here->said->value().where == std::this_thread::get_id());
  CHECK(!here->in_pool);

  const std::string text(longest + 1, '[');
  const auto there = r.read(text);
  CHECK(there->said->value().where != std::this_thread::get_id());
  CHECK(there->text.empty());
  CHECK(there->said->value().held == text.size() + net::parsing_bytes(text));
  CHECK(r.f.service->memory()->used() == there->memory.bytes());
  net::done_with(*r.f.service, there);
  CHECK(r.f.service->memory()->used() == 0);
}

TEST_CASE(
    "sent text: a long one is refused where memory is short, and not parsed for a client that has gone") {
  reader r;
  const std::string text(longest + 1, '[');
  net::text_sender from;
  from.left = std::make_shared<std::atomic<bool>>(true);
  CHECK(r.read(text, from)->said->error().code == core::errc::unavailable);
  r.f.service->memory()->set_limit(text.size());
  CHECK(r.read(text)->said->error().code == core::errc::overloaded);
  CHECK(r.f.service->memory()->used() == 0);
}

TEST_CASE("sent text: parsing takes no more than is counted for it") {
  const auto item = GENERATE(as<std::string>(), "1", "{}", "[]", R"({"a":1})",
                             R"("a string that has no room")", R"({"role":"user","content":"hi"})");
  std::string text = "[" + item;
  for (int i = 0; i < 40'000; ++i) text += "," + item;
  text += "]";
  peak memory;
  REQUIRE(core::read_json(text, {64, SIZE_MAX}, nullptr, &memory).has_value());
  CHECK(memory.most <= net::parsing_bytes(text));
}

}  // namespace weir::tests::sent_text_test
