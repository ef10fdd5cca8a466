// Memory that runs out on one of the server's threads ends what was at hand there, and nothing else:
// afterwards the server answers, and holds no job, page, session or byte of what was refused. A program of
// its own, since it replaces operator new.
#include <pthread.h>

#include <array>
#include <atomic>
#include <cstdlib>
#include <cstring>
#include <new>

#include "tests/support/http_client.h"
#include "tests/support/server_fixture.h"
#include "tests/support/ws_client.h"

namespace {

// While `one_in` is not 0, allocations on threads of this name fail at random, one in so many.
struct shortage {
  std::atomic<unsigned> one_in{0};
  std::atomic<const char*> thread{""};
  std::atomic<std::uint64_t> state{1};  // splitmix64's
  std::atomic<std::uint64_t> failed{0};
} shortage_now;

bool allocation_fails() noexcept {
  const unsigned one_in = shortage_now.one_in.load(std::memory_order_relaxed);
  if (one_in == 0) return false;
  std::array<char, 16> name{};
  pthread_getname_np(pthread_self(), name.data(), name.size());
  if (std::strcmp(name.data(), shortage_now.thread.load()) != 0) return false;
  std::uint64_t z = shortage_now.state.fetch_add(0x9e3779b97f4a7c15) + 0x9e3779b97f4a7c15;
  z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9;
  z = (z ^ z >> 27) * 0x94d049bb133111eb;
  if ((z ^ z >> 31) % one_in != 0) return false;
  shortage_now.failed.fetch_add(1, std::memory_order_relaxed);
  return true;
}

}  // namespace

[[gnu::noinline]] void* operator new(std::size_t n) {
  if (!allocation_fails())
    if (void* p = std::malloc(n > 0 ? n : 1)) return p;
  throw std::bad_alloc();
}
[[gnu::noinline]] void* operator new(std::size_t n, const std::nothrow_t&) noexcept {
  return allocation_fails() ? nullptr : std::malloc(n > 0 ? n : 1);
}
[[gnu::noinline]] void operator delete(void* p) noexcept { std::free(p); }
[[gnu::noinline]] void operator delete(void* p, std::size_t) noexcept { std::free(p); }
[[gnu::noinline]] void operator delete(void* p, const std::nothrow_t&) noexcept { std::free(p); }

using namespace weir;
using namespace weir::tests;

namespace {

struct memory_short {
  memory_short(const char* thread, unsigned one_in, std::uint64_t seed) {
    shortage_now.thread = thread;
    shortage_now.state = seed;
    shortage_now.one_in = one_in;
  }
  ~memory_short() { shortage_now.one_in = 0; }
};

// One request of each kind; whatever comes back, or nothing, is fine here.
void talk(unsigned short port) {
  constexpr const char* body = R"({"prompt":"hello","max_tokens":30,"n":2)";
  try {
    http_client(port).post("/v1/completions", std::string(body) + "}");
    http_client(port).post("/v1/completions", std::string(body) + R"(,"stream":true})");
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
  } catch (const boost::system::system_error&) {  // hung up on
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
      const auto failed_before = shortage_now.failed.load();
      for (std::uint64_t seed = 1; seed <= 20; ++seed) {
        const memory_short now(thread, one_in, seed);
        talk(f.port());
      }
      CHECK((one_in > 100 || shortage_now.failed > failed_before));
      check_whole(f);
    }
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
