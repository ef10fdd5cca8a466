// Memory that runs out on one of the server's threads ends what was at hand there, and nothing else:
// afterwards the server answers, and holds no job, page, session or byte of what was refused. A program of
// its own, since it replaces operator new.
#include <pthread.h>

#include <array>
#include <boost/asio/steady_timer.hpp>
#include <future>
#include <optional>
#include <regex>
#include <thread>
#include <vector>

#include "actors/runtime/mailbox.h"
#include "tests/support/http_client.h"
#include "tests/support/memory_shortage.h"
#include "tests/support/server_fixture.h"
#include "tests/support/toy_directory.h"
#include "tests/support/ws_client.h"

namespace weir::tests::no_memory_test {
namespace {

// Sends one request of each kind. Any answer is fine here, and so is none.
void talk(unsigned short port) {
  const std::string body = R"({"prompt":"hello","max_tokens":30,"n":2)";
  try {
    http_client(port).post("/v1/completions", body + "}");
    http_client(port).post("/v1/completions", body + R"(,"stream":true})");
    http_client(port).post("/v1/completions", body + R"(,"regex":"([a-z]+ ){3,9}"})");
    http_client(port).post("/v1/completions",
                           body + R"(,"json_schema":{"items":{"enum":["a",7]},"minItems":2}})");
    http_client(port).post("/v1/tokenize", R"({"text":"some text"})");
    http_client(port).get("/v1/jobs");
    http_client(port).get("/v1/stats");
    ws_client c(port);
    for (const char* id : {"a", "b"}) {
      if (c.open())
        c.send(fmt::format(
            R"({{"type":"response.create","id":"{}","input":"x","max_tokens":20,"on_disconnect":"cancel"}})",
            id));
    }
    for (int i = 0; i < 10 && c.open(); ++i) {
      c.send(R"({"type":"ping","ts":1})");
      if (c.open()) c.next();
    }
  } catch (const boost::system::system_error&) {  // the server closed the connection
  }
}

void check_whole(server_fixture& f) {
  {
    INFO("until the engine is quiet");
    f.until_quiet();
  }
  INFO("until the server answers, holds nothing, and lists no job that lives");
  server_fixture::until([&] {
    http_client c(f.port());
    const auto a = c.post("/v1/completions", R"({"prompt":"hello","max_tokens":5,"seed":7})");
    return a.status == 200 && a.json().at("choices").at(0).at("text") == json_text(sim_text(7, 5));
  });
  server_fixture::until([&] {
    const auto s = http_client(f.port()).get("/v1/stats").json();
    return s.at("sessions") == 0 && s.at("jobs").at("decoding") == 0 && s.at("pages").at("used") == 0 &&
           s.at("client_memory").at("used").as_int64() <=
               static_cast<std::int64_t>(2 * net::connection_bytes);
  });
  server_fixture::until([&] {
    const auto jobs = f.list_jobs();
    return std::ranges::all_of(jobs, [](const auto& j) { return j.state == "finished"; });
  });
}

void poll_whatever_fails(boost::asio::io_context& shard) {
  for (bool again = true; again;) {
    again = false;
    shard.restart();
    try {
      shard.poll();
    } catch (const std::bad_alloc&) {
      again = true;
    }
  }
}

// Fills the memory of this thread's timers, so that one more timer needs an allocation. REQUIRES: every
// allocation fails.
void fill_timers(std::vector<boost::asio::steady_timer>& fillers) {
  const auto never = boost::asio::steady_timer::time_point::max();
  try {
    for (auto& filler : fillers) {
      filler.expires_at(never);
      filler.async_wait([](auto) {});
    }
  } catch (const std::bad_alloc&) {
    return;
  }
  FAIL("there was memory for every timer");
}

}  // namespace

TEST_CASE("no memory: an allocation that fails on any thread but the owner's is survived") {
  for (const char* thread : {"weir-io", "weir-text", "weir-control"}) {
    for (const unsigned one_in : {1000, 100, 30}) {
      CAPTURE(thread, one_in);
      server_options o;
      o.net.limits.detach_grace = std::chrono::milliseconds(100);
      server_fixture f(o);
      // what Asio sets up once for each thread does not survive a failed allocation in Boost 1.81
      talk(f.port());
      const auto failed_before = failed_allocations();
      for (std::uint64_t seed = 1; seed <= 20; ++seed) {
        const memory_short now(thread, one_in, seed);
        talk(f.port());
      }
      CHECK((one_in > 100 || failed_allocations() > failed_before));
      check_whole(f);
    }
  }
}

TEST_CASE("no memory: a connection for which there is none ends, and the next is accepted") {
  server_fixture f;
  std::vector<std::unique_ptr<http_client>> there;  // what Asio has for a socket is in use for each of these
  for (std::size_t i = 0; i < 2 * f.io.size(); ++i) {
    there.push_back(std::make_unique<http_client>(f.port()));
    REQUIRE(there.back()->get("/health/live").status == 200);
  }
  for (int i = 0; i < 3; ++i) {
    const memory_short now("weir-io", 1, 1);
    CHECK(http_client(f.port()).ended());
  }
  there.clear();
  check_whole(f);
}

TEST_CASE("no memory: a shard's clock for whose timer there is none goes on") {
  server_fixture f;
  const auto& shard = f.io.at(0);
  std::vector<boost::asio::steady_timer> fillers;
  for (int i = 0; i < 1000; ++i) fillers.emplace_back(shard);
  const auto before = f.service->seen().count();
  boost::asio::steady_timer first(shard);
  std::optional<memory_short> now;
  std::promise<void> filled;
  boost::asio::post(shard, [&] {
    first.expires_after(std::chrono::milliseconds(0));
    first.async_wait([&](auto) {
      now.emplace("weir-io", 1, 1);
      fill_timers(fillers);
      filled.set_value();
    });
    std::this_thread::sleep_for(std::chrono::milliseconds(300));  // the clock is due as well, behind `first`
  });
  filled.get_future().get();
  server_fixture::until([&] { return f.service->seen().count() > before; });
  now.reset();
  std::atomic<bool> idle{false};
  f.server->drain([&] { idle = true; });
  server_fixture::until([&] { return idle.load(); });  // it is the clock that finds this
}

TEST_CASE("no memory: a refusal reaches its client where the shard cannot allocate") {
  server_fixture f;  // its model writes numbers: no text fits the constraint
  boost::asio::io_context shard;
  actors::request asked;
  asked.input = "x";
  asked.constraint.emplace().what = core::grammar::constraint_text::kind::regex;
  asked.constraint->text = "[a-z]{3}";
  const auto choices = f.service->submit(asked, 2, shard.get_executor(), [] {});
  server_fixture::until([&] { return f.service->stats().text.tasks == 0; });
  {
    const allocations_fail now(0, 20);
    shard.poll();
  }
  for (const auto& choice : choices) {
    REQUIRE(choice->state() == actors::job_stream::phase::refused);
    CHECK_FALSE(choice->refusal().message.empty());
  }
}

// The reader's last call has to find the end, since a client waits for it.
TEST_CASE("no memory: the end of a job reaches its client where the shard cannot allocate") {
  server_fixture f;
  std::array<char, 16> this_thread{};
  REQUIRE(pthread_getname_np(pthread_self(), this_thread.data(), this_thread.size()) == 0);
  for (std::uint64_t seed = 1; seed <= 40; ++seed) {
    CAPTURE(seed);
    boost::asio::io_context shard;
    std::vector<std::shared_ptr<actors::job_stream>> choices;
    const auto ended = [&](const auto& choice) { return choice->state() == actors::job_stream::phase::done; };
    bool told_of_end = false;
    actors::request asked;
    asked.input = "x";
    asked.max_tokens = 60;
    const auto tell = [&] { told_of_end = !choices.empty() && std::ranges::all_of(choices, ended); };
    const auto jobs_before = f.service->stats().engine.finished;
    choices = f.service->submit(asked, 2, shard.get_executor(), tell);
    server_fixture::until([&] { return f.service->stats().engine.finished == jobs_before + 2; });
    {
      const memory_short now(this_thread.data(), 2, seed);
      poll_whatever_fails(shard);
    }
    server_fixture::until([&] { return poll_whatever_fails(shard), std::ranges::all_of(choices, ended); });
    CHECK(told_of_end);
  }
}

TEST_CASE("no memory: a message for which there is none leaves its room in the mailbox to others") {
  weir::detail::mailbox<int> box({.mailbox = 1});
  int message = 7;
  for (int i = 0; i < 2; ++i) {
    REQUIRE(box.reserve());
    const allocations_fail now(0, 1);
    CHECK_THROWS_AS(box.push(message), std::bad_alloc);
  }
  CHECK(box.size() == 0);
  REQUIRE(box.reserve());
  REQUIRE(box.push(message));
  CHECK(box.pop()->message == 7);
}

TEST_CASE("no memory: a mask that cannot be made ends its job, and others fit their constraints") {
  tests::temporary_dir dir;
  tests::write_toy_directory(dir.path());
  server_options o;
  o.model_dir = dir.path().string();
  server_fixture f(o);
  const auto ask = [&](std::uint64_t number) {
    const auto body = fmt::format(R"({{"prompt":"x","max_tokens":50,"regex":"[a-c]{{3}}{}"}})", number);
    return http_client(f.port()).post("/v1/completions", body);
  };
  const auto text_of = [](const auto& answer) {
    return std::string(answer.json().at("choices").at(0).at("text").as_string());
  };
  REQUIRE(ask(0).status == 200);
  const auto failed_before = failed_allocations();
  for (std::uint64_t seed = 1; seed <= 40; ++seed) {  // each constraint anew, so that masks are to be made
    const memory_short now("weir-mask", 5, seed);
    const auto answer = ask(seed);
    if (answer.status == 200) CHECK(std::regex_match(text_of(answer), std::regex("[a-c]{3}[0-9]+")));
  }
  CHECK(failed_allocations() > failed_before);
  f.until_quiet();
  for (std::uint64_t seed = 1; seed <= 40; ++seed) {
    const auto answer = ask(seed);
    REQUIRE(answer.status == 200);
    CHECK(std::regex_match(text_of(answer), std::regex("[a-c]{3}[0-9]+")));
  }
}

TEST_CASE("no memory: what the owner cannot allocate ends jobs, and the engine goes on") {
  for (std::uint64_t seed = 1; seed <= 10; ++seed) {
    CAPTURE(seed);
    server_fixture f;
    talk(f.port());
    {
      const memory_short now("weir-sim", 400, seed);
      for (int i = 0; i < 20 && f.service->seen().count() == 0; ++i) talk(f.port());
    }
    if (f.service->ready().ready) check_whole(f);
    CHECK(http_client(f.port()).get("/health/live").status == 200);
  }
}

TEST_CASE("no memory: an exception in a handler of a shard is noted, and the shard goes on") {
  server_fixture f;
  const auto before = f.service->seen().count();
  for (std::size_t i = 0; i < f.io.size(); ++i)
    boost::asio::post(f.io.at(i), [] { throw std::runtime_error("a test"); });
  check_whole(f);
  CHECK(f.service->seen().count() == before + f.io.size());
}

}  // namespace weir::tests::no_memory_test
