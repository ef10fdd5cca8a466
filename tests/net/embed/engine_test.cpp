// The engine as embedding programs have it.
#include "weir/engine.hpp"

#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/cancellation_signal.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>

#include "embedding.h"
#include "tests/support/toy_directory.h"

namespace weir::tests::engine_test {

using namespace std::chrono_literals;

TEST_CASE("a job's tokens are read in order, each once, however few at a time") {
  const auto at_once = GENERATE(1u, 7u, 1000u);
  net::io_context io(1);
  engine e(io.get_executor(), sim());
  go(io, [](engine& e, std::size_t at_once) -> net::awaitable<void> {
    co_await e.async_load();
    job j = e.submit(ask(300));
    const std::string text = co_await read_all(j, at_once);
    CHECK(text == sim_text(7, 300));
    CHECK(j.ended().reason == "length");
    CHECK(j.ended().output_tokens == 300);
    CHECK(j.ended().error == "");
    CHECK(j.id().size() == 32);
  }(e, at_once));
}

TEST_CASE("jobs of one engine are read side by side") {
  net::io_context io(1);
  engine e(io.get_executor(), sim());
  int ended = 0;
  const auto client = [&](std::uint64_t seed) -> net::awaitable<void> {
    job j = e.submit(ask(100, seed));
    const std::string text = co_await read_all(j, 16);
    CHECK(text == sim_text(seed, 100));
    ++ended;
  };
  go(io, e.async_load());
  for (std::uint64_t seed = 1; seed <= 8; ++seed) net::co_spawn(io, client(seed), net::detached);
  io.restart();
  io.run();
  CHECK(ended == 8);
}

TEST_CASE("cancelling a read loses no tokens") {
  net::io_context io(1);
  engine e(io.get_executor(), sim("rate=200,prefill=100000000"));
  go(io, [](engine& e) -> net::awaitable<void> {
    co_await e.async_load();
    job j = e.submit(ask(20));
    std::array<token, 4> some;
    std::string text;
    std::uint32_t got = 0;
    int cancelled = 0;
    while (got < 20) {
      net::cancellation_signal signal;
      std::optional<std::pair<error_code, std::size_t>> result;
      net::steady_timer done(e.get_executor(), net::steady_timer::time_point::max());
      j.async_read_some(some, net::bind_cancellation_slot(signal.slot(), [&](error_code ec, std::size_t n) {
                          result.emplace(ec, n);
                          done.cancel();
                        }));
      signal.emit(net::cancellation_type::terminal);
      co_await done.async_wait(net::as_tuple(net::use_awaitable));
      REQUIRE(result);
      if (result->first == net::error::operation_aborted) {
        ++cancelled;
        net::steady_timer pause(e.get_executor(), 1ms);
        co_await pause.async_wait(net::use_awaitable);
        continue;
      }
      REQUIRE_FALSE(result->first);
      text += j.text(std::span(some).first(result->second));
      got += static_cast<std::uint32_t>(result->second);
    }
    CHECK(cancelled > 0);
    CHECK(text == sim_text(7, 20));
  }(e));
}

TEST_CASE("a request that breaks a range is refused, naming the field") {
  net::io_context io(1);
  engine e(io.get_executor(), sim());
  go(io, [](engine& e) -> net::awaitable<void> {
    co_await e.async_load();
    request r = ask(10);
    r.temperature = 3;
    job j = e.submit(std::move(r));
    const std::string text = co_await read_all(j, 4);
    CHECK(text.empty());
    CHECK(j.ended().reason == "refused");
    CHECK(j.ended().error.find("temperature") != std::string::npos);
  }(e));
}

TEST_CASE("an answer follows its constraint, and a constraint that will not do is refused by its place") {
  const tests::temporary_dir dir;
  tests::write_toy_directory(dir.path());
  net::io_context io(1);
  engine e(io.get_executor(), {.model = dir.path().string()});
  go(io, [](engine& e) -> net::awaitable<void> {
    co_await e.async_load();
    request asked = ask(40);
    asked.answer = {.what = constraint::kind::choice, .choices = {"a fish", "a bird"}};
    job j = e.submit(std::move(asked));
    const std::string text = co_await read_all(j, 16);
    CHECK((text == "a fish" || text == "a bird"));
    CHECK(j.ended().reason == "stop");

    request broken = ask(40);
    broken.answer = {.what = constraint::kind::regex, .text = "(a)\\1"};
    job refused = e.submit(std::move(broken));
    const std::string nothing = co_await read_all(refused, 16);
    CHECK(nothing.empty());
    CHECK(refused.ended().reason == "refused");
    CHECK(refused.ended().error.find("back-reference") != std::string::npos);
  }(e));
}

TEST_CASE("a job submitted before the engine has loaded is refused") {
  net::io_context io(1);
  engine e(io.get_executor(), sim());
  go(io, [](engine& e) -> net::awaitable<void> {
    job j = e.submit(ask(10));
    co_await read_all(j, 4);
    CHECK(j.ended().reason == "refused");
  }(e));
}

TEST_CASE("a cancelled job ends with cancel, after the tokens that it had") {
  net::io_context io(1);
  engine e(io.get_executor(), sim("rate=1000,prefill=100000000"));
  go(io, [](engine& e) -> net::awaitable<void> {
    co_await e.async_load();
    job j = e.submit(ask(100000));
    std::array<token, 8> some;
    const auto n = co_await j.async_read_some(some);
    j.cancel();
    co_await read_all(j, 64, static_cast<std::uint32_t>(n));
    CHECK(j.ended().reason == "cancel");
  }(e));
}

TEST_CASE("messages and token ids are prompts too") {
  net::io_context io(1);
  engine e(io.get_executor(), sim());
  go(io, [](engine& e) -> net::awaitable<void> {
    co_await e.async_load();
    request chat = ask(5);
    chat.messages = {{"user", "hello"}};
    job a = e.submit(std::move(chat));
    request ids = ask(5);
    ids.ids = {1, 2, 3};
    job b = e.submit(std::move(ids));
    co_await read_all(a, 8);
    co_await read_all(b, 8);
    CHECK(a.ended().reason == "length");
    CHECK(b.ended().reason == "length");
    CHECK(b.ended().input_tokens == 3);
  }(e));
}

TEST_CASE("options that will not do are refused by name") {
  net::io_context io(1);
  const auto field_of = [&](engine_options o) {
    try {
      engine e(io.get_executor(), std::move(o));
    } catch (const engine_error& why) {
      CHECK(std::string(why.what()).find(why.field()) != std::string::npos);
      return why.field();
    }
    return std::string("accepted");
  };
  CHECK(field_of({}) == "model");
  CHECK(field_of({.model = "m", .device = "sim"}) == "model");
  CHECK(field_of({.model = "m", .device = "abacus"}) == "device");
  CHECK(field_of({.device = "sim", .kv_type = "q5"}) == "kv_type");
  CHECK(field_of({.device = "sim", .activations = "int4"}) == "activations");
  CHECK(field_of({.device = "sim", .activations = "int8"}) == "activations");
  CHECK(field_of({.model = "m", .device = "cuda:3", .activations = "int8"}) == "activations");
  CHECK(field_of({.device = "sim", .max_batch = 0}) == "max_batch");
}

namespace {

std::string why_not_loaded(engine_options o) {
  net::io_context io(1);
  engine e(io.get_executor(), std::move(o));
  std::string said;
  net::co_spawn(io, e.async_load(), [&](std::exception_ptr why) {
    try {
      std::rethrow_exception(why);
    } catch (const engine_error& error) {
      said = error.what();
    }
  });
  io.run();
  return said;
}

}  // namespace

TEST_CASE("a model that cannot be loaded is an engine_error that says why") {
  CHECK(why_not_loaded({.model = "/nowhere/at/all"}).find("/nowhere/at/all") != std::string::npos);
  CHECK(why_not_loaded({.device = "sim", .kv_type = "q8"}).find("no keys and values") != std::string::npos);
}

TEST_CASE("an engine that nobody asks lets its context run out") {
  net::io_context io(1);
  engine e(io.get_executor(), sim());
  go(io, e.async_load());
  io.restart();
  CHECK(io.run() == 0);
}

TEST_CASE("a job outlives its engine and ends") {
  net::io_context io(1);
  std::optional<engine> e;
  e.emplace(io.get_executor(), sim("rate=100,prefill=100000000"));
  go(io, e->async_load());
  std::optional<job> j = e->submit(ask(100000));
  e.reset();
  go(io, [](job& j) -> net::awaitable<void> {
    co_await read_all(j, 64);
    CHECK(j.ended().reason != "length");
  }(*j));
}

TEST_CASE("destroying a job with a pending read completes it with operation_aborted") {
  net::io_context io(1);
  engine e(io.get_executor(), sim("rate=1,prefill=1"));
  go(io, e.async_load());
  std::optional<job> j = e.submit(ask(10));
  std::array<token, 4> some;
  error_code heard;
  j->async_read_some(some, [&](error_code ec, std::size_t) { heard = ec; });
  net::post(io, [&] { j.reset(); });
  io.restart();
  io.run();
  CHECK(heard == net::error::operation_aborted);
}

TEST_CASE("an engine destroyed while it loads tells so, and in any order with its readers") {
  net::io_context io(1);
  std::exception_ptr heard;
  {
    engine e(io.get_executor(), sim());
    e.async_load([&](std::exception_ptr why) { heard = why; });
  }
  io.run();
  CHECK_THROWS_AS(std::rethrow_exception(heard), boost::system::system_error);
}

TEST_CASE("a context may be destroyed while jobs are being read") {
  for (int i = 0; i < 20; ++i) {
    net::io_context io(1);
    engine e(io.get_executor(), sim());
    go(io, e.async_load());
    const auto client = [&]() -> net::awaitable<void> {
      job j = e.submit(ask(100000));
      co_await read_all(j, 16);
    };
    for (int c = 0; c < 3; ++c) net::co_spawn(io, client(), net::detached);
    io.restart();
    io.run_for(std::chrono::milliseconds(i));
  }
}

}  // namespace weir::tests::engine_test
